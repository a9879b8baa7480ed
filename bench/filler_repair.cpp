// SPDX-License-Identifier: Apache-2.0
// How far the makespans of methods two-stage (the paper's Alg. 1) and zellige (with repair) are over what is proved for
// all placements of the batch: the largest of the bound that the plan carries, that of plan/makespan_proof.h with much
// work, and CP-SAT's with the fillers as sand (plan/gap.h).
//   filler_repair [OUT.json [LIMIT_S]]     the four suites, priced for each built-in GPU; LIMIT_S of CP-SAT, a cell
#include <ctime>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "bench/result_file.h"
#include "plan/bounds.h"
#include "plan/gap.h"
#include "plan/makespan_proof.h"
#include "zellige/check.h"

namespace {

using namespace zellige;
using Json = nlohmann::ordered_json;

struct Bound {
  std::int64_t us = 0;
  double seconds = 0;
};

Bound sand_bound(const Batch& batch, const Profile& profile, std::int64_t makespan_us, double limit_s,
                 const cp::Solver& solver) {
  const std::vector<BucketIndex> buckets = match_buckets(batch, profile);
  const std::vector<bool> cut = anchor_buckets(profile);
  PlanOptions options;
  options.time_limit_s = limit_s;
  const Problem whole =
      reduced(make_problem(batch, profile, buckets, std::vector<bool>(cut.size(), true), options.menu));
  const Problem anchors = reduced(make_problem(batch, profile, buckets, cut, options.menu));
  std::vector<bool> is_anchor;
  for (const Group& group : whole.groups) is_anchor.push_back(cut[group.bucket]);
  const Deadline deadline(limit_s, {});
  const GapResult gap = close_gap(anchors, least_sand(whole, is_anchor, makespan_us), nullptr,
                                  load_lower_bound(whole, makespan_us), makespan_us, solver, options, deadline);
  MakespanProver prover(whole, makespan_us, deadline);
  constexpr std::int64_t kMuchWork = 100'000'000;
  prover.raise(gap.bound_us, bound_enough_for(makespan_us), kMuchWork);
  return {std::max(gap.bound_us, prover.bound_us()), deadline.elapsed_s()};
}

double thread_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

void measure(const std::string& workload, const std::string& device, double limit_s, const cp::Solver& solver,
             Json& rows) {
  constexpr double kGoal = 1e-3;
  const Batch batch = make_workload(workload);
  const Profile profile = built_in_profile(device, batch.catalog, true, batch.ranks);
  PlanOptions options;
  options.ortools = "none";
  Json row = {{"workload", workload}, {"device_priced", device}, {"ranks", batch.ranks}};
  std::int64_t makespan = 0, plan_bound_us = 0;
  std::string shown;
  for (const char* method : {"two-stage", "zellige"}) {
    constexpr int kRepeats = 5;
    std::vector<double> cpu_ms;
    Plan plan;
    for (int i = 0; i < kRepeats; ++i) {
      const double start = thread_ms();
      plan = make_planner(method)->plan(batch, profile, options);
      cpu_ms.push_back(thread_ms() - start);
    }
    std::sort(cpu_ms.begin(), cpu_ms.end());
    const std::string key = method == std::string("zellige") ? "zellige" : "two_stage";
    row[key + "_status"] = name(plan.status);
    row[key + "_cpu_ms"] = cpu_ms[kRepeats / 2];
    row[key + "_makespan_us"] = plan.makespan.value;
    row[key + "_splits"] = plan.split_count;
    row[key + "_certified"] = plan.certified;
    row[key + "_checker_findings"] = check(plan, batch, profile).size();
    if (!plan.has_placement()) row["reason"] = plan.reason;
    makespan = plan.makespan.value;
    plan_bound_us = plan.certificate.makespan_bound.value_or(Microseconds{0}).value;
  }
  if (makespan > 0) {
    Bound bound = sand_bound(batch, profile, makespan, limit_s, solver);
    const auto over = [&](const char* key) { return row[key].get<double>() / static_cast<double>(bound.us) - 1; };
    bound.us = std::max(bound.us, plan_bound_us);
    row["zellige_over_its_own_bound"] =
        row["zellige_makespan_us"].get<double>() / static_cast<double>(plan_bound_us) - 1;
    row["proved_bound_us"] = bound.us;
    row["proved_bound_s"] = bound.seconds;
    if (row["two_stage_makespan_us"] > 0) row["two_stage_over_bound"] = over("two_stage_makespan_us");
    row["zellige_over_bound"] = over("zellige_makespan_us");
    row["goal_over_bound"] = kGoal;
    row["meets_goal"] = over("zellige_makespan_us") <= kGoal;
  }
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
  rows.push_back(std::move(row));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "bench/results/filler_repair.json";
  const double limit_s = argc > 2 ? std::atof(argv[2]) : 10;
  try {
    std::string why_not;
    const auto solver = cp::Solver::find("", why_not);
    if (!solver) {
      std::fprintf(stderr, "%s\n", why_not.c_str());
      return 5;
    }
    Json rows = Json::array();
    for (const char* device : {"h200", "a800", "a6000"}) {
      for (const std::string& suite : workload_suites()) {
        for (int share = 35; share <= 60; share += 5) {
          measure(suite + ":V" + std::to_string(share), device, limit_s, *solver, rows);
        }
      }
    }
    bench::write_results(path, "filler_repair", bench::host_cpu(),
                         "filler_repair " + path + " " + std::to_string(limit_s), rows);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
