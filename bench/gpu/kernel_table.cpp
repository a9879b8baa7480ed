// SPDX-License-Identifier: Apache-2.0
// Whole sequences by the kernel table against one block-diagonal call of FlashAttention-2, the way of the paper's
// engine (section IV-D), and each kernel alone; and the rates of each kernel by shape, which a profile's `kernels` can
// hold.
#include <cstdio>

#include "bench/gpu/measure.h"

namespace zellige::bench {
namespace {

struct Mix {
  const char* name;
  double goal;        ///< against one FlashAttention-2 call, with FlashAttention-3
  double cudnn_goal;  ///< with cuDNN alone; 0: none
  std::vector<std::pair<std::int64_t, std::int64_t>> groups;  ///< length, count
};

std::vector<Mix> mixes() {
  std::vector<std::pair<std::int64_t, std::int64_t>> distinct;
  for (std::int64_t i = 119; i >= 0; --i) distinct.emplace_back(200 + 37 * i, 1);
  return {{"64x256+32x1560+16x3600+8x8160", 1.85, 1.6, {{8160, 8}, {3600, 16}, {1560, 32}, {256, 64}}},
          {"100x256+60x1560", 1.85, 0, {{1560, 60}, {256, 100}}},
          {"40x8160", 1.85, 0, {{8160, 40}}},
          {"120 different lengths", 1.75, 0, distinct},
          {"400x256", 1.25, 0, {{256, 400}}}};
}

}  // namespace

nlohmann::ordered_json kernel_table(const Site& site) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Mix& mix : mixes()) {
    Schedule schedule;
    schedule.heads = schedule.kv_heads = kHeads;
    schedule.head_dim = kHeadDim;
    double flops = 0;
    for (const auto& [length, count] : mix.groups) {
      schedule.whole_groups.push_back({.length = length, .count = count, .local_begin = schedule.num_tokens});
      schedule.num_tokens += length * count;
      flops += forward_flops(static_cast<double>(count), static_cast<double>(length), static_cast<double>(length));
    }
    const Packed x(schedule.num_tokens, site.world.device);
    const at::Tensor out = at::empty_like(x.q);
    const AttentionGradients grads = {at::empty_like(x.q), at::empty_like(x.q), at::empty_like(x.q)};
    // All in turn within each repetition: clocks drift, and with them whatever is measured later.
    struct Variant {
      std::string name;
      std::unique_ptr<KernelTable> table;
      std::vector<WholeCall> calls;
      std::vector<at::Tensor> lse;
    };
    std::vector<Variant> variants;
    for (const char* kernel : {"flash-attention-2", "", "flash-attention-3", "cudnn"}) {
      try {
        Variant variant{*kernel == '\0' ? "table" : kernel, std::make_unique<KernelTable>(kernel), {}, {}};
        variant.calls = variant.table->plan_whole(schedule, x.q.options());
        variant.lse.resize(variant.calls.size());
        variants.push_back(std::move(variant));
      } catch (const std::exception&) {
        continue;  // not on this machine
      }
    }
    std::vector<std::function<void()>> parts;
    for (Variant& one : variants) {
      parts.push_back([&] {
        for (std::size_t i = 0; i < one.calls.size(); ++i) {
          one.lse[i] = one.table->forward(one.calls[i], x.q, x.k, x.v, out);
        }
      });
      parts.push_back([&] {
        for (std::size_t i = 0; i < one.calls.size(); ++i) {
          one.table->backward(one.calls[i], x.grad, x.q, x.k, x.v, out, one.lse[i], grads);
        }
      });
    }
    const std::vector<double> us = time_us(site, 9, parts);
    const double reference = us[0] + us[1];
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const double forward = us[2 * i], backward = us[2 * i + 1];
      const double ratio = reference / (forward + backward);
      const double goal = variants[i].name == "table" ? mix.goal : variants[i].name == "cudnn" ? mix.cudnn_goal : 0;
      std::printf("%-32s %-18s %9.0f + %9.0f us  %4.0f / %4.0f TFLOP/s  %.3fx (goal %.2f) in %zu calls\n", mix.name,
                  variants[i].name.c_str(), forward, backward, flops / forward / 1e6, 2.5 * flops / backward / 1e6,
                  ratio, goal, variants[i].calls.size());
      nlohmann::ordered_json row = {{"mix", mix.name},
                                    {"kernels", variants[i].name},
                                    {"tokens", schedule.num_tokens},
                                    {"calls", variants[i].calls.size()},
                                    {"forward_us", forward},
                                    {"backward_us", backward},
                                    {"fa2_one_call_us", reference},
                                    {"ratio", ratio}};
      if (goal > 0) row["goal"] = goal;
      rows.push_back(row);
    }
  }
  return rows;
}

nlohmann::ordered_json kernel_rates(const Site& site) {
  const std::vector<std::tuple<std::int64_t, std::int64_t, int>> shapes = {
      {256, 16, 12}, {256, 128, 12}, {512, 64, 12}, {1024, 8, 12},  {1024, 64, 12},
      {1560, 4, 12}, {1560, 32, 12}, {3600, 1, 12}, {3600, 16, 12}, {8160, 1, 12},
      {8160, 8, 12}, {32760, 1, 12}, {32760, 1, 6}, {63960, 1, 6},  {63960, 1, 12}};
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [length, count, heads] : shapes) {
    const Packed x(length * count, site.world.device, heads);
    const auto batch = [&, n = length, c = count](const at::Tensor& packed) { return packed.unflatten(0, {c, n}); };
    for (const char* kernel : {"flash-attention-3", "cudnn", "flash-attention-2"}) {
      std::unique_ptr<KernelTable> table;
      try {
        table = std::make_unique<KernelTable>(kernel);
      } catch (const std::exception&) {
        continue;
      }
      AttentionOutput result;
      const auto forward = [&] { result = table->forward(batch(x.q), batch(x.k), batch(x.v)); };
      const auto backward = [&] {
        table->backward(batch(x.grad), batch(x.q), batch(x.k), batch(x.v), result.out, result.lse);
      };
      const std::vector<double> us = time_us(site, 5, {forward, backward});
      const double flops =
          forward_flops(static_cast<double>(count), static_cast<double>(length), static_cast<double>(length), heads);
      const auto add = [&, n = length, c = count, h = heads](const char* direction, double work, double took) {
        rows.push_back({{"kernel", kernel},
                        {"direction", direction},
                        {"length", n},
                        {"count", c},
                        {"heads", h},
                        {"time_us", took},
                        {"flops_per_us", static_cast<std::int64_t>(work / took)}});
      };
      add("forward", flops, us[0]);
      add("backward", 2.5 * flops, us[1]);
      std::printf("%4lld x %6lld, %2d heads  %-18s %4.0f / %4.0f TFLOP/s\n", static_cast<long long>(count),
                  static_cast<long long>(length), heads, kernel, flops / us[0] / 1e6, 2.5 * flops / us[1] / 1e6);
    }
  }
  return rows;
}

}  // namespace zellige::bench
