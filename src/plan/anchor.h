// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "plan/anchor_model.h"
#include "plan/cp_sat.h"
#include "plan/deadline.h"
#include "zellige/planner.h"

namespace zellige {

/// What Anchor Placement came to. Without a solution `status` says why.
struct AnchorResult {
  enum class Status {
    solved,      ///< there is a solution
    infeasible,  ///< proved: no placement keeps the memory cap
    timeout,     ///< out of time or cancelled
    unknown,     ///< nothing found, nothing proved
    too_large,   ///< the form would be too large to write down: see `reason`
  };
  Status status = Status::unknown;
  std::string reason;
  CountSolution solution;                 ///< canonical; of the problem as it was given
  Certificate certificate;                ///< anchor_* and split_*; makespan_bound is not ours
  std::optional<CountSolution> balanced;  ///< reaches anchor_load, where `solution` does not
  bool is_greedy = false;                 ///< the solution is the greedy start's: the solver found nothing

  /// What a plan without a placement says of it.
  PlanStatus plan_status() const;
  /// Both rounds proved: (OPTIMAL, OPTIMAL) in the paper's terms.
  bool is_certified() const;
};

/// How to solve.
struct AnchorSettings {
  Form form = Form::rank_counts;
  bool order_ranks = false;
  /// Return the greedy start when the solver finds nothing in time.
  bool fall_back = true;
};

/// Anchor Placement (Eq. 7, Alg. 1 lines 4-9) in two rounds on CP-SAT: least largest load T, then fewest split
/// sequences K at loads <= floor((1 + epsilon) x the proved bound of T). Both rounds start from a greedy placement
/// (greedy.h) and between proved bounds (bounds.h). Where nothing fits the second limit because the bound is not tight,
/// the limit is taken from the incumbent's load, and split_status is feasible.
/// @param problem  reduced, every group with an option (why_never_fits)
/// @param solver   null: greedy only, with the stand-alone bounds as certificate
AnchorResult place_anchors(const Problem& problem, const cp::Solver* solver, const AnchorSettings& settings,
                           const PlanOptions& options, const Deadline& deadline);

}  // namespace zellige
