// SPDX-License-Identifier: Apache-2.0
// What a plan made with wrong prices comes to under the true ones.
//   price_error [OUT.json [DRAWS [SEED]]]
// The estimated H200 profile is the truth; the planner gets prices that are off by up to 1, 3 or 10%:
//   random      each bucket x configuration by its own factor, uniform in 1 +- e
//   by-degree   each degree by one factor, uniform in 1 +- e: what a wrong model of exchanges does
//   by-bucket   each bucket by one factor, uniform in 1 +- e: what a wrong model of compute does
//   by-rank     prices are right, but the ranks' speeds differ: a factor 1 +- e a rank, which no planner is told
// `regret` is the true makespan of that plan over that of the plan which the same method makes with true prices.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/methods.h"
#include "bench/result_file.h"
#include "zellige/score.h"

namespace zellige {
namespace {

const std::vector<std::string> kKinds = {"random", "by-degree", "by-bucket", "by-rank"};

double factor(RandomEngine& engine, double error) { return 1 + error * (2 * draw_unit(engine) - 1); }

/// The prices that the planner sees.
Profile distorted(const Profile& truth, const std::string& kind, double error, RandomEngine& engine) {
  Profile seen = truth;
  std::map<int, double> of_degree;
  for (std::size_t b = 0; b < truth.catalog.buckets.size(); ++b) {
    const auto menu = truth.menu(static_cast<BucketIndex>(b));
    std::vector<Price> prices(menu.begin(), menu.end());
    const double of_bucket = factor(engine, error);
    for (Price& price : prices) {
      double by = of_bucket;
      if (kind == "random") by = factor(engine, error);
      if (kind == "by-degree") by = of_degree.try_emplace(price.config.degree(), factor(engine, error)).first->second;
      const double time = static_cast<double>(price.time.value) * by;
      price.time = {std::max<std::int64_t>(price.exchange.value + 1, std::llround(time))};
    }
    seen.set_prices(static_cast<BucketIndex>(b), prices);
  }
  return seen;
}

/// Largest load of the placement under the true prices, ranks slowed by their factors.
double true_makespan(const Plan& plan, const Profile& truth, const std::vector<double>& slowness) {
  const Score scored = score(plan.placement, truth);
  double makespan = 0;
  for (std::size_t r = 0; r < scored.load.size(); ++r) {
    makespan = std::max(makespan, static_cast<double>(scored.load[r].value) * slowness[r]);
  }
  return makespan;
}

struct Sums {
  std::vector<double> regret, over_floor;
  int no_plan = 0;
};

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

int run(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "bench/results/price_error.json";
  const int draws = argc > 2 ? std::atoi(argv[2]) : 3;
  const std::uint64_t first_seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  std::vector<bench::Method> methods;
  for (const bench::Method& method : bench::compared_methods()) {
    if (method.name != "joint" && method.name != "disjoint" && method.name != "flexsp") methods.push_back(method);
  }
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::string& suite : workload_suites()) {
    // [kind][error][method] over shares and draws
    std::map<std::string, std::map<double, std::map<std::string, Sums>>> sums;
    for (int share = 35; share <= 60; share += 5) {
      const Batch batch = make_workload(suite + ":V" + std::to_string(share));
      const Profile truth = built_in_profile("h200", batch.catalog, true, batch.ranks);
      const std::vector<double> even(batch.ranks, 1);
      for (const bench::Method& method : methods) {
        const Plan right = bench::run_method(method, batch, truth).plan;
        if (!right.has_placement()) continue;  // OOM whatever the prices
        const double best = true_makespan(right, truth, even);
        for (const std::string& kind : kKinds) {
          for (const double error : {0.01, 0.03, 0.10}) {
            for (int draw = 0; draw < draws; ++draw) {
              // All methods meet the same errors.
              RandomEngine engine(first_seed + static_cast<std::uint64_t>(draw) +
                                  1000 * static_cast<std::uint64_t>(share));
              Sums& sum = sums[kind][error][method.name];
              std::vector<double> slowness = even;
              Plan plan;
              if (kind == "by-rank") {
                for (double& slow : slowness) slow = factor(engine, error);
                plan = right;
              } else {
                plan = bench::run_method(method, batch, distorted(truth, kind, error, engine)).plan;
              }
              if (!plan.has_placement()) {
                ++sum.no_plan;
                continue;
              }
              const double makespan = true_makespan(plan, truth, slowness);
              // Of ranks of unequal speed the floor is all work at all ranks' speeds together.
              double speed = 0;
              for (const double slow : slowness) speed += 1 / slow;
              const double floor = static_cast<double>(right.floor.value) * batch.ranks / speed;
              sum.regret.push_back(makespan / best - 1);
              sum.over_floor.push_back(makespan / floor - 1);
            }
          }
        }
      }
    }
    for (const std::string& kind : kKinds) {
      for (auto& [error, of_method] : sums[kind]) {
        for (const bench::Method& method : methods) {
          const auto found = of_method.find(method.name);
          if (found == of_method.end()) {
            rows.push_back({{"suite", suite},
                            {"error_kind", kind},
                            {"error", error},
                            {"method", method.name},
                            {"outcome", "OOM"},
                            {"plans", 0}});
            continue;
          }
          const Sums& sum = found->second;
          rows.push_back({{"suite", suite},
                          {"error_kind", kind},
                          {"error", error},
                          {"method", method.name},
                          {"outcome", "planned"},
                          {"plans", sum.regret.size()},
                          {"no_plan", sum.no_plan},
                          {"regret_mean", mean(sum.regret)},
                          {"regret_p90", quantile(sum.regret, .9)},
                          {"regret_max", quantile(sum.regret, 1)},
                          {"over_floor_mean", mean(sum.over_floor)},
                          {"over_floor_max", quantile(sum.over_floor, 1)}});
          std::printf("%-9s %-9s %4.0f%% %-15s regret mean %6.2f%% p90 %6.2f%% max %6.2f%%, over floor mean %6.2f%%\n",
                      suite.c_str(), kind.c_str(), 100 * error, method.name.c_str(), 100 * mean(sum.regret),
                      100 * quantile(sum.regret, .9), 100 * quantile(sum.regret, 1), 100 * mean(sum.over_floor));
        }
      }
    }
    std::fflush(stdout);
  }
  bench::write_results(path, "price_error", bench::host_cpu(),
                       "price_error " + path + " " + std::to_string(draws) + " " + std::to_string(first_seed), rows);
  return 0;
}

}  // namespace
}  // namespace zellige

int main(int argc, char** argv) { return zellige::run(argc, argv); }
