// SPDX-License-Identifier: Apache-2.0
#include "bench/methods.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <numeric>

#include "zellige/check.h"
#include "zellige/error.h"
#include "zellige/score.h"

namespace zellige::bench {
namespace {

double process_us() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

}  // namespace

const std::vector<Method>& compared_methods() {
  static const std::vector<Method> methods = {
      {"zellige", "zellige"},
      {"two-stage", "two-stage"},
      {"joint", "joint", "", 8, 3},
      {"naive", "naive"},
      {"karmarkar-karp", "naive", "karmarkar-karp"},
      {"adaptiveload", "adaptiveload"},
      {"usp", "usp"},
      {"knapformer", "knapformer", "", 32},
      {"megatron", "megatron"},
      {"flexsp", "flexsp", "", 32, 1},
      {"disjoint", "disjoint", "", 8},
  };
  return methods;
}

MethodRun run_method(const Method& method, const Batch& batch, const Profile& profile) {
  PlanOptions options;
  options.layout = method.layout;
  options.work_limit = method.work_limit;
  options.time_limit_s = 3600;
  MethodRun run;
  const auto start = std::chrono::steady_clock::now();
  const double cpu = process_us();
  try {
    run.plan = make_planner(method.planner)->plan(batch, profile, options);
  } catch (const Error& error) {
    if (error.code() != Code::solver) throw;
    run.plan.status = PlanStatus::unknown;
    run.plan.reason = error.what();
    return run;
  }
  run.cpu_us = process_us() - cpu;
  run.wall_us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  if (const auto findings = check(run.plan, batch, profile); !findings.empty()) {
    throw Error(Code::internal, "bench.run_method",
                "the checker refuses the plan of '" + method.name + "': " + findings.front().message);
  }
  return run;
}

std::string outcome(const Plan& plan) {
  const bool out_of_memory = plan.status == PlanStatus::infeasible || plan.reason.starts_with("OOM");
  return !plan.has_placement() && out_of_memory ? "OOM" : std::string(name(plan.status));
}

nlohmann::ordered_json row_of(const Method& method, const MethodRun& run, const Batch& batch, const Profile& profile) {
  const Plan& plan = run.plan;
  nlohmann::ordered_json row = {{"method", method.name},
                                {"ranks", batch.ranks},
                                {"sequences", batch.sequences.size()},
                                {"prices", "modelled: " + profile.key.device},
                                {"outcome", outcome(plan)},
                                {"solver", plan.solver}};
  if (method.work_limit > 0) row["work_limit"] = method.work_limit;
  row["plan_wall_us"] = run.wall_us;
  row["plan_cpu_us"] = run.cpu_us;
  if (!plan.has_placement()) {
    row["reason"] = plan.reason.substr(0, 200);
    return row;
  }
  const Score scored = score(plan.placement, profile, plan.load_model);
  row["makespan_us"] = plan.makespan.value;
  row["floor_us"] = plan.floor.value;
  row["over_floor"] = scored.over_floor;
  if (plan.certificate.makespan_bound) {
    const auto bound = static_cast<double>(plan.certificate.makespan_bound->value);
    row["makespan_bound_us"] = plan.certificate.makespan_bound->value;
    row["over_bound"] = bound > 0 ? static_cast<double>(plan.makespan.value) / bound - 1 : 0;
  }
  row["certified"] = plan.certified;
  row["imbalance"] = scored.imbalance;
  row["split_count"] = plan.split_count;
  row["moved_all_gather_bytes"] = scored.moved.all_gather.value;
  row["moved_ulysses_bytes"] = scored.moved.ulysses.value;
  row["moved_ring_bytes"] = scored.moved.ring.value;
  row["peak_bytes"] = scored.peak.value;
  return row;
}

double imbalance(const std::vector<double>& loads) {
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  if (sum <= 0) return 1;
  return *std::max_element(loads.begin(), loads.end()) * static_cast<double>(loads.size()) / sum;
}

}  // namespace zellige::bench
