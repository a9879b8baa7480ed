// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plan/count_solution.h"
#include "plan/option.h"
#include "plan/own/own_solver.h"
#include "zellige/anchor_proof.h"
#include "zellige/profile.h"

namespace zellige {

// Between the planner's problems and the own solver's (own/own_solver.h).

own::AnchorProblem own_problem(const Problem& problem);

/// The solution's placement in the planner's terms. @pre it has one
CountSolution counted(const Problem& problem, const own::AnchorSolution& solution);

/// The proofs of both bounds, in the plan's terms: by bucket and configuration.
AnchorProof anchor_proof(const Problem& problem, const own::AnchorSolution& solution, const Profile& profile,
                         Menu menu);

}  // namespace zellige
