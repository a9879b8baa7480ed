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
    if (!nvlink && name == "high:V60") continue;
    if (site.quick && name != "high:V35") continue;
    const std::vector<Entry> entries = entries_of(name);
    const int repetitions = 3;
    std::vector<Variant> variants = {
        {"serial", "", false, 1}, {"overlap", "", true, 1}, {"overlap, 2 waves", "", true, 2}};
    if (nvlink) variants.push_back({"FlashAttention-2 packed, serial", "flash-attention-2", false, 1});
    double compute = 0, serial = 0;
    {
      const KernelTable kernels;
      ComputeOnly only(lower(place(2, entries), site.world.rank), kernels, site.world.device);
      const std::vector<double> us = time_us(site, repetitions, {[&] { only.forward(); }, [&] { only.backward(); }});
      compute = us[0] + us[1];
      if (site.speaks())
        std::printf("%s %s: compute alone %.0f + %.0f us\n", name.c_str(), site.link.c_str(), us[0], us[1]);
      rows.push_back({{"link", site.link},
                      {"workload", name},
                      {"variant", "compute alone"},
                      {"forward_us", us[0]},
                      {"backward_us", us[1]}});
    }
    for (const Variant& variant : variants) {
      Placement placement = place(2, entries);
      placement.exec.overlap = variant.overlap;
      placement.exec.waves = variant.waves;
      const Schedule schedule = lower(placement, site.world.rank);
      Engine engine(site.world.group, {.kernel = variant.kernel});
      engine.begin_step(schedule);
      Packed x(schedule.num_tokens, site.world.device);
      for (at::Tensor* leaf : {&x.q, &x.k, &x.v}) leaf->set_requires_grad(true);
      at::Tensor out;
      c10::cuda::CUDACachingAllocator::emptyCache();
      c10::cuda::CUDACachingAllocator::resetPeakStats(site.world.device.index());
      const auto before = c10::cuda::CUDACachingAllocator::getDeviceStats(site.world.device.index());
      const std::vector<double> us = time_us(site, repetitions,
                                             {[&] { out = engine.attention(x.q, x.k, x.v); },
                                              [&] {
                                                out.backward(x.grad);
                                                for (at::Tensor* leaf : {&x.q, &x.k, &x.v})
                                                  leaf->mutable_grad() = at::Tensor();
                                              }});
      const auto after = c10::cuda::CUDACachingAllocator::getDeviceStats(site.world.device.index());
      const std::int64_t peak = after.allocated_bytes[0].peak - before.allocated_bytes[0].current;
      const double total = us[0] + us[1];
      if (std::string(variant.name) == "serial") serial = total;
      nlohmann::ordered_json row = {{"link", site.link},        {"workload", name},
                                    {"variant", variant.name},  {"forward_us", us[0]},
                                    {"backward_us", us[1]},     {"over_compute", total / compute},
                                    {"peak_extra_bytes", peak}, {"tokens", schedule.num_tokens}};
      double hidden = 0;
      if (variant.overlap && serial > compute) {
        hidden = 1 - (total - compute) / (serial - compute);
        row["hidden_share"] = hidden;
      }
      if (site.speaks()) {
        std::printf("%s %s %-32s %9.0f + %9.0f us: %.4f of compute alone, %.0f%% hidden, peak %+.2f GiB\n",
                    name.c_str(), site.link.c_str(), variant.name, us[0], us[1], total / compute, 100 * hidden,
                    static_cast<double>(peak) / (1 << 30));
      }
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace zellige::bench
