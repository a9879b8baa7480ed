// SPDX-License-Identifier: Apache-2.0
// All methods on the same batches, by the profile's prices: what each plan comes to, modelled.
//   methods_suites NAME [OUT.json]
// NAME: methods_suites (the four suites at their own ranks, shares 35-60%, on the estimated profiles of the device that
// the paper ran them on, with its memory and without a limit, and of an H200), or methods_scale (the suites' budgets on
// 4 to 1,024 ranks, shares 35, 50, 60%).
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/methods.h"
#include "bench/result_file.h"

namespace zellige {
namespace {

/// The device of the paper's testbed for a suite.
std::string papers_device(const std::string& suite) { return suite == "a6000x32" ? "a6000" : "a800"; }

/// Memory that binds nowhere: what a device's speed alone makes of a method.
constexpr Bytes kNoCap{std::int64_t{1} << 42};

void add_rows(nlohmann::ordered_json& rows, const std::string& suite, int share, int ranks, const std::string& device,
              bool memory_binds = true) {
  const Batch batch = make_workload(suite + ":V" + std::to_string(share), ranks);
  Profile profile = built_in_profile(device, batch.catalog, true, batch.ranks);
  if (!memory_binds) profile.memory_usable = profile.memory_base + kNoCap;
  std::vector<bench::Method> methods = bench::compared_methods();
  // Where all of KnapFormer's layouts are too many to try: bags of four, its best layout of most of the suites'
  // batches.
  methods.push_back({"knapformer-g4", "knapformer", "g4n" + std::to_string(std::max(1, batch.ranks / 4))});
  for (const bench::Method& method : methods) {
    if (batch.ranks > method.most_ranks || (method.name == "knapformer-g4" && batch.ranks <= 32)) continue;
    if (!memory_binds && (method.work_limit > 0 || method.name == "disjoint"))
      continue;  // long searches: once is enough
    const bench::MethodRun run = bench::run_method(method, batch, profile);
    nlohmann::ordered_json row = {
        {"suite", suite}, {"video_share_percent", share}, {"profile", device}, {"memory_binds", memory_binds}};
    row.update(bench::row_of(method, run, batch, profile));
    std::printf("%-9s V%d N %4d %-6s %-15s %-10s %9.3f s, over floor %6.3f, splits %4d, planned in %9.1f ms\n",
                suite.c_str(), share, batch.ranks, device.c_str(), method.name.c_str(),
                row["outcome"].get<std::string>().c_str(), static_cast<double>(run.plan.makespan.value) * 1e-6,
                row.value("over_floor", 0.0), run.plan.split_count, run.wall_us * 1e-3);
    std::fflush(stdout);
    rows.push_back(std::move(row));
  }
}

int run(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "methods_suites";
  const std::string path = argc > 2 ? argv[2] : "bench/results/" + name + ".json";
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (name == "methods_suites") {
    for (const std::string& suite : workload_suites()) {
      for (int share = 35; share <= 60; share += 5) {
        add_rows(rows, suite, share, 0, papers_device(suite));
        add_rows(rows, suite, share, 0, papers_device(suite), false);
        add_rows(rows, suite, share, 0, "h200");
      }
    }
  } else if (name == "methods_scale") {
    for (const std::string& suite : workload_suites()) {
      for (const int ranks : {4, 8, 16, 32, 64, 128, 256, 512, 1024}) {
        for (const int share : {35, 50, 60}) add_rows(rows, suite, share, ranks, "h200");
      }
    }
  } else {
    std::fprintf(stderr, "%s: it must be methods_suites or methods_scale\n", name.c_str());
    return 2;
  }
  bench::write_results(path, name, bench::host_cpu(), "methods_suites " + name + " " + path, rows);
  return 0;
}

}  // namespace
}  // namespace zellige

int main(int argc, char** argv) { return zellige::run(argc, argv); }
