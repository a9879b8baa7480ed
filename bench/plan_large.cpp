// SPDX-License-Identifier: Apache-2.0
// Plans, checks and scores batches of 100,000 sequences without OR-Tools.
//   build/bench/plan_large [bench/results/plan_large.json]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "bench/result_file.h"
#include "zellige/check.h"
#include "zellige/planner.h"
#include "zellige/score.h"

namespace {

using namespace zellige;

constexpr int kSequences = 100'000;
constexpr double kGoalUs = 1e6;

/// Images of all sizes, and `videos_in_1000` videos among a thousand.
Batch make_batch(int ranks, int videos_in_1000) {
  Batch batch = make_workload("high:V50");
  batch.ranks = ranks;
  std::vector<BucketIndex> images, videos;
  for (std::size_t i = 0; i < batch.catalog.buckets.size(); ++i) {
    (batch.catalog.buckets[i].kind == MediaKind::image ? images : videos).push_back(static_cast<BucketIndex>(i));
  }
  batch.sequences.clear();
  for (int i = 0; i < kSequences; ++i) {
    const auto& kind = i % 1000 < videos_in_1000 ? videos : images;
    batch.sequences.push_back({std::string("s").append(std::to_string(i)), kind[i % kind.size()], ""});
  }
  return batch;
}

template <class Call>
double us_of(Call&& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

nlohmann::ordered_json measure(int ranks, int videos_in_1000) {
  const Batch batch = make_batch(ranks, videos_in_1000);
  Profile profile = built_in_profile("h200", batch.catalog);
  // So many sequences are more than a step: the cap is lifted to twice the mean need, so that it still has a say.
  std::int64_t need = 0;
  for (const BucketIndex bucket : match_buckets(batch, profile)) need += profile.whole(bucket).memory.value;
  profile.memory_usable = profile.memory_base + Bytes{2 * need / ranks};
  PlanOptions options;
  options.ortools = "none";
  const auto planner = make_planner("zellige");
  std::vector<double> totals;
  double plan_us = 0, check_us = 0, score_us = 0;
  Plan plan;
  std::size_t findings = 0;
  double over_floor = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    plan_us = us_of([&] { plan = planner->plan(batch, profile, options); });
    check_us = us_of([&] { findings = check(plan, batch, profile).size(); });
    score_us = us_of([&] { over_floor = score(plan.placement, profile).over_floor; });
    totals.push_back(plan_us + check_us + score_us);
  }
  const double worst = *std::max_element(totals.begin(), totals.end());
  std::printf(
      "%4d ranks, %3d videos in 1000: %s, plan %.0f + check %.0f + score %.0f ms, over the floor %.4f %%, %zu "
      "findings\n",
      ranks, videos_in_1000, std::string(name(plan.status)).c_str(), plan_us / 1000, check_us / 1000, score_us / 1000,
      100 * over_floor, findings);
  if (!plan.has_placement()) std::printf("  %s\n", plan.reason.c_str());
  return {{"ranks", ranks},
          {"sequences", kSequences},
          {"videos_in_1000", videos_in_1000},
          {"status", name(plan.status)},
          {"plan_us", plan_us},
          {"check_us", check_us},
          {"score_us", score_us},
          {"slowest_total_us", worst},
          {"goal_us", kGoalUs},
          {"makespan_us", plan.makespan.value},
          {"floor_us", plan.floor.value},
          {"makespan_bound_us", plan.certificate.makespan_bound.value_or(Microseconds{0}).value},
          {"checker_findings", findings}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "bench/results/plan_large.json";
  try {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    bool good = true;
    for (const int ranks : {8, 64, 1024}) {
      for (const int videos_in_1000 : {1, 100}) {
        rows.push_back(measure(ranks, videos_in_1000));
        good = good && rows.back()["slowest_total_us"] <= kGoalUs && rows.back()["checker_findings"] == 0;
      }
    }
    bench::write_results(path, "plan_large", bench::host_cpu(), "build/bench/plan_large " + path, rows);
    return good ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
