// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "plan/anchor_model.h"
#include "zellige/planner.h"

namespace zellige {

struct TwoStageSettings {
  std::string method;
  /// Form::rank_counts falls back to list scheduling (solver "greedy") when OR-Tools is absent or finds nothing in
  /// time; the other forms need OR-Tools (Code::solver).
  Form form = Form::rank_counts;
  bool own_first = false;  ///< ask the own solver before CP-SAT (own_anchor.h)
  bool repairs = false;  ///< go beyond the paper where its plan is not close to the bound, or there is none (repair.h)
};

/// The paper's two-stage planner (Alg. 1): catalog cut, Anchor Placement, Filler Packing; and repair, where wanted.
std::unique_ptr<Planner> make_two_stage(TwoStageSettings settings);

/// The joint reference: the same two rounds over the whole batch, without fillers (section V-C). Needs OR-Tools.
std::unique_ptr<Planner> make_joint(std::string method, Form form);

}  // namespace zellige
