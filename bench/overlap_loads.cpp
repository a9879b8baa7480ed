// SPDX-License-Identifier: Apache-2.0
// What planning by overlapped loads gains over planning by additive ones, where exchanges overlap: both plans scored by
// overlapped loads. Modelled, on links of four rates.
//   overlap_loads [OUT.json]
// The four suites at their own ranks and shares 35-60%, on the estimated H200 profile with every exchange re-estimated
// for a link of 330, 150, 20 and 5 GB/s (latencies as they were, within nodes and between them alike).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/methods.h"
#include "bench/result_file.h"
#include "zellige/check.h"
#include "zellige/error.h"
#include "zellige/score.h"

namespace zellige {
namespace {

constexpr LoadModel kOverlapped = {LoadModel::Kind::overlapped, 800};
constexpr int kElementBytes = 2;  // bf16

/// The bytes that one rank of a sequence exchanges in a step, as the estimate counts them.
double exchanged_bytes(const Profile& profile, Tokens length, Configuration config) {
  const ModelGeometry& model = profile.catalog.model;
  const double forwards = profile.key.checkpointing ? 2 : 1;
  const double elements = forwards * forward_volume(model, length, config).total() +
                          backward_volume(model, length, config, /*keep_kv=*/true).total();
  return model.layers * elements / config.degree() * kElementBytes;
}

/// An estimated profile with all links at one rate: prices lose their exchanges' time at the old rate and gain that at
/// the new one.
Profile with_links(const Profile& estimated, std::int64_t bytes_per_us) {
  constexpr int kNodeRanks = 8;  // of the estimate: wider exchanges cross nodes
  Profile changed = estimated;
  for (std::size_t b = 0; b < estimated.catalog.buckets.size(); ++b) {
    const auto bucket = static_cast<BucketIndex>(b);
    std::vector<Price> prices(estimated.menu(bucket).begin(), estimated.menu(bucket).end());
    for (Price& price : prices) {
      if (price.config.is_whole()) continue;
      const Link& link = estimated.links[price.config.degree() > kNodeRanks ? 1 : 0];
      const double bytes = exchanged_bytes(estimated, estimated.catalog.buckets[b].tokens, price.config);
      const std::int64_t more_us =
          std::llround(bytes * (1 / static_cast<double>(bytes_per_us) - 1 / static_cast<double>(link.bytes_per_us)));
      price.exchange.value = std::max<std::int64_t>(0, price.exchange.value + more_us);
      price.time.value = std::max(price.exchange.value, price.time.value + more_us);
    }
    changed.set_prices(bucket, std::move(prices));
  }
  for (Link& link : changed.links) link.bytes_per_us = bytes_per_us;
  return changed;
}

struct Planned {
  Plan plan;
  double cpu_us = 0;
};

Planned planned(const std::string& method, const LoadModel& model, const Batch& batch, const Profile& profile) {
  PlanOptions options;
  options.load_model = model;
  const auto planner = make_planner(method);
  const std::clock_t from = std::clock();
  Planned result{planner->plan(batch, profile, options), 0};
  result.cpu_us = static_cast<double>(std::clock() - from) * 1e6 / CLOCKS_PER_SEC;
  if (const auto findings = check(result.plan, batch, profile); !findings.empty()) {
    throw Error(Code::internal, "bench.overlap_loads",
                "the checker refuses the plan of " + method + ": " + findings.front().message);
  }
  return result;
}

nlohmann::ordered_json row_of(const Planned& made, const Profile& profile) {
  const Plan& plan = made.plan;
  nlohmann::ordered_json row = {{"method", plan.method},
                                {"planned_by", std::string(name(plan.load_model.kind))},
                                {"outcome", bench::outcome(plan)},
                                {"plan_cpu_us", made.cpu_us}};
  if (!plan.has_placement()) return row;
  const Score overlapped = score(plan.placement, profile, kOverlapped);
  row["overlapped_makespan_us"] = overlapped.makespan.value;
  row["additive_makespan_us"] = score(plan.placement, profile).makespan.value;
  row["floor_us"] = overlapped.floor.value;
  row["split_count"] = overlapped.split_count;
  const auto busiest = std::max_element(overlapped.exchange.begin(), overlapped.exchange.end());
  row["largest_exchange_us"] = busiest->value;
  row["certified"] = plan.certified;
  if (plan.load_model == kOverlapped) row["overlapped_bound_us"] = plan.certificate.makespan_bound->value;
  return row;
}

int run(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "bench/results/overlap_loads.json";
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::string& suite : workload_suites()) {
    for (int share = 35; share <= 60; share += 5) {
      const Batch batch = make_workload(suite + ":V" + std::to_string(share));
      const Profile estimated = built_in_profile("h200", batch.catalog, true, batch.ranks);
      for (const std::int64_t gigabytes : {330, 150, 20, 5}) {
        const Profile profile = with_links(estimated, gigabytes * 1000);
        const auto add = [&](const std::string& method, const LoadModel& model) {
          nlohmann::ordered_json row = {{"suite", suite},
                                        {"video_share_percent", share},
                                        {"ranks", batch.ranks},
                                        {"link_gb_per_s", gigabytes},
                                        {"hidden_per_mille", kOverlapped.hidden_per_mille}};
          row.update(row_of(planned(method, model, batch, profile), profile));
          std::printf("%-9s V%d N %2d %3lld GB/s %-10s by %-10s %9.3f s, %d splits, %.1f ms\n", suite.c_str(), share,
                      batch.ranks, static_cast<long long>(gigabytes), method.c_str(),
                      row["planned_by"].get<std::string>().c_str(), row.value("overlapped_makespan_us", 0.0) * 1e-6,
                      row.value("split_count", 0), row["plan_cpu_us"].get<double>() * 1e-3);
          std::fflush(stdout);
          rows.push_back(std::move(row));
        };
        add("zellige", {});
        add("zellige", kOverlapped);
        add("knapformer", kOverlapped);
      }
    }
  }
  bench::write_results(path, "overlap_loads", bench::host_cpu(), "overlap_loads " + path, rows);
  return 0;
}

}  // namespace
}  // namespace zellige

int main(int argc, char** argv) { return zellige::run(argc, argv); }
