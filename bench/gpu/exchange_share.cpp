// SPDX-License-Identifier: Apache-2.0
// The paper's Fig. 3(b): which part of attention's time is exchange when images of one size are split over two GPUs,
// although they would fit on one.
#include <cstdio>

#include "bench/gpu/measure.h"
#include "zellige/engine.h"

namespace zellige::bench {

nlohmann::ordered_json exchange_share(const Site& site) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const std::vector<std::pair<std::int64_t, int>> sizes = {{256, 64}, {1560, 32}, {3600, 16}, {8160, 8}};
  for (const auto& [tokens, count] : sizes) {
    for (const Configuration config : {Configuration{1, 2, 1}, Configuration{2, 1, 1}}) {
      const Placement placement =
          place(2, std::vector<Entry>(static_cast<std::size_t>(count), Entry{tokens, config, {0, 1}}));
      const Schedule schedule = lower(placement, site.world.rank);
      const KernelTable kernels;
      ComputeOnly only(schedule, kernels, site.world.device);
      const double compute = time_us(site, 5, {[&] { only.forward(); }})[0];
      Engine engine(site.world.group);
      engine.begin_step(schedule);
      const Packed x(schedule.num_tokens, site.world.device);
      const double total = time_us(site, 5, {[&] { engine.attention(x.q, x.k, x.v); }})[0];
      if (site.speaks()) {
        std::printf("%s %2d x %5lld %s: %.0f us, kernels alone %.0f: exchange %.0f%%\n", site.link.c_str(), count,
                    static_cast<long long>(tokens), text(config).c_str(), total, compute, 100 * (1 - compute / total));
      }
      rows.push_back({{"link", site.link},
                      {"tokens", tokens},
                      {"count", count},
                      {"config", text(config)},
                      {"forward_us", total},
                      {"kernels_us", compute},
                      {"exchange_share", 1 - compute / total}});
    }
  }
  return rows;
}

}  // namespace zellige::bench
