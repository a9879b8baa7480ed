// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/kernel_table.h"
#include "engine/step_plan.h"
#include "engine/torch.h"
#include "zellige/placement.h"
#include "zellige/process_group.h"
#include "zellige/schedule.h"

/// What the benchmarks on GPUs share: how things are timed, and work without exchanges to compare with.
namespace zellige::bench {

constexpr int kHeads = 12;
constexpr int kHeadDim = 128;

/// One benchmark's surroundings: this process's GPU, and the others where there are several.
struct Site {
  WorldGroup world;
  std::string link = "nvlink";  ///< how the GPUs are joined: a label; the launcher's NCCL variables decide
  std::string commit;
  bool quick = false;

  bool speaks() const { return world.rank == 0; }
};

/// Median over repetitions of the longest rank's time, microseconds. All ranks start a repetition together.
/// @param parts  what is timed one after the other; one result each
std::vector<double> time_us(const Site& site, int repetitions, const std::vector<std::function<void()>>& parts);

/// Packed q, k, v and the gradient of the output, [tokens, heads, head_dim] bf16.
struct Packed {
  Packed(std::int64_t tokens, at::Device device, int heads = kHeads);
  at::Tensor q, k, v, grad;
};

/// Sequences on one rank, or split: tokens, configuration, ranks.
struct Entry {
  std::int64_t tokens = 0;
  Configuration config;
  std::vector<Rank> ranks;
};
Placement place(int ranks, const std::vector<Entry>& entries);

/// The attention that a rank of a schedule computes, with the same kernels on the same shapes, and nothing else: no
/// exchange, no packing, no merging.
class ComputeOnly {
 public:
  ComputeOnly(const Schedule& schedule, const KernelTable& kernels, at::Device device);
  void forward();
  void backward();

 private:
  struct Shard {
    Packed queries, keys;
    at::Tensor out, lse;
  };
  const KernelTable& kernels_;
  Packed whole_;
  std::vector<WholeCall> calls_;
  at::Tensor out_;
  AttentionGradients grads_;
  std::vector<at::Tensor> lse_;
  std::vector<std::vector<Shard>> shards_;
};

/// Floating-point operations of attention forward; backward has 2.5 times as many.
double forward_flops(double batch, double queries, double keys, int heads = kHeads);

std::string device_name(const Site& site);

nlohmann::ordered_json kernel_table(const Site& site);
nlohmann::ordered_json kernel_rates(const Site& site);
nlohmann::ordered_json split_sequence(const Site& site);
nlohmann::ordered_json layer_suites(const Site& site);
nlohmann::ordered_json exchange_share(const Site& site);
nlohmann::ordered_json launch_overhead(const Site& site);
nlohmann::ordered_json packing_share(const Site& site);
nlohmann::ordered_json deterministic(const Site& site);
nlohmann::ordered_json warm_up(const Site& site);

}  // namespace zellige::bench
