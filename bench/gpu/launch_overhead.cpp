// SPDX-License-Identifier: Apache-2.0
// What the engine costs the processor with 500 sequences a rank: time until a layer's calls have returned, everything
// still queued, beside the same for its kernel calls alone. On one GPU the exchanges go to a group that moves nothing,
// so that all but the transport's own calls is measured.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include <ATen/cuda/CUDAContext.h>

#include "bench/gpu/measure.h"
#include "bench/gpu/nowhere.h"
#include "zellige/engine.h"

namespace zellige::bench {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

nlohmann::ordered_json launch_overhead(const Site& site) {
  std::vector<Entry> entries = {{63'960, {1, 2, 1}, {0, 1}}, {63'960, {2, 1, 1}, {0, 1}}};
  for (const auto& [tokens, count] :
       std::vector<std::pair<std::int64_t, int>>{{256, 680}, {1560, 200}, {3600, 80}, {8160, 40}}) {
    for (int i = 0; i < count; ++i) entries.push_back({tokens, {1, 1, 1}, {i % 2}});
  }
  const Placement placement = place(2, entries);
  const Schedule schedule = lower(placement, site.world.rank);
  const bool alone = !site.world.group;
  Engine engine(alone ? one_rank_of(2) : site.world.group);
  Packed x(schedule.num_tokens, site.world.device);
  for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->set_requires_grad(true);
  const KernelTable kernels;
  ComputeOnly only(schedule, kernels, site.world.device);
  const auto forget = [&] {
    for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->mutable_grad() = at::Tensor();
  };

  std::vector<double> begin_step, forward, backward, kernels_forward, kernels_backward;
  const auto timed = [&](std::vector<double>& into, const auto& body) {
    at::cuda::getCurrentCUDAStream().synchronize();
    const auto begin = std::chrono::steady_clock::now();
    body();  // until all is queued
    into.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    at::cuda::getCurrentCUDAStream().synchronize();
  };
  constexpr int kRuns = 15;
  for (int i = 0; i < kRuns; ++i) {
    timed(begin_step, [&] { engine.begin_step(schedule); });
    engine.attention(x.q, x.k, x.v).backward(x.grad);  // the step's first layer
    forget();
    at::Tensor out;
    timed(forward, [&] { out = engine.attention(x.q, x.k, x.v); });
    timed(backward, [&] { out.backward(x.grad); });
    forget();
    timed(kernels_forward, [&] { only.forward(); });
    timed(kernels_backward, [&] { only.backward(); });
  }
  const double layer = median(forward) + median(backward);
  const double of_kernels = median(kernels_forward) + median(kernels_backward);
  if (site.speaks()) {
    std::printf(
        "%zu sequences on this rank: begin_step %.0f us, a layer's calls return after %.0f + %.0f us, kernel "
        "calls alone after %.0f + %.0f us\n",
        schedule.segments.size(), median(begin_step), median(forward), median(backward), median(kernels_forward),
        median(kernels_backward));
  }
  return nlohmann::ordered_json::array({{{"link", alone ? "none" : site.link},
                                         {"sequences", schedule.segments.size()},
                                         {"tokens", schedule.num_tokens},
                                         {"begin_step_us", median(begin_step)},
                                         {"forward_cpu_us", median(forward)},
                                         {"backward_cpu_us", median(backward)},
                                         {"layer_cpu_us", layer},
                                         {"kernels_forward_cpu_us", median(kernels_forward)},
                                         {"kernels_backward_cpu_us", median(kernels_backward)},
                                         {"layer_beside_kernels_cpu_us", layer - of_kernels},
                                         {"goal_us", 1000}}});
}

}  // namespace zellige::bench
