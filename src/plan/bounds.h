// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/option.h"

namespace zellige {

// Lower bounds that stand alone: exact integers, no solver's word. The proof of each is in bounds.cpp.

/// Whether it is proved that no placement has all loads <= `limit_us`.
bool load_is_refuted(const Problem& problem, std::int64_t limit_us);

/// Whether it is proved that no placement keeps the memory cap.
bool memory_is_refuted(const Problem& problem);

/// "No plan is known yet" as an upper bound.
inline constexpr std::int64_t kNoLoadLimit = std::int64_t{1} << 62;

/// Proved lower bound of the largest load over all placements, given that one of at most `upper_us` exists.
std::int64_t load_lower_bound(const Problem& problem, std::int64_t upper_us);

/// Proved lower bound of the number of split sequences over all placements with loads <= `limit_us`.
std::int64_t split_lower_bound(const Problem& problem, std::int64_t limit_us);

}  // namespace zellige
