// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/measure.h"

#include <algorithm>

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>

namespace zellige::bench {

std::vector<double> time_us(const Site& site, int repetitions, const std::vector<std::function<void()>>& parts) {
  const auto meet = [&] {
    if (site.world.group) {
      std::vector<at::Tensor> one = {at::ones({1}, at::device(site.world.device))};
      if (const auto work = site.world.group->allreduce(one)) work->wait();
    }
    at::cuda::getCurrentCUDAStream().synchronize();
  };
  for (const auto& part : parts) part();  // warms up: modules, plans of cuDNN, the caching allocator
  at::Tensor times = at::empty({repetitions, std::ssize(parts)}, at::kDouble);
  for (int i = 0; i < repetitions; ++i) {
    meet();
    std::vector<at::cuda::CUDAEvent> events;
    for (std::size_t j = 0; j <= parts.size(); ++j) events.emplace_back(cudaEventDefault);
    events[0].record();
    for (std::size_t j = 0; j < parts.size(); ++j) {
      parts[j]();
      events[j + 1].record();
    }
    at::cuda::getCurrentCUDAStream().synchronize();
    for (std::size_t j = 0; j < parts.size(); ++j) {
      times[i][static_cast<std::int64_t>(j)] = 1e3 * events[j].elapsed_time(events[j + 1]);
    }
  }
  if (site.world.group) {
    std::vector<at::Tensor> slowest = {times.to(site.world.device)};
    c10d::AllreduceOptions options;
    options.reduceOp = c10d::ReduceOp::MAX;
    if (const auto work = site.world.group->allreduce(slowest, options)) work->wait();
    times = slowest[0].to(at::kCPU);
  }
  std::vector<double> result;
  const at::Tensor medians = std::get<0>(times.median(0));
  for (std::size_t j = 0; j < parts.size(); ++j) result.push_back(medians[static_cast<std::int64_t>(j)].item<double>());
  return result;
}

Packed::Packed(std::int64_t tokens, at::Device device, int heads) {
  const auto draw = [&] {
    return at::randn({tokens, heads, kHeadDim}, at::TensorOptions(device).dtype(at::kBFloat16));
  };
  q = draw();
  k = draw();
  v = draw();
  grad = draw();
}

Placement place(int ranks, const std::vector<Entry>& entries) {
  Placement placement;
  placement.ranks = ranks;
  placement.model = model_preset("wan2.1-t2v-1.3b");
  for (const Entry& entry : entries) {
    PlacedSequence placed;
    placed.id = std::string("s").append(std::to_string(placement.sequences.size()));
    placed.bucket = std::to_string(entry.tokens);
    placed.tokens = {entry.tokens};
    placed.config = entry.config;
    placed.ranks = entry.ranks;
    placement.sequences.push_back(placed);
  }
  return placement;
}

ComputeOnly::ComputeOnly(const Schedule& schedule, const KernelTable& kernels, at::Device device)
    : kernels_(kernels), whole_(schedule.num_tokens, device) {
  const at::TensorOptions options = at::TensorOptions(device).dtype(at::kBFloat16);
  calls_ = kernels.plan_whole(schedule, options);
  out_ = at::empty_like(whole_.q);
  grads_ = {at::empty_like(whole_.q), at::empty_like(whole_.q), at::empty_like(whole_.q)};
  lse_.resize(calls_.size());
  const StepPlan plan = make_step_plan(schedule);
  for (const ShardPlan& shard : plan.shards) {
    auto& stages = shards_.emplace_back();
    for (std::size_t wave = 0; wave < shard.waves.size(); ++wave) {
      if (!shard.is_active(wave)) continue;
      const int heads = shard.waves[wave].query.count;
      for (const TokenRange& block : shard.blocks) {
        stages.push_back({Packed(shard.queries.count, device, heads), Packed(block.count, device, heads), {}, {}});
      }
    }
  }
}

void ComputeOnly::forward() {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    lse_[i] = kernels_.forward(calls_[i], whole_.q, whole_.k, whole_.v, out_);
  }
  for (auto& stages : shards_) {
    for (Shard& shard : stages) {
      const AttentionOutput result =
          kernels_.forward(shard.queries.q.unsqueeze(0), shard.keys.k.unsqueeze(0), shard.keys.v.unsqueeze(0));
      shard.out = result.out;
      shard.lse = result.lse;
    }
  }
}

void ComputeOnly::backward() {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    kernels_.backward(calls_[i], whole_.grad, whole_.q, whole_.k, whole_.v, out_, lse_[i], grads_);
  }
  for (auto& stages : shards_) {
    for (Shard& shard : stages) {
      kernels_.backward(shard.queries.grad.unsqueeze(0), shard.queries.q.unsqueeze(0), shard.keys.k.unsqueeze(0),
                        shard.keys.v.unsqueeze(0), shard.out, shard.lse);
    }
  }
}

double forward_flops(double batch, double queries, double keys, int heads) {
  return 4 * batch * heads * queries * keys * kHeadDim;
}

std::string device_name(const Site& site) {
  const cudaDeviceProp* properties = at::cuda::getDeviceProperties(site.world.device.index());
  return std::to_string(site.world.ranks) + " x " + properties->name + ", torch 2.11";
}

}  // namespace zellige::bench
