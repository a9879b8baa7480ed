// SPDX-License-Identifier: Apache-2.0
// One long video over two GPUs in every configuration of degree 2, against half the time of one GPU.
#include <cstdio>

#include "bench/gpu/measure.h"
#include "zellige/engine.h"

namespace zellige::bench {

nlohmann::ordered_json split_sequence(const Site& site) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const bool nvlink = site.link == "nvlink";
  for (const std::int64_t length : {63'960, 147'600, 334'560}) {
    if ((!nvlink || site.quick) && length > 147'600) continue;
    const int repetitions = length > 200'000 ? 2 : 4;
    // One GPU alone, by the best kernel: in turn with the engine, since clocks drift.
    const KernelTable kernels;
    const Packed alone(length, site.world.device);
    const auto one = [](const at::Tensor& tensor) { return tensor.unsqueeze(0); };
    AttentionOutput result;
    const auto whole_forward_part = [&] { result = kernels.forward(one(alone.q), one(alone.k), one(alone.v)); };
    const auto whole_backward_part = [&] {
      kernels.backward(one(alone.grad), one(alone.q), one(alone.k), one(alone.v), result.out, result.lse);
    };
    for (const Configuration config : {Configuration{1, 2, 1}, Configuration{2, 1, 1}, Configuration{1, 1, 2}}) {
      for (const bool overlap : {false, true}) {
        if (overlap && nvlink && config.k == 1) continue;  // nothing beside which to hide it
        Placement placement = place(2, {{length, config, {0, 1}}});
        placement.exec.overlap = overlap;
        placement.exec.waves = overlap && config.k == 1 ? 2 : 1;
        const Schedule schedule = lower(placement, site.world.rank);
        Engine engine(site.world.group);
        engine.begin_step(schedule);
        Packed x(schedule.num_tokens, site.world.device);
        for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->set_requires_grad(true);
        at::Tensor out;
        const std::vector<double> all =
            time_us(site, repetitions,
                    {whole_forward_part, whole_backward_part, [&] { out = engine.attention(x.q, x.k, x.v); },
                     [&] {
                       out.backward(x.grad);
                       for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->mutable_grad() = at::Tensor();
                     }});
        const double whole_forward = all[0], whole_backward = all[1];
        const std::vector<double> us = {all[2], all[3]};
        const double forward = whole_forward / 2 / us[0];
        const double both = (whole_forward + whole_backward) / 2 / (us[0] + us[1]);
        if (site.speaks()) {
          std::printf("%7lld %s %s %s: %9.0f + %9.0f us, one GPU %9.0f + %9.0f: forward %.3f, both %.3f\n",
                      static_cast<long long>(length), site.link.c_str(), text(config).c_str(),
                      overlap ? "overlap" : "serial ", us[0], us[1], whole_forward, whole_backward, forward, both);
        }
        nlohmann::ordered_json row = {{"link", site.link},
                                      {"tokens", length},
                                      {"config", text(config)},
                                      {"overlap", overlap},
                                      {"waves", placement.exec.waves},
                                      {"forward_us", us[0]},
                                      {"backward_us", us[1]},
                                      {"one_gpu_forward_us", whole_forward},
                                      {"one_gpu_backward_us", whole_backward},
                                      {"forward_efficiency", forward},
                                      {"efficiency", both}};
        if (nvlink) row["goal"] = 0.95;
        rows.push_back(row);
      }
    }
  }
  return rows;
}

}  // namespace zellige::bench
