// SPDX-License-Identifier: Apache-2.0
// The paper's Fig. 3(b): which part of attention's time is exchange when images of one size are split over two GPUs,
// although they would fit on one; and what the engine costs the processor with 500 sequences a rank.
#include <chrono>
#include <cstdio>

#include <ATen/cuda/CUDAContext.h>

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

nlohmann::ordered_json launch_overhead(const Site& site) {
  std::vector<Entry> entries = {{63'960, {1, 2, 1}, {0, 1}}, {63'960, {2, 1, 1}, {0, 1}}};
  for (const auto& [tokens, count] :
       std::vector<std::pair<std::int64_t, int>>{{256, 680}, {1560, 200}, {3600, 80}, {8160, 40}}) {
    for (int i = 0; i < count; ++i) entries.push_back({tokens, {1, 1, 1}, {i % 2}});
  }
  const Placement placement = place(2, entries);
  const Schedule schedule = lower(placement, site.world.rank);
  Engine engine(site.world.group);
  Packed x(schedule.num_tokens, site.world.device);
  for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->set_requires_grad(true);
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  };
  std::vector<double> begin_step, forward, backward;
  for (int i = 0; i < 8; ++i) {
    at::cuda::getCurrentCUDAStream().synchronize();
    auto begin = Clock::now();
    engine.begin_step(schedule);
    at::cuda::getCurrentCUDAStream().synchronize();
    begin_step.push_back(since(begin));
    engine.attention(x.q, x.k, x.v).backward(x.grad);  // the step's first layer
    for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->mutable_grad() = at::Tensor();
    at::cuda::getCurrentCUDAStream().synchronize();
    begin = Clock::now();
    const at::Tensor out = engine.attention(x.q, x.k, x.v);
    forward.push_back(since(begin));  // until all is queued
    at::cuda::getCurrentCUDAStream().synchronize();
    begin = Clock::now();
    out.backward(x.grad);
    backward.push_back(since(begin));
    for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->mutable_grad() = at::Tensor();
  }
  const auto median = [](std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  const double layer = median(forward) + median(backward);
  if (site.speaks()) {
    std::printf("%zu sequences on this rank: begin_step %.0f us, a layer's calls return after %.0f + %.0f us\n",
                schedule.segments.size(), median(begin_step), median(forward), median(backward));
  }
  return nlohmann::ordered_json::array({{{"link", site.link},
                                         {"sequences", schedule.segments.size()},
                                         {"whole_calls_tokens", schedule.num_tokens},
                                         {"begin_step_us", median(begin_step)},
                                         {"forward_cpu_us", median(forward)},
                                         {"backward_cpu_us", median(backward)},
                                         {"layer_cpu_us", layer},
                                         {"goal_us", 1000}}});
}

}  // namespace zellige::bench
