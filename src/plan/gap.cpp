// SPDX-License-Identifier: Apache-2.0
#include "plan/gap.h"

#include <algorithm>
#include <string>

#include "plan/settings.h"
#include "zellige/error.h"

namespace zellige {

Sand least_sand(const Problem& whole, const std::vector<bool>& is_anchor_group, std::int64_t upper_us) {
  Sand sand;
  for (std::size_t g = 0; g < whole.groups.size(); ++g) {
    if (is_anchor_group[g]) continue;
    std::optional<std::int64_t> time, memory;
    for (const Option& option : whole.groups[g].options) {
      if (option.load_us() > upper_us) continue;
      const std::int64_t area = option.degree * option.time_us;
      const std::int64_t need = option.degree * option.memory_bytes;
      time = std::min(time.value_or(area), area);
      memory = std::min(memory.value_or(need), need);
    }
    sand.time_us += time.value_or(0) * whole.groups[g].count();
    sand.memory_bytes += memory.value_or(0) * whole.groups[g].count();
  }
  return sand;
}

GapResult close_gap(const Problem& anchors, const Sand& sand, const CountSolution* start, std::int64_t least_us,
                    std::int64_t most_us, const cp::Solver& solver, const PlanOptions& options,
                    const Deadline& deadline) {
  GapResult result;
  result.bound_us = least_us;
  if (least_us >= most_us || !why_too_large(anchors, Form::rank_counts).empty()) return result;
  Round round;
  round.load_least_us = least_us;
  round.load_most_us = most_us;
  round.sand = sand;
  AnchorModel model(anchors, Form::rank_counts, round);
  if (!model.program().is_in_range()) return result;
  if (start != nullptr) model.hint(*start);
  const cp::Response response = solver.solve(model.program(), cp_parameters(options, deadline, 1.0), deadline.stop());
  if (response.outcome == cp::Outcome::infeasible) {
    throw Error(Code::solver, "plan.close_gap",
                "CP-SAT calls a makespan of " + std::to_string(most_us) + " us infeasible that a plan reaches");
  }
  result.bound_us = std::max(result.bound_us, response.bound);
  if (response.has_solution()) result.anchors = model.read(response.solution);
  return result;
}

}  // namespace zellige
