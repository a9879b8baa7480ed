// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "zellige/placement.h"

namespace zellige {

/// Refuses a placement that cannot be lowered, for the same reason on every rank.
/// Errors: Code::input, naming the field or sequence, its value, and what would be right.
void require_lowerable(const Placement& placement);

}  // namespace zellige
