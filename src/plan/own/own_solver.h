// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "plan/own/pattern_model.h"
#include "plan/own/proof.h"

namespace zellige::own {

/// How much the own solver may do.
struct SolverLimits {
  std::int64_t load_work = 12'000'000;  ///< elementary steps (about a nanosecond each) of round 1
  std::int64_t split_work = 8'000'000;  ///< and of round 2
  double gap = 1e-4;                    ///< round 1 may end this close to its bound
  std::int64_t exact_work = 3'000'000;  ///< steps spent on closing what is left of the gap
  double epsilon = 1e-3;                ///< load slack of round 2  // epsilon, Eq. 7
  std::function<bool()> is_over;        ///< deadline or cancellation, looked at between nodes; may be empty
};

/// What keeps a solve within about 15 ms up to 32 ranks, and within about 100 ms beyond.
SolverLimits default_limits(int ranks);

enum class SolverStatus {
  solved,      ///< there is a placement
  infeasible,  ///< proved: nothing keeps the memory cap
  unknown      ///< nothing found, nothing proved
};

/// What both rounds came to. Bounds are proved by `load_proof` and `split_proof`.
struct AnchorSolution {
  SolverStatus status = SolverStatus::unknown;
  Model model;
  Packing packing;                  ///< the placement of round 2
  Packing balanced;                 ///< one that reaches least_load_us
  std::int64_t least_load_us = 0;   ///< T of round 1
  std::int64_t load_bound_us = 0;   ///< proved lower bound of T
  std::int64_t load_limit_us = 0;   ///< of round 2
  bool limit_is_from_bound = true;  ///< false: nothing known keeps the limit that follows from the bound
  std::int64_t split_count = 0;     ///< K of the packing
  std::int64_t split_bound = 0;     ///< proved lower bound of K at loads <= load_limit_us
  Proof load_proof, split_proof;    ///< empty where the bound is 0
  std::int64_t load_work = 0, split_work = 0;
  std::int64_t nodes = 0, stuck = 0;
};

/// Anchor Placement (Eq. 7) in two rounds. Deterministic unless is_over ends it.
AnchorSolution solve_anchors(const AnchorProblem& problem, const SolverLimits& limits);

/// A bound that needs no search: the larger of area / ranks and the dearest piece that cannot be avoided.
struct SimpleBound {
  std::int64_t bound_us = 0;
  Multipliers multipliers;  ///< prove it
};
/// @pre the model has groups, each with an option
SimpleBound simple_bound(const Model& model);

/// floor((1 + epsilon) load), as the plan's certificate counts it.
std::int64_t with_slack(std::int64_t load_us, double epsilon);

}  // namespace zellige::own
