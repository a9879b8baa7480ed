// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace zellige {

inline constexpr std::int64_t kCannotRun = -1;

/// What one sequence of each lot costs every rank of a group of some kind. A lot with time kCannotRun can't go there.
struct GroupCosts {
  int size = 1;                            ///< ranks
  std::vector<std::int64_t> time_us;       ///< [lots]
  std::vector<std::int64_t> memory_bytes;  ///< [lots]
};

/// Which lots' sequences go to which groups: Eq. 2 with measured prices, for one layout.
struct GroupInstance {
  std::vector<std::int64_t> counts;  ///< [lots], sequences of each
  std::vector<GroupCosts> kinds;
  std::vector<std::size_t> groups;  ///< [groups], kind of each, equal ones side by side
  std::int64_t cap_bytes = 0;
};

/// Proved lower bound of the makespan of an instance: for any weights y >= 0 of the groups,
/// T sum(y) >= sum over lots of count * min over groups of y * time. The weights are searched for in floating point and
/// rounded to integers first, so the bound is exact.
std::int64_t group_lower_bound(const GroupInstance& instance);

/// How many of each lot's sequences every group takes.
struct GroupAssignment {
  std::vector<std::vector<std::int64_t>> taken;  ///< [groups][lots]
  std::int64_t makespan_us = 0;
};

/// A cap on work shared by many searches.
struct SearchBudget {
  std::int64_t nodes_left = 0;
  std::function<bool()> stop;  ///< asked now and then
  bool spent = false;          ///< set when a search gave up for lack of nodes or was stopped
};

/// Finds the assignment of least makespan, below `below`, or none when there is none (then proved, unless the budget is
/// spent). Branch and bound over counts: lots one after another, groups of a kind with equal content in order of what
/// they take, the most numerous lot last, where the best split follows by bisection.
std::optional<GroupAssignment> best_assignment(const GroupInstance& instance, std::int64_t below, SearchBudget& budget);

}  // namespace zellige
