// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "zellige/planner.h"

namespace zellige {

// The planners that Zellige is compared with. Each returns an ordinary Plan: legal configurations only, the memory cap
// kept, `solver` naming the method and the layout it took ("knapformer g3n1+g1n1"), Certificate::makespan_bound filled
// and the anchor fields none. All are deterministic, honour time limit and stop token (PlanStatus::timeout when there
// is nothing to show by then), and throw Code::input for a PlanOptions::layout that they do not understand. Sources and
// our readings: docs/baselines.md.

/// Whole sequences, token totals balanced. layout "karmarkar-karp": balances compute by differencing instead.
std::unique_ptr<Planner> make_naive();
/// Whole sequences, fitted work B * S^p balanced under the memory cap (our reading of AdaptiveLoad).
std::unique_ptr<Planner> make_adaptiveload();
/// Every sequence on all ranks, one Ulysses x ring factorization. layout "u4r2" fixes it.
std::unique_ptr<Planner> make_usp();
/// Bags of consecutive ranks, Ulysses inside. layout "g3n1+g1n1" fixes them.
std::unique_ptr<Planner> make_knapformer();
/// Disjoint Ulysses groups of power-of-two degrees, one for each sequence, chosen by an integer program.
/// Errors: Code::solver without OR-Tools.
std::unique_ptr<Planner> make_flexsp();
/// Per sequence the smallest power of two of ranks that holds it, aligned groups, greedy.
std::unique_ptr<Planner> make_megatron();
/// The best placement of disjoint groups, proved; small instances only.
std::unique_ptr<Planner> make_disjoint();

}  // namespace zellige
