// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/anchor.h"
#include "plan/count_solution.h"
#include "plan/makespan_proof.h"

namespace zellige {

/// What the two stages came to, and what repair may work with.
struct RepairTask {
  const Problem* whole = nullptr;    ///< every sequence of the batch, reduced
  const Problem* anchors = nullptr;  ///< of the cut, reduced
  std::vector<bool> is_anchor;       ///< [groups of whole]
  /// The two-stage placement; none when there is none: then any that keeps the memory cap is a gain.
  std::optional<CountSolution> start;
  const Profile* profile = nullptr;
  std::function<std::shared_ptr<const cp::Solver>()> find_solver;  ///< asked last; returns null to go without
};

/// A placement of the whole batch.
struct Repaired {
  enum class Status { unchanged, better, infeasible, unknown };
  Status status = Status::unchanged;
  CountSolution solution;  ///< of `whole`; with Status::better only
  /// The certificate of a solve over the whole batch, where that is what the placement comes from.
  std::optional<Certificate> certificate;
  ProvedBound bound;           ///< of all placements of the batch, also where nothing was changed
  bool fillers_split = false;  ///< by list scheduling: no rounds speak of it
  std::string solver;          ///< "own", "cp-sat" or "greedy"
  std::string reason;          ///< infeasible, unknown
  std::string overflow;  ///< without a placement: which ranks the closest attempt had over the cap, and by how much
};

/// Repair beyond the paper (docs/concepts/anchor_filler.md): when the two-stage plan is more than kRepairTolerance over
/// the proved bound, or there is none because memory got in the way, in this order until it is close enough. Before the
/// first and after each of the first three, one linear program over the whole batch tries to prove that it is
/// (makespan_proof.h); at the end the bound is raised as far as the work allows.
/// 1. moves and swaps of whole sequences (level.h);
/// 2. other options for the anchors, chosen by the level that the fillers will come to: what Anchor Placement, which
///    balances anchors alone, cannot see. Fillers are packed by Eq. 8 again. Taken when it is better by half of the
///    tolerance, as the anchor rounds' certificate no longer speaks of it;
/// 3. the whole batch at once on the own solver, and by list scheduling: here fillers may be split. Such a placement is
///    taken only when it is better by a tenth of the tolerance than every one that keeps them whole;
/// 4. without a placement still: CP-SAT on the whole batch, which finds one or proves that there is none.
/// Deterministic: limits count work, not time; the deadline only cuts short (and under a work limit there is none).
Repaired repair(const RepairTask& task, const PlanOptions& options, const Deadline& deadline);

}  // namespace zellige
