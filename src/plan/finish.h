// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plan/count_solution.h"
#include "plan/deadline.h"
#include "plan/makespan_proof.h"
#include "zellige/planner.h"

namespace zellige {

/// Where one sequence runs.
struct Assignment {
  Configuration config;
  std::vector<Rank> ranks;
};

/// Writes what `solution` decodes to into the assignments of the problem's sequences: [sequences of the batch].
void assign(const Problem& problem, const CountSolution& solution, std::vector<Assignment>& assignments);

/// `certificate.anchor_placement`: what the ranks hold of the problem's sequences, ranks that hold the same together.
std::vector<RankContent> rank_contents(const Problem& problem, const CountSolution& solution, const Profile& profile);

/// Ends a plan with a placement: fills in everything that follows from it, the bound of the makespan with its proof,
/// and the status (optimal exactly when the makespan meets that bound).
/// @param whole_batch  the problem of all sequences, reduced
/// @param known        a bound of the makespan; none (0): one is looked for where the stand-alone one is not close
void finish_with(Plan& plan, std::vector<Assignment> assignments, const Batch& batch, const Profile& profile,
                 const Problem& whole_batch, const PlanOptions& options, const Deadline& deadline,
                 const ProvedBound& known = {});

/// Ends a plan without a placement.
void finish_without(Plan& plan, PlanStatus status, std::string reason, const Batch& batch, const Profile& profile,
                    const PlanOptions& options, const Deadline& deadline);

/// The proof that a batch has no placement at all, in words; empty when none was found. Looks at single sequences, and
/// at what all ranks together can hold.
std::string why_infeasible(const Problem& whole_batch_unreduced, const Batch& batch, const Profile& profile);

}  // namespace zellige
