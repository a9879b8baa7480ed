// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "placement/check_parts.h"

namespace zellige {

/// A knapsack with integers: whether one rank may hold pieces worth more than a mean. Kinds of pieces come in groups, a
/// group's in order; what is known of their numbers limits sums over the first and over the last kinds of a group.
struct PatternQuestion {
  struct Kind {
    std::int64_t time_us = 0, memory_bytes = 0, value = 0;
    std::int64_t before_most = 0;                              ///< pieces of the group's kinds up to this one
    std::int64_t after_most = 0;                               ///< pieces of the group's kinds from this one on
    std::vector<std::pair<std::int64_t, std::int64_t>> steps;  ///< so many pieces or more: so much value besides
    std::int64_t exchange_us = 0;                              ///< its sum keeps the load limit, too
  };
  std::int64_t load_limit_us = 0, memory_cap_bytes = 0;
  std::vector<std::vector<Kind>> groups;
  Wide mean = 0;
};

enum class PatternVerdict {
  none,        ///< nothing that a rank may hold is worth more
  exists,      ///< something is
  out_of_work  ///< not known
};

/// Answers exactly: sums are integers, and what is left out is proved to be worth no more than the mean.
/// @param work  steps that may be taken (some twenty nanoseconds each), counted down
PatternVerdict is_worth_more(const PatternQuestion& question, std::int64_t& work);

}  // namespace zellige
