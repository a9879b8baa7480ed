// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "report/markup.h"
#include "zellige/placement.h"
#include "zellige/profile.h"
#include "zellige/score.h"

namespace zellige {

/// A plan and its score; no score where there is no placement.
struct ScoredPlan {
  const Plan* plan;
  std::optional<Score> score;
};

/// One row a method: makespan, over the floor, imbalance, splits, bytes moved by primitive, peak memory, solve time.
/// The best of a column stands out where several methods are compared; a method without a plan shows its reason.
void draw_method_table(Markup& page, const std::vector<ScoredPlan>& plans, const Profile& profile);

/// Exact figures of every rank of one plan.
void draw_rank_table(Markup& page, const ScoredPlan& scored);

/// The split sequences of one plan: who shares them, how.
void draw_split_table(Markup& page, const Plan& plan);

/// Opens a row of header cells: the first one left-aligned, the others over numbers.
void draw_table_head(Markup& page, const std::vector<std::string_view>& names);

}  // namespace zellige
