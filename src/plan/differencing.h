// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zellige {

/// Splits items into `num_parts` parts of nearly equal sums by Karmarkar and Karp's largest differencing method: the
/// two partial partitions of the widest spread are joined, the fuller parts of one with the emptier of the other, until
/// one is left.
/// @param work  [items], each >= 0
/// @return      [items], the part of each, 0 .. num_parts - 1; parts are numbered by their first item.
/// Deterministic: equal spreads are taken oldest first. Time: items * (num_parts + log items).
std::vector<int> largest_differencing(std::span<const std::int64_t> work, int num_parts);

}  // namespace zellige
