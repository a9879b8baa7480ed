// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/anchor.h"
#include "plan/list_schedule.h"

namespace zellige {

/// The least that sequences can add to the sum of all loads, and of all needs, whatever they take of their options up
/// to `upper_us`: what any placement of them is worth as sand.
Sand least_sand(const Problem& whole, const std::vector<bool>& is_anchor_group, std::int64_t upper_us);

/// What CP-SAT made of the gap between a plan and the bounds that stand alone.
struct GapResult {
  std::optional<CountSolution> anchors;  ///< of the anchors' problem; none when nothing better was found
  std::int64_t bound_us = 0;             ///< proved: no placement of the whole batch has a smaller makespan
};

/// Asks CP-SAT for the anchors' placement under which the level of all ranks is least when the fillers are sand
/// (Round::sand). That is a relaxation of the whole batch: of any placement the anchors' part keeps loads within the
/// makespan T, and all ranks together hold the fillers' least area besides, so N T >= anchors' area + sand. So its
/// bound is one of the whole batch; and it has the size of Anchor Placement, not of the joint problem.
/// @param start  the anchors of a known plan; the hint
/// @param least_us, most_us  proved bound, and makespan of the known plan
GapResult close_gap(const Problem& anchors, const Sand& sand, const CountSolution* start, std::int64_t least_us,
                    std::int64_t most_us, const cp::Solver& solver, const PlanOptions& options,
                    const Deadline& deadline);

}  // namespace zellige
