// SPDX-License-Identifier: Apache-2.0
// What the engine costs beside the attention itself: four thread ranks against dense attention of the same sequences on
// one thread, forward and backward of two layers, 12 heads, sequences of up to 4,096 tokens.
//   build/bench/engine_overhead [bench/results/engine_overhead.json [repetitions [part of a name]]]
//
// Overhead = (busy CPU time of all ranks together) / (busy CPU time of the dense run) - 1. Ranks that wait sleep, so
// CPU time counts all that the ranks do (kernels on smaller shapes, packing, copies, merging, autograd) and nothing
// else, however many cores there are. Both are run alternately; of each the best run counts, since noise only adds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "bench/result_file.h"
#include "engine/torch.h"
#include "zellige/engine.h"
#include "zellige/thread_ranks.h"

namespace {

using namespace zellige;

constexpr int kRanks = 4;
constexpr int kHeads = 12;
constexpr int kLayers = 2;
constexpr double kGoal = 0.15;

struct Work {
  const char* name;
  Placement placement;
};

Placement place(int head_dim,
                const std::vector<std::tuple<std::int64_t, Configuration, std::vector<Rank>>>& sequences) {
  Placement placement;
  placement.ranks = kRanks;
  placement.model = model_preset("tiny");
  placement.model.head_dim = head_dim;
  for (const auto& [tokens, config, ranks] : sequences) {
    PlacedSequence placed;
    placed.id = std::string("s").append(std::to_string(placement.sequences.size()));
    placed.bucket = std::to_string(tokens);
    placed.tokens = {tokens};
    placed.config = config;
    placed.ranks = ranks;
    placement.sequences.push_back(placed);
  }
  return placement;
}

/// A video over all ranks, another over two of them, images of three sizes beside both.
Placement mixed(int head_dim) {
  std::vector<std::tuple<std::int64_t, Configuration, std::vector<Rank>>> sequences{{4096, {1, 4, 1}, {0, 1, 2, 3}},
                                                                                    {2560, {1, 2, 1}, {1, 2}}};
  for (const Rank rank : {0, 3, 0, 3, 0, 3}) sequences.push_back({1024, {1, 1, 1}, {rank}});
  for (int i = 0; i < 8; ++i) sequences.push_back({256, {1, 1, 1}, {i % kRanks}});
  return place(head_dim, sequences);
}

struct Times {
  double cpu_s = 0;
  double wall_s = 0;
};

double cpu_now() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);  // all threads of the process
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class Clock {
 public:
  Times elapsed() const {
    return {cpu_now() - cpu_, std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_).count()};
  }

 private:
  double cpu_ = cpu_now();
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
};

/// q, k, v as projections give them, token by token, and the gradient of the output.
struct Tensors {
  explicit Tensors(at::IntArrayRef sizes) : q(leaf(sizes)), k(leaf(sizes)), v(leaf(sizes)), grad(at::randn(sizes)) {}
  static at::Tensor leaf(at::IntArrayRef sizes) { return at::randn(sizes).set_requires_grad(true); }
  at::Tensor q, k, v, grad;
};

/// Torch's attention on the calling thread, equal lengths as one batch [count, length, heads, head_dim] each.
class Dense {
 public:
  explicit Dense(const Placement& placement) {
    std::map<std::int64_t, std::int64_t> count_of;
    for (const PlacedSequence& placed : placement.sequences) ++count_of[placed.tokens.value];
    for (const auto& [length, count] : count_of) {
      batches_.emplace_back(at::IntArrayRef({count, length, kHeads, placement.model.head_dim}));
    }
  }

  Times run() const {
    const Clock clock;
    for (int layer = 0; layer < kLayers; ++layer) {
      std::vector<at::Tensor> outs;
      for (const Tensors& x : batches_) {
        outs.push_back(at::scaled_dot_product_attention(x.q.transpose(1, 2), x.k.transpose(1, 2), x.v.transpose(1, 2)));
      }
      for (std::size_t i = 0; i < outs.size(); ++i) outs[i].transpose(1, 2).backward(batches_[i].grad);
    }
    return clock.elapsed();
  }

