// SPDX-License-Identifier: Apache-2.0
// One attention layer of the evaluation's high-load suite on two GPUs, as planned, against the same kernel calls with
// no exchange: with exchanges one after the other, beside other work, in two waves; and by FlashAttention-2 in one
// packed call with serial exchanges, the kind of executor that the paper and KnapFormer describe.
#include <cstdio>

#include <c10/cuda/CUDACachingAllocator.h>

#include "bench/gpu/measure.h"
#include "zellige/batch.h"
#include "zellige/engine.h"

namespace zellige::bench {
namespace {

/// A workload of the evaluation on two ranks, with its budget of tokens a rank: videos split over both by heads, images
/// whole on the rank that has less to do, largest first.
std::vector<Entry> entries_of(const std::string& workload) {
  const Batch batch = make_workload(workload, 2);
  std::vector<Entry> entries;
  double work[2] = {0, 0};
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const Bucket& bucket = batch.bucket_of(static_cast<SequenceIndex>(i));
    const auto tokens = bucket.tokens.value;
    if (bucket.kind == MediaKind::video) {
      entries.push_back({tokens, {1, 2, 1}, {0, 1}});
      continue;
    }
    const Rank rank = work[0] <= work[1] ? 0 : 1;
    work[rank] += static_cast<double>(tokens) * static_cast<double>(tokens);
    entries.push_back({tokens, {1, 1, 1}, {rank}});
  }
  return entries;
}

}  // namespace

nlohmann::ordered_json layer_suites(const Site& site) {
  struct Variant {
    const char* name;
    const char* kernel;
    bool overlap;
    int waves;
  };
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const bool nvlink = site.link == "nvlink";
  for (const std::string name : {"high:V35", "high:V50", "high:V60"}) {
    if (site.link == "host" && name == "high:V60") continue;
    if (site.link == "sockets" && name != "high:V35") continue;
    if (site.quick && name != "high:V35") continue;
    const std::vector<Entry> entries = entries_of(name);
    const int repetitions = name == "high:V35" ? 4 : 2;
    std::vector<Variant> variants = {
        {"serial", "", false, 1}, {"overlap", "", true, 1}, {"overlap, 2 waves", "", true, 2}};
    if (!nvlink) {
      variants.push_back({"overlap, 3 waves", "", true, 3});
      variants.push_back({"overlap, 6 waves", "", true, 6});
    } else if (name != "high:V60") {
      variants.push_back({"FlashAttention-2 packed, serial", "flash-attention-2", false, 1});
    }
    const auto place_for = [&](const Variant& variant) {
      Placement placement = place(2, entries);
      placement.exec.overlap = variant.overlap;
      placement.exec.waves = variant.waves;
      return lower(placement, site.world.rank);
    };
    const KernelTable kernels;
    ComputeOnly only(place_for(variants[0]), kernels, site.world.device);
    Packed x(place_for(variants[0]).num_tokens, site.world.device);
    for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->set_requires_grad(true);
    const auto forget = [&] {
      for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->mutable_grad() = at::Tensor();
    };

    // All in turn within each repetition: clocks drift, and with them whatever is measured later.
    std::vector<std::unique_ptr<Engine>> engines;
    std::vector<std::int64_t> peaks;
    std::vector<std::function<void()>> parts = {[&] { only.forward(); }, [&] { only.backward(); }};
    at::Tensor out;
    const c10::DeviceIndex gpu = site.world.device.index();
    for (const Variant& variant : variants) {
      Engine& engine = *engines.emplace_back(std::make_unique<Engine>(
          site.world.group, EngineOptions{.kernel = variant.kernel, .rates = {}, .flash_attention_3 = {}}));
      engine.begin_step(place_for(variant));
      const auto allocated = [&] { return c10::cuda::CUDACachingAllocator::getDeviceStats(gpu).allocated_bytes[0]; };
      engine.attention(x.q, x.k, x.v).backward(x.grad);  // makes the step's buffers
      forget();
      c10::cuda::CUDACachingAllocator::resetPeakStats(gpu);
      const std::int64_t before = allocated().current;
      engine.attention(x.q, x.k, x.v).backward(x.grad);
      peaks.push_back(allocated().peak - before);
      forget();
      parts.push_back([&] { out = engine.attention(x.q, x.k, x.v); });
      parts.push_back([&] {
        out.backward(x.grad);
        out = at::Tensor();
        forget();
      });
    }
    const std::vector<double> us = time_us(site, repetitions, parts);
    const double compute = us[0] + us[1];
    const double serial = us[2] + us[3];
    if (site.speaks()) {
      std::printf("%s %s: compute alone %.0f + %.0f us\n", name.c_str(), site.link.c_str(), us[0], us[1]);
    }
    rows.push_back({{"link", site.link},
                    {"workload", name},
                    {"variant", "compute alone"},
                    {"forward_us", us[0]},
                    {"backward_us", us[1]}});
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const double forward = us[2 * i + 2], backward = us[2 * i + 3];
      const double total = forward + backward;
      nlohmann::ordered_json row = {{"link", site.link},
                                    {"workload", name},
                                    {"variant", variants[i].name},
                                    {"forward_us", forward},
                                    {"backward_us", backward},
                                    {"over_compute", total / compute},
                                    {"peak_extra_bytes", peaks[i]},
                                    {"tokens", x.q.size(0)}};
      const double hidden = variants[i].overlap && serial > compute ? 1 - (total - compute) / (serial - compute) : 0;
      if (variants[i].overlap) row["hidden_share"] = hidden;
      if (site.speaks()) {
        std::printf("%s %s %-32s %9.0f + %9.0f us: %.4f of compute alone, %.0f%% hidden, peak %+.2f GiB\n",
                    name.c_str(), site.link.c_str(), variants[i].name, forward, backward, total / compute, 100 * hidden,
                    static_cast<double>(peaks[i]) / (1 << 30));
        std::fflush(stdout);
      }
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace zellige::bench
