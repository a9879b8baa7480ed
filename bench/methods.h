// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "zellige/batch.h"
#include "zellige/planner.h"
#include "zellige/profile.h"

namespace zellige::bench {

/// One way to place a batch, as it stands in the tables.
struct Method {
  std::string name;          ///< in the tables
  std::string planner;       ///< make_planner's
  std::string layout = {};   ///< PlanOptions::layout
  int most_ranks = 1 << 20;  ///< above, it is not run: its search or its model grows beyond use
  double work_limit = 0;     ///< PlanOptions::work_limit, so that a busy machine makes no plan worse
};

/// All methods that a batch is compared by, ours first. The exact searches stop at the ranks and limits given here.
const std::vector<Method>& compared_methods();

/// A plan, what making it took, and why there is none where a solver is missing.
struct MethodRun {
  Plan plan;
  double wall_us = 0;
  double cpu_us = 0;  ///< of all threads of the process, so that other programs on the machine do not count
};

/// Plans and runs the checker. Errors: Code::internal, naming the finding, for a plan that the checker refuses.
MethodRun run_method(const Method& method, const Batch& batch, const Profile& profile);

/// "OOM" where memory is the reason that there is no plan (the reason then starts so, or it is proved infeasible),
/// else the plan's status.
std::string outcome(const Plan& plan);

/// The row of a plan: method, outcome, times, bounds, balance, bytes moved, memory. All of it modelled from the
/// profile's prices, except the time that planning took.
nlohmann::ordered_json row_of(const Method& method, const MethodRun& run, const Batch& batch, const Profile& profile);

/// Largest over mean of the loads; 1 when there is none.
double imbalance(const std::vector<double>& loads);

}  // namespace zellige::bench
