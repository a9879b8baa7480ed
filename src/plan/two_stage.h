// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "plan/anchor_model.h"
#include "zellige/planner.h"

namespace zellige {

/// The paper's two-stage planner (Alg. 1): catalog cut, Anchor Placement, Filler Packing.
/// @param form  Form::rank_counts falls back to list scheduling (solver "greedy") when OR-Tools is absent or finds
///              nothing in time; the other forms need OR-Tools (Code::solver).
/// @param own_first  ask the own solver before CP-SAT (own_anchor.h)
std::unique_ptr<Planner> make_two_stage(std::string method, Form form, bool own_first);

/// The joint reference: the same two rounds over the whole batch, without fillers (section V-C). Needs OR-Tools.
std::unique_ptr<Planner> make_joint(std::string method, Form form);

}  // namespace zellige
