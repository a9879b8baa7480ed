// SPDX-License-Identifier: Apache-2.0
// What gradients that repeat bit by bit cost, and what the first layer of new shapes costs with and without warm-up.
#include <chrono>
#include <cstdio>

#include <ATen/cuda/CUDAContext.h>

#include "bench/gpu/measure.h"
#include "bench/gpu/nowhere.h"
#include "zellige/engine.h"

namespace zellige::bench {
namespace {

Schedule wholes(const std::vector<std::pair<std::int64_t, std::int64_t>>& groups) {
  std::vector<Entry> entries;
  for (const auto& [length, count] : groups) {
    for (std::int64_t i = 0; i < count; ++i) entries.push_back({length, {1, 1, 1}, {0}});
  }
  return lower(place(1, entries), 0);
}

}  // namespace

nlohmann::ordered_json deterministic(const Site& site) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const std::vector<std::pair<const char*, std::vector<std::pair<std::int64_t, std::int64_t>>>> mixes = {
      {"64x256+32x1560+16x3600+8x8160", {{8160, 8}, {3600, 16}, {1560, 32}, {256, 64}}},
      {"400x256", {{256, 400}}},
      {"1x63960", {{63'960, 1}}}};
  for (const auto& [name, groups] : mixes) {
    for (const char* kernel : {"flash-attention-3", "flash-attention-2"}) {
      const Schedule schedule = wholes(groups);
      Packed x(schedule.num_tokens, site.world.device);
      for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->set_requires_grad(true);
      std::vector<std::unique_ptr<Engine>> engines;
      std::vector<std::function<void()>> parts;
      at::Tensor out;
      for (const bool repeats : {false, true}) {
        Engine& engine = *engines.emplace_back(std::make_unique<Engine>(
            one_rank_of(1),
            EngineOptions{.kernel = kernel, .rates = {}, .flash_attention_3 = {}, .deterministic = repeats}));
        engine.begin_step(schedule);
        parts.push_back([&] { out = engine.attention(x.q, x.k, x.v); });
        parts.push_back([&] {
          out.backward(x.grad);
          for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->mutable_grad() = at::Tensor();
        });
      }
      const std::vector<double> us = time_us(site, 7, parts);
      std::printf("%-30s %-18s backward %.0f us, deterministic %.0f us: %+.1f%%\n", name, kernel, us[1], us[3],
                  100 * (us[3] / us[1] - 1));
      rows.push_back({{"mix", name},
                      {"kernel", kernel},
                      {"backward_us", us[1]},
                      {"deterministic_backward_us", us[3]},
                      {"over", us[3] / us[1]}});
    }
  }
  return rows;
}

nlohmann::ordered_json warm_up(const Site& site) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  using Clock = std::chrono::steady_clock;
  const auto ms_since = [](Clock::time_point begin) {
    at::cuda::getCurrentCUDAStream().synchronize();
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  std::int64_t next = 1000;  // no shape comes twice: plans stay in the process
  for (const char* kernel : {"cudnn", ""}) {
    for (const bool warm : {false, true}) {
      std::vector<std::pair<std::int64_t, std::int64_t>> groups;
      for (int i = 0; i < 6; ++i) groups.emplace_back(next += 24, 4);
      const Schedule schedule = wholes(groups);
      Engine engine(one_rank_of(1), EngineOptions{.kernel = kernel, .rates = {}, .flash_attention_3 = {}});
      engine.begin_step(schedule);
      Packed x(schedule.num_tokens, site.world.device);
      for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->set_requires_grad(true);
      at::cuda::getCurrentCUDAStream().synchronize();
      auto begin = Clock::now();
      const std::size_t calls = warm ? engine.warm_up(schedule, at::kBFloat16, site.world.device) : 0;
      const double warming = ms_since(begin);
      const auto layer = [&] {
        begin = Clock::now();
        engine.attention(x.q, x.k, x.v).backward(x.grad);
        const double took = ms_since(begin);
        for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->mutable_grad() = at::Tensor();
        return took;
      };
      const double first = layer(), second = layer();
      std::printf("%-6s %zu shapes: warm-up %.1f ms (%zu calls), first layer %.1f ms, second %.1f ms\n",
                  *kernel == '\0' ? "table" : kernel, groups.size(), warming, calls, first, second);
      rows.push_back({{"kernels", *kernel == '\0' ? "table" : kernel},
                      {"shapes", groups.size()},
                      {"warmed_up", warm},
                      {"warm_up_ms", warming},
                      {"first_layer_ms", first},
                      {"second_layer_ms", second}});
    }
  }
  return rows;
}

}  // namespace zellige::bench
