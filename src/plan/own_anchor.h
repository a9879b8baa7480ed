// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plan/anchor.h"
#include "plan/count_solution.h"
#include "plan/option.h"
#include "plan/own/own_solver.h"
#include "zellige/anchor_proof.h"
#include "zellige/profile.h"

namespace zellige {

// Between the planner's problems and the own solver's (own/own_solver.h).

/// Steps (some twenty nanoseconds each) that the planner spends on verifying a proof before it claims what that proves.
inline constexpr std::int64_t verify_work(int ranks) { return ranks <= 32 ? 600'000 : 2'000'000; }

own::AnchorProblem own_problem(const Problem& problem);

/// A packing in the planner's terms. @pre it has patterns
CountSolution counted(const Problem& problem, const own::Model& model, const own::Packing& packing);

/// The proofs of both bounds, in the plan's terms: by bucket and configuration.
AnchorProof anchor_proof(const Problem& problem, const own::AnchorSolution& solution, const Profile& profile,
                         Menu menu);

/// Anchor Placement on the own solver. The certificate's bounds are those that its proofs, verified as the checker
/// verifies them, prove; where a proof takes too long to verify the area bound stands in.
/// @param problem  reduced, every group with an option
AnchorResult place_anchors_own(const Problem& problem, const Profile& profile, const PlanOptions& options,
                               const Deadline& deadline);

/// Proves the bounds that CP-SAT states: where the own solver's reach them, its proofs become the certificate's duals.
/// @param problem  what the certificate's rounds were about: reduced, every group with an option
void prove_bounds(Certificate& certificate, const Problem& problem, const Profile& profile, const PlanOptions& options,
                  const Deadline& deadline);

}  // namespace zellige
