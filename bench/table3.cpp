// SPDX-License-Identifier: Apache-2.0
// The paper's Table III on the six workloads of the suite `high`: planning time and makespan of the two-stage planner
// and of the joint reference, with and without ECF; and of ours, which goes on from the two stages.
//   table3 [OUT.json [WORK_LIMIT]]     work limit of the joint reference, in CP-SAT's unit (about a second)
// `zellige` is solved by our own solver, all else by CP-SAT. The joint reference without ECF finds nothing in minutes
// (planner_high_v50) and is left out.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/methods.h"
#include "bench/result_file.h"

namespace zellige {
namespace {

int run(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "bench/results/table3.json";
  const double work = argc > 2 ? std::atof(argv[2]) : 6;
  if (const std::string why_not = why_no_cp_sat(); !why_not.empty()) {
    std::fprintf(stderr, "%s\n", why_not.c_str());
    return 5;
  }
  const std::vector<std::string> known = planner_names();
  std::vector<bench::Method> methods = {{"zellige", "zellige"},
                                        {"two-stage", "two-stage"},
                                        {"without ECF", "zellige-no-ecf"},
                                        {"joint", "joint", "", 8, work}};
  // Where ours does not go beyond the two stages, `zellige` is they.
  std::erase_if(methods, [&](const bench::Method& method) {
    return std::find(known.begin(), known.end(), method.planner) == known.end();
  });
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (int share = 35; share <= 60; share += 5) {
    const Batch batch = make_workload("high:V" + std::to_string(share));
    for (const char* device : {"h200"}) {
      const Profile profile = built_in_profile(device, batch.catalog, true, batch.ranks);
      for (const bench::Method& method : methods) {
        const bench::MethodRun run = bench::run_method(method, batch, profile);
        nlohmann::ordered_json row = {{"video_share_percent", share}, {"profile", device}};
        row.update(bench::row_of(method, run, batch, profile));
        std::printf("V%d %s %-22s %-10s %s %9.3f s, splits %d, planned in %9.1f ms of processor time\n", share, device,
                    method.name.c_str(), bench::outcome(run.plan).c_str(),
                    run.plan.certified ? "certified" : "open     ", static_cast<double>(run.plan.makespan.value) * 1e-6,
                    run.plan.split_count, run.cpu_us * 1e-3);
        std::fflush(stdout);
        rows.push_back(std::move(row));
      }
    }
  }
  bench::write_results(path, "table3", bench::host_cpu(), "table3 " + path + " " + std::to_string(work), rows);
  return 0;
}

}  // namespace
}  // namespace zellige

int main(int argc, char** argv) { return zellige::run(argc, argv); }
