// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/count_solution.h"
#include "plan/wide.h"

namespace zellige {

/// How many members of each group take each option: [group][option].
using Counts = std::vector<std::vector<std::int64_t>>;

/// What comes after the pieces, in crumbs so small that they level all ranks: the fillers, while anchors are chosen.
struct Sand {
  std::int64_t time_us = 0;
  std::int64_t memory_bytes = 0;
};

/// The level that `solution` and the sand on top of it come to: the sand adds time and no exchange.
std::int64_t sand_level(const Problem& problem, const CountSolution& solution, const Sand& sand);

/// What a list schedule came to; smaller is better, in this order.
struct ScheduleValue {
  std::int64_t excess_bytes = 0;  ///< needs of pieces that found no rank with memory room, and of sand that is over
  std::int64_t load_us = 0;       ///< largest load, the sand's level included
  std::int64_t area_us = 0;       ///< sum of all loads

  auto operator<=>(const ScheduleValue&) const = default;
};

/// Puts the pieces of given counts on ranks: dearest option first, each piece on the least loaded rank that has room
/// and holds fewer than z pieces of the option. That last limit is all that distinct ranks need (CountSolution), so
/// pieces of one sequence are not kept together. When memory gets in the way it is tried once more with rank and order
/// chosen by the tighter of the two resources.
class ListScheduler {
 public:
  explicit ListScheduler(const Problem& problem, const Sand& sand = {});

  /// Schedules `counts`; `solution()` then holds the result (incomplete where excess_bytes > 0).
  ScheduleValue run(const Counts& counts);
  const CountSolution& solution() const { return solution_; }

  /// Ranks looked at and pieces placed so far, over all runs: the unit in which callers limit their effort.
  std::int64_t steps() const { return steps_; }

 private:
  enum class Rule { load, tighter_resource };
  struct Type {
    std::size_t group, option;
  };
  ScheduleValue run_by(const Counts& counts, Rule rule);
  Wide key(Rule rule, std::int64_t load, std::int64_t memory) const;

  const Problem& problem_;
  Sand sand_;
  bool sand_meets_the_cap_ = false;  // in the last run
  std::int64_t scale_us_ = 1;        // a load that weighs as much as the whole memory cap
  std::vector<Type> by_load_;        // dearest first
  std::vector<Type> by_tighter_;     // largest share of either resource first
  CountSolution solution_;
  std::vector<std::int64_t> load_, exchange_, memory_;  // load_: sums of time
  std::int64_t steps_ = 0;
};

}  // namespace zellige