 private:
  std::vector<Tensors> batches_;
};

struct Comparison {
  Times dense{1e9, 1e9};
  Times engine{1e9, 1e9};
};

/// Steps of the engine on all ranks, and between them the dense run on one rank's thread while the others sleep.
Comparison compare(const Placement& placement, int repetitions) {
  Comparison best;
  const auto keep_best = [](Times& so_far, Times now) {
    so_far = {std::min(so_far.cpu_s, now.cpu_s), std::min(so_far.wall_s, now.wall_s)};
  };
  run_thread_ranks(kRanks,
                   [&](Rank rank, const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
                     const Dense dense(rank == 0 ? placement : Placement());
                     const Schedule schedule = lower(placement, rank);
                     const Tensors x({schedule.num_tokens, kHeads, schedule.head_dim});
                     Engine engine(group);
                     for (int i = -1; i < repetitions; ++i) {  // the first step warms up
                       if (rank == 0) {
                         const Times times = dense.run();
                         if (i >= 0) keep_best(best.dense, times);
                       }
                       group->barrier()->wait();
                       const Clock clock;
                       engine.begin_step(schedule);
                       for (int layer = 0; layer < kLayers; ++layer) engine.attention(x.q, x.k, x.v).backward(x.grad);
                       group->barrier()->wait();
                       if (rank == 0 && i >= 0) keep_best(best.engine, clock.elapsed());
                       group->barrier()->wait();
                     }
                   },
                   {.timeout = std::chrono::minutes(10), .threads_per_rank = 1});
  return best;
}

nlohmann::ordered_json measure(const Work& work, int repetitions) {
  const auto [dense, engine] = compare(work.placement, repetitions);
  const double overhead = engine.cpu_s / dense.cpu_s - 1;
  std::printf("%-28s dense %.3f s, engine %.3f s busy: overhead %+.1f%% (goal %.0f%%); wall %.3f s, %.3f s\n",
              work.name, dense.cpu_s, engine.cpu_s, 100 * overhead, 100 * kGoal, dense.wall_s, engine.wall_s);
  std::fflush(stdout);
  std::int64_t tokens = 0;
  for (const PlacedSequence& placed : work.placement.sequences) tokens += placed.tokens.value;
  return {{"work", work.name},
          {"ranks", kRanks},
          {"sequences", work.placement.sequences.size()},
          {"tokens", tokens},
          {"heads", kHeads},
          {"head_dim", work.placement.model.head_dim},
          {"layers", kLayers},
          {"dtype", "fp32"},
          {"repetitions", repetitions},
          {"dense_cpu_s", dense.cpu_s},
          {"engine_cpu_s", engine.cpu_s},
          {"dense_wall_s", dense.wall_s},
          {"engine_wall_s", engine.wall_s},
          {"overhead", overhead},
          {"goal", kGoal},
          {"met", overhead <= kGoal}};
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "bench/results/engine_overhead.json";
  const int repetitions = argc > 2 ? std::stoi(argv[2]) : 5;
  const std::string only = argc > 3 ? argv[3] : "";  // works whose name holds this
  const std::vector<Rank> all{0, 1, 2, 3};
  const std::vector<Work> works{
      {"mixed, head_dim 8", mixed(8)},
      {"mixed, head_dim 64", mixed(64)},
      {"4096 q1h4k1, head_dim 64", place(64, {{4096, {1, 4, 1}, all}})},
      {"4096 q2h2k1, head_dim 64", place(64, {{4096, {2, 2, 1}, all}})},
      {"4096 q4h1k1, head_dim 64", place(64, {{4096, {4, 1, 1}, all}})},
      {"4096 q1h2k2, head_dim 64", place(64, {{4096, {1, 2, 2}, all}})},
      {"4096 q1h1k4, head_dim 64", place(64, {{4096, {1, 1, 4}, all}})},
  };
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Work& work : works) {
    if (std::string(work.name).find(only) != std::string::npos) rows.push_back(measure(work, repetitions));
  }
  bench::write_results(path, "engine_overhead", bench::host_cpu(), "build/bench/engine_overhead " + path, rows);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "engine_overhead: %s\n", error.what());
  return 1;
}
