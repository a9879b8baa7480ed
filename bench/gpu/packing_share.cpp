// SPDX-License-Identifier: Apache-2.0
// Which part of a split sequence's attention is packing, unpacking, summing and merging: one rank's work on one GPU
// with exchanges that move nothing, against its kernel calls alone.
#include <cstdio>

#include "bench/gpu/measure.h"
#include "bench/gpu/nowhere.h"
#include "zellige/engine.h"

namespace zellige::bench {

nlohmann::ordered_json packing_share(const Site& site) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::int64_t tokens : {std::int64_t{63'960}, std::int64_t{147'600}}) {
    for (const Configuration config : {Configuration{1, 2, 1}, Configuration{2, 1, 1}, Configuration{1, 1, 2}}) {
      const Schedule schedule = lower(place(2, {{tokens, config, {0, 1}}}), 0);
      Engine engine(one_rank_of(2));
      engine.begin_step(schedule);
      const KernelTable kernels;
      ComputeOnly only(schedule, kernels, site.world.device);
      Packed x(schedule.num_tokens, site.world.device);
      for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->set_requires_grad(true);
      at::Tensor out;
      const std::vector<double> us =
          time_us(site, tokens > 100'000 ? 7 : 11,
                  {[&] { only.forward(); }, [&] { only.backward(); }, [&] { out = engine.attention(x.q, x.k, x.v); },
                   [&] {
                     out.backward(x.grad);
                     for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->mutable_grad() = at::Tensor();
                   }});
      std::printf("%6lld tokens %s: kernels %.0f + %.0f us, with packing %.0f + %.0f us: %.2f%% and %.2f%% more\n",
                  static_cast<long long>(tokens), text(config).c_str(), us[0], us[1], us[2], us[3],
                  100 * (us[2] / us[0] - 1), 100 * (us[3] / us[1] - 1));
      rows.push_back({{"tokens", tokens},
                      {"config", text(config)},
                      {"kernels_forward_us", us[0]},
                      {"kernels_backward_us", us[1]},
                      {"forward_us", us[2]},
                      {"backward_us", us[3]},
                      {"forward_packing_share", us[2] / us[0] - 1},
                      {"backward_packing_share", us[3] / us[1] - 1}});
    }
  }
  return rows;
}

}  // namespace zellige::bench
