// SPDX-License-Identifier: Apache-2.0
// All methods on the same batches, by the profile's prices: what each plan comes to, modelled.
//   methods_suites NAME [OUT.json]
// NAME: methods_suites (the four suites at their own ranks, shares 35-60%, on the estimated profiles of the device that
// the paper ran them on and of an H200), or methods_scale (the suites' budgets on 4 to 1,024 ranks, shares 35, 50,
// 60%).
#include <cstdio>
#include <cstring>
#include <string>

#include "bench/methods.h"
#include "bench/result_file.h"

namespace zellige {
namespace {

/// The device of the paper's testbed for a suite.
std::string papers_device(const std::string& suite) { return suite == "a6000x32" ? "a6000" : "a800"; }

void add_rows(nlohmann::ordered_json& rows, const std::string& suite, int share, int ranks, const std::string& device) {
  const Batch batch = make_workload(suite + ":V" + std::to_string(share), ranks);
  const Profile profile = built_in_profile(device, batch.catalog, true, batch.ranks);
  for (const bench::Method& method : bench::compared_methods()) {
    if (batch.ranks > method.most_ranks) continue;
    const bench::MethodRun run = bench::run_method(method, batch, profile);
    nlohmann::ordered_json row = {{"suite", suite}, {"video_share_percent", share}, {"profile", device}};
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
        for (const std::string& device : {papers_device(suite), std::string("h200")}) {
          add_rows(rows, suite, share, 0, device);
        }
      }
    }
  } else if (name == "methods_scale") {
    for (const std::string& suite : workload_suites()) {
      for (const int ranks : {4, 8, 16, 32, 64, 128, 256, 512, 1024}) {
        for (const int share : {35, 50, 60}) add_rows(rows, suite, share, ranks, papers_device(suite));
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
