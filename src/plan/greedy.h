// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "plan/count_solution.h"
#include "plan/deadline.h"
#include "plan/list_schedule.h"

namespace zellige {

// The labelled fallback (solver "greedy"), and the start that CP-SAT is given: moldable list scheduling. A vector of
// counts says how many members of a group take which option; list scheduling scores it; steepest descent moves members
// between options. Deterministic: effort is counted in steps of the list scheduler, not in time; the deadline only cuts
// it short.

/// What a greedy search is after.
struct Aim {
  Sand sand;                   ///< what the ranks take afterwards: the largest load then counts its level
  std::int64_t enough_us = 0;  ///< a largest load with which the search may end
};

/// Looks for a placement with a small largest load within the memory cap. None when no start came to fit.
/// @param problem  every group with an option (why_never_fits)
/// @param effort  steps that list scheduling may take in all
std::optional<CountSolution> greedy_balance(const Problem& problem, std::int64_t effort, const Deadline& deadline,
                                            const Aim& aim = {});

/// Looks for fewer split sequences at loads <= `limit_us`, starting from a solution that keeps the limit.
CountSolution greedy_min_split(const Problem& problem, const CountSolution& start, std::int64_t limit_us,
                               std::int64_t effort, const Deadline& deadline, const Sand& sand = {});

}  // namespace zellige
