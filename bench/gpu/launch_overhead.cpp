// SPDX-License-Identifier: Apache-2.0
// What the engine costs the processor with 500 sequences a rank: time until the calls of a layer have returned,
// everything still queued, in a graph of several layers as training has, beside the same for its kernel calls alone. On
// one GPU the exchanges go to a group that moves nothing, so that all but the transport's own calls is measured.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <ATen/cuda/CUDAContext.h>
#include <ATen/record_function.h>

#include "bench/gpu/measure.h"
#include "bench/gpu/nowhere.h"
#include "zellige/engine.h"

namespace zellige::bench {
namespace {

/// How often torch's operations are called within `body`, and for how long the processor is in them, nested ones
/// included.
void print_operations(const std::function<void()>& body) {
  struct Sum {
    int calls = 0;
    double us = 0;
  };
  static std::map<std::string, Sum> sums;
  static std::mutex mutex;
  struct Start final : at::ObserverContext {
    std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
  };
  at::RecordFunctionCallback callback(
      [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> { return std::make_unique<Start>(); },
      [](const at::RecordFunction& function, at::ObserverContext* start) {
        const auto took = std::chrono::steady_clock::now() - static_cast<Start*>(start)->time;
        const std::lock_guard lock(mutex);
        Sum& sum = sums[function.name()];
        ++sum.calls;
        sum.us += std::chrono::duration<double, std::micro>(took).count();
      });
  const auto handle = at::addGlobalCallback(callback);
  body();
  at::removeCallback(handle);
  for (const auto& [name, sum] : sums) std::printf("  %-60s %3d calls %8.0f us\n", name.c_str(), sum.calls, sum.us);
}

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
  const auto timed = [&](std::vector<double>& into, int layers, const auto& body) {
    at::cuda::getCurrentCUDAStream().synchronize();
    const auto begin = std::chrono::steady_clock::now();
    body();  // until all is queued
    into.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() /
                   layers);
    at::cuda::getCurrentCUDAStream().synchronize();
  };
  constexpr int kRuns = 15;
  constexpr int kLayers = 4;
  for (int i = 0; i < kRuns; ++i) {
    timed(begin_step, 1, [&] { engine.begin_step(schedule); });
    engine.attention(x.q, x.k, x.v).backward(x.grad);  // the step's first layer
    forget();
    at::Tensor out = x.q;
    timed(forward, kLayers, [&] {
      for (int layer = 0; layer < kLayers; ++layer) out = engine.attention(out, x.k, x.v);
    });
    timed(backward, kLayers, [&] { out.backward(x.grad); });
    out = at::Tensor();
    forget();
    timed(kernels_forward, 1, [&] { only.forward(); });
    timed(kernels_backward, 1, [&] { only.backward(); });
  }
  if (site.quick) print_operations([&] { engine.attention(x.q, x.k, x.v).backward(x.grad); });
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
