// SPDX-License-Identifier: Apache-2.0
// Plans a workload with the installed library, checks the plan, and says how it went.
#include <iostream>

#include <zellige/batch.h>
#include <zellige/check.h>
#include <zellige/planner.h>
#include <zellige/profile.h>

int main() {
  const zellige::Batch batch = zellige::make_workload("low:V50");
  const zellige::Profile profile = zellige::built_in_profile("h200", batch.catalog);
  zellige::PlanOptions options;
  options.ortools = "none";
  const zellige::Plan plan = zellige::make_planner("zellige")->plan(batch, profile, options);
  const auto findings = zellige::check(plan, batch, profile);
  std::cout << zellige::name(plan.status) << " " << plan.placement.sequences.size() << " " << findings.size() << "\n";
  return plan.has_placement() && findings.empty() ? 0 : 1;
}
