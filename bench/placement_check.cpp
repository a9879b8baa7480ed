// SPDX-License-Identifier: Apache-2.0
// How long it takes to complete, check, score and digest a placement of 100,000 sequences, laid out round robin.
//   build/bench/placement_check [bench/results/placement_check.json]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/result_file.h"
#include "zellige/check.h"
#include "zellige/placement.h"
#include "zellige/profile.h"
#include "zellige/score.h"

namespace {

using namespace zellige;

constexpr int kSequences = 100'000;
constexpr double kGoalUs = 1e6;

/// Mostly images, and a video in a thousand.
Batch make_batch(int ranks) {
  Batch batch = make_workload("high:V50");
  batch.ranks = ranks;
  std::vector<BucketIndex> images, videos;
  for (std::size_t i = 0; i < batch.catalog.buckets.size(); ++i) {
    (batch.catalog.buckets[i].kind == MediaKind::image ? images : videos).push_back(static_cast<BucketIndex>(i));
  }
  batch.sequences.clear();
  for (int i = 0; i < kSequences; ++i) {
    const auto& kind = i % 1'000 == 0 ? videos : images;
    batch.sequences.push_back({std::string("s").append(std::to_string(i)), kind[i % kind.size()], ""});
  }
  return batch;
}

/// Images whole, one rank after the other; videos over 8 heads-and-query shards.
Plan make_plan(const Batch& batch) {
  Plan plan;
  plan.method = plan.solver = "round-robin";
  plan.status = PlanStatus::feasible;
  plan.placement.ranks = batch.ranks;
  plan.placement.model = batch.catalog.model;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const Bucket& bucket = batch.bucket_of(static_cast<SequenceIndex>(i));
    const Configuration config = bucket.kind == MediaKind::video ? Configuration{2, 4, 1} : Configuration{};
    PlacedSequence placed{batch.sequences[i].id, bucket.name, bucket.kind, bucket.tokens, config, {}, {}, {}};
    for (int r = 0; r < config.degree(); ++r) {
      placed.ranks.push_back(
          static_cast<Rank>((i + static_cast<std::size_t>(r)) % static_cast<std::size_t>(batch.ranks)));
    }
    plan.placement.sequences.push_back(std::move(placed));
  }
  return plan;
}

/// Median of five runs.
template <class Call>
double median_us(Call&& call) {
  std::vector<double> us;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(us.begin(), us.begin() + 2, us.end());
  return us[2];
}

nlohmann::ordered_json measure(int ranks) {
  const Batch batch = make_batch(ranks);
  Profile profile = built_in_profile("h200", batch.catalog);
  profile.memory_usable = profile.memory_base + Bytes{std::int64_t{1} << 50};  // the plan is not made to fit
  Plan plan = make_plan(batch);
  const double complete_us = median_us([&] { complete(plan, batch, profile); });
  std::size_t findings = 0;
  const double check_us = median_us([&] { findings = check(plan, batch, profile).size(); });
  if (findings != 0) throw std::runtime_error(check(plan, batch, profile).front().message);
  Score scored;
  const double score_us = median_us([&] { scored = score(plan.placement, profile); });
  if (scored.makespan != plan.makespan) throw std::runtime_error("scorer and completion disagree");
  const double digest_us = median_us([&] { digest(plan.placement); });
  const double profile_digest_us = median_us([&] { digest(profile); });  // a part of complete and of check
  const double write_us = median_us([&] { plan_json(plan); });
  return {{"ranks", ranks},
          {"sequences", kSequences},
          {"split_sequences", plan.split_count},
          {"complete_us", complete_us},
          {"check_us", check_us},
          {"score_us", score_us},
          {"digest_us", digest_us},
          {"profile_digest_us", profile_digest_us},
          {"write_json_us", write_us},
          {"check_and_score_us", check_us + score_us},
          {"goal_us", kGoalUs},
          {"met", check_us + score_us <= kGoalUs}};
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "bench/results/placement_check.json";
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const int ranks : {8, 64, 1'024}) {
    rows.push_back(measure(ranks));
    const auto& row = rows.back();
    std::printf(
        "%d ranks, %d sequences: complete %.1f ms, check %.1f ms, score %.1f ms, digest %.1f ms, JSON %.1f ms\n", ranks,
        kSequences, row["complete_us"].get<double>() / 1e3, row["check_us"].get<double>() / 1e3,
        row["score_us"].get<double>() / 1e3, row["digest_us"].get<double>() / 1e3,
        row["write_json_us"].get<double>() / 1e3);
  }
  zellige::bench::write_results(path, "placement_check", zellige::bench::host_cpu(),
                                "build/bench/placement_check " + path, rows);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "placement_check: %s\n", error.what());
  return 1;
}
