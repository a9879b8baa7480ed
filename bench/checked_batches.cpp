// SPDX-License-Identifier: Apache-2.0
// Random batches of every class (tests/testing/mixed_batches.h) on 2 to 1,024 ranks, planned and judged by the checker.
//   checked_batches [OUT.json [BATCHES [SEED]]]
// Every batch is planned by "zellige" and by one other method, in turn among those that such a size allows. One row a
// class and method; a refused plan is counted with its seed, and the program then fails.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bench/methods.h"
#include "bench/result_file.h"
#include "testing/mixed_batches.h"
#include "zellige/check.h"
#include "zellige/error.h"

namespace zellige {
namespace {

struct Counts {
  std::map<std::string, int> outcomes;
  int batches = 0, refused = 0, most_ranks = 0;
  std::int64_t sequences = 0;
  std::vector<std::uint64_t> refused_seeds;
};

/// Methods besides ours that a batch of that size is given to. A small work limit ends the searches of CP-SAT at the
/// same place on every machine; what they have by then must pass, too.
std::vector<bench::Method> others(const Batch& batch) {
  const bool small = batch.ranks <= 8 && batch.sequences.size() <= 16;
  std::vector<bench::Method> methods = {{"naive", "naive"},
                                        {"karmarkar-karp", "naive", "karmarkar-karp"},
                                        {"adaptiveload", "adaptiveload"},
                                        {"usp", "usp"},
                                        {"megatron", "megatron"},
                                        {"zellige without OR-Tools", "zellige"}};
  if (batch.ranks <= 16) methods.push_back({"knapformer", "knapformer"});
  if (batch.ranks <= 16 && batch.sequences.size() <= 200) methods.push_back({"joint", "joint"});
  if (batch.ranks <= 16 && batch.sequences.size() <= 200) methods.push_back({"flexsp", "flexsp"});
  if (small) methods.push_back({"disjoint", "disjoint"});
  if (small) methods.push_back({"zellige-no-ecf", "zellige-no-ecf"});
  if (small) methods.push_back({"joint-no-ecf", "joint-no-ecf"});
  return methods;
}

int run(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "bench/results/checked_batches.json";
  const std::uint64_t batches = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10'500;
  const std::uint64_t first_seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  std::map<std::pair<std::string, std::string>, Counts> counts;
  int refused = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + batches; ++seed) {
    const std::string& which = testing::mixed_classes()[seed % testing::mixed_classes().size()];
    RandomEngine engine(seed);
    const int ranks = testing::mixed_ranks(engine, 1024);
    const testing::Instance instance = testing::mixed_instance(which, ranks, engine());
    const std::vector<bench::Method> others_here = others(instance.batch);
    for (const bench::Method& method :
         {bench::Method{"zellige", "zellige"}, others_here[draw_below(engine, others_here.size())]}) {
      PlanOptions options;
      options.layout = method.layout;
      options.time_limit_s = 5;
      if (method.planner.starts_with("joint") || method.planner.ends_with("no-ecf")) options.work_limit = 0.05;
      if (method.name == "zellige without OR-Tools") options.ortools = "none";
      const Plan plan = make_planner(method.planner)->plan(instance.batch, instance.profile, options);
      Counts& count = counts[{which, method.name}];
      ++count.batches;
      ++count.outcomes[bench::outcome(plan)];
      count.most_ranks = std::max(count.most_ranks, ranks);
      count.sequences += static_cast<std::int64_t>(instance.batch.sequences.size());
      for (const Finding& finding : check(plan, instance.batch, instance.profile)) {
        std::printf("REFUSED: seed %llu, %s, %s on %d ranks: %s\n", static_cast<unsigned long long>(seed),
                    which.c_str(), method.name.c_str(), ranks, finding.message.c_str());
        if (count.refused_seeds.empty() || count.refused_seeds.back() != seed) {
          ++count.refused;
          ++refused;
          count.refused_seeds.push_back(seed);
        }
      }
    }
    if ((seed - first_seed + 1) % 500 == 0) {
      std::printf("%llu batches, %d plans refused\n", static_cast<unsigned long long>(seed - first_seed + 1), refused);
      std::fflush(stdout);
    }
  }
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [key, count] : counts) {
    nlohmann::ordered_json row = {{"class", key.first},
                                  {"method", key.second},
                                  {"batches", count.batches},
                                  {"most_ranks", count.most_ranks},
                                  {"sequences", count.sequences}};
    for (const char* outcome : {"optimal", "feasible", "OOM", "timeout", "unknown"}) {
      const auto found = count.outcomes.find(outcome);
      row[outcome] = found == count.outcomes.end() ? 0 : found->second;
    }
    row["refused"] = count.refused;
    row["refused_seeds"] = count.refused_seeds;
    rows.push_back(std::move(row));
  }
  bench::write_results(path, "checked_batches", bench::host_cpu(),
                       "checked_batches " + path + " " + std::to_string(batches) + " " + std::to_string(first_seed),
                       rows);
  return refused == 0 ? 0 : 1;
}

}  // namespace
}  // namespace zellige

int main(int argc, char** argv) { return zellige::run(argc, argv); }
