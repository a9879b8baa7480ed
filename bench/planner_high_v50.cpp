// SPDX-License-Identifier: Apache-2.0
// Plans one workload by CP-SAT with ECF in both forms and without it: two-stage and joint (the paper's Table III).
//   build/bench/planner_high_v50 [bench/results/planner_high_v50.json [LIMIT_S [WORKLOAD]]]
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "bench/result_file.h"
#include "plan/two_stage.h"
#include "zellige/check.h"

namespace {

using namespace zellige;

struct Cell {
  const char* planner;
  Form form;
  const char* form_name;
  int repeats;
};

constexpr Cell kCells[] = {
    {"two-stage", Form::rank_counts, "ECF, counts on ranks", 5},
    {"two-stage", Form::rank_sets, "ECF, counts on rank sets (Eq. 5)", 5},
    {"two-stage", Form::sequences, "without ECF", 5},
    {"joint", Form::rank_counts, "ECF, counts on ranks", 1},
    {"joint", Form::rank_sets, "ECF, counts on rank sets (Eq. 5)", 1},
    {"joint", Form::sequences, "without ECF", 1},
};

nlohmann::ordered_json measure(const Cell& cell, const Batch& batch, const Profile& profile, double limit_s) {
  PlanOptions options;
  options.time_limit_s = limit_s;
  const bool is_joint = std::string(cell.planner) == "joint";
  const std::unique_ptr<Planner> planner =
      is_joint ? make_joint(cell.planner, cell.form) : make_two_stage({cell.planner, cell.form, false, false});
  std::vector<Plan> plans;
  for (int i = 0; i < cell.repeats; ++i) plans.push_back(planner->plan(batch, profile, options));
  std::sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) { return a.solve_time < b.solve_time; });
  const Plan& plan = plans[plans.size() / 2];
  const auto findings = check(plan, batch, profile);
  const auto us = [](const std::optional<Microseconds>& time) {
    return time ? nlohmann::ordered_json(time->value) : nlohmann::ordered_json();
  };
  const auto count = [](const std::optional<int>& number) {
    return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
  };
  std::printf("%-10s %-34s %-10s %-9s solve %10.1f ms  makespan %lld us  splits %d\n", cell.planner, cell.form_name,
              std::string(name(plan.status)).c_str(), plan.certified ? "certified" : "open",
              static_cast<double>(plan.solve_time.value) / 1000, static_cast<long long>(plan.makespan.value),
              plan.split_count);
  return {{"planner", cell.planner},
          {"form", cell.form_name},
          {"status", name(plan.status)},
          {"reason", plan.reason},
          {"certified", plan.certified},
          {"solve_us", plan.solve_time.value},
          {"fastest_us", plans.front().solve_time.value},
          {"slowest_us", plans.back().solve_time.value},
          {"repeats", cell.repeats},
          {"limit_s", limit_s},
          {"makespan_us", plan.makespan.value},
          {"floor_us", plan.floor.value},
          {"makespan_bound_us", us(plan.certificate.makespan_bound)},
          {"anchor_load_us", us(plan.certificate.anchor_load)},
          {"anchor_bound_us", us(plan.certificate.anchor_bound)},
          {"split_count", count(plan.certificate.split_count)},
          {"split_bound", count(plan.certificate.split_bound)},
          {"checker_findings", findings.size()}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "bench/results/planner_high_v50.json";
  const double limit_s = argc > 2 ? std::atof(argv[2]) : 60;
  const std::string workload = argc > 3 ? argv[3] : "high:V50";
  try {
    const Batch batch = make_workload(workload);
    const Profile profile = built_in_profile("h200", batch.catalog);
    if (const std::string why_not = why_no_cp_sat(); !why_not.empty()) {
      std::fprintf(stderr, "%s\n", why_not.c_str());
      return 5;
    }
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Cell& cell : kCells) rows.push_back(measure(cell, batch, profile, limit_s));
    bench::write_results(path, "planner_high_v50", bench::host_cpu(),
                         "build/bench/planner_high_v50 " + path + " " + std::to_string(limit_s) + " " + workload, rows);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
