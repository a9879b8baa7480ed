// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/markup.h"
#include "zellige/report.h"

namespace zellige {

/// Draws a series as one SVG with axes. Gaps where a value is not finite; a long series is thinned to what the width
/// can show, keeping the lowest and the highest of each column. Errors: Code::input when x and y differ in length.
void draw(Markup& page, const Series& series);

}  // namespace zellige
