// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "zellige/profile.h"

namespace zellige {

/// Says what is wrong with one price of a bucket by itself (illegal configuration, values out of range, a spread that
/// was not measured); empty when nothing is.
std::string why_wrong(const ModelGeometry& model, const Bucket& bucket, const Price& price);

}  // namespace zellige
