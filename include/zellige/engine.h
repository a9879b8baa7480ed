// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "zellige/profile.h"
#include "zellige/schedule.h"

namespace zellige {

/// What the engine has sent since begin_step, this rank, all layers, in payload bytes that left the rank.
struct EngineCounters {
  std::int64_t all_gather_bytes = 0;
  std::int64_t ulysses_bytes = 0;
  std::int64_t ring_bytes = 0;
  std::int64_t collectives = 0;  ///< exchanges made, empty ones included
  double exchange_wait_s = 0;    ///< host time spent in exchanges and waits for them
};

/// Time in which computing stood still for exchanges, by phase: on a GPU device time, by events around the waits; on
/// the CPU by the clock. What an exchange beside other work hides is not in it.
struct ExposedExchange {
  double a_s = 0, ring_s = 0, b_s = 0;
  double total_s() const { return a_s + ring_s + b_s; }
};

/// What the attention of a step did on this rank since begin_step, all layers.
struct StepReport {
  EngineCounters counters;
  ExposedExchange exposed;
  std::int64_t forward_layers = 0;   ///< layers run forward; again where checkpointing recomputes them
  std::int64_t backward_layers = 0;  ///< layers run backward
};

struct EngineOptions {
  /// The attention kernel to use; empty = the best for each shape. On CUDA "flash-attention-3", "cudnn",
  /// "flash-attention-2" (all whole sequences in one block-diagonal call, as the paper does), "memory-efficient" (fp32
  /// too); "aten-cpu-flash": fp64, fp32 and bf16 on the CPU; "plain": the formula, any device, holds the whole matrix
  /// of probabilities (for tests).
  std::string kernel;
  /// Measured rates by which the best is chosen: a profile's `kernels`. Empty: by rules measured on an H200.
  std::vector<KernelRate> rates;
  /// Library that registers FlashAttention-3's operators; empty: what the process has registered already.
  std::string flash_attention_3;
  /// Gradients are the same bits in every run of the same placement. Forward is so in any case. On CUDA backward then
  /// runs on kernels that can: FlashAttention-3 and FlashAttention-2 in their deterministic modes, which are slower
  /// (docs/evaluation.md); cuDNN and the memory-efficient kernel can not and are left out, so fp32 has none.
  bool deterministic = false;
};

/// The Coalesced Attention Engine (paper section IV-D): runs the attention of every sequence that has tokens on this
/// rank, whole ones in dense batches and shards of split ones with their exchanges, as one differentiable function.
///
///   zellige::Engine engine(group);
///   engine.begin_step(zellige::lower(plan.placement, rank));     // collective
///   at::Tensor out = engine.attention(q, k, v);                  // collective, once a layer, backward too
///
/// Threads: one call at a time per Engine; one Engine a rank.
class Engine {
 public:
  /// @param group  the world group: any c10d backend with alltoall_base. Its size must be the schedule's ranks.
  /// Errors: Code::input without a group, or for an unknown kernel; Code::device for a kernel or library that is not
  ///   there.
  explicit Engine(c10::intrusive_ptr<c10d::ProcessGroup> group, const EngineOptions& options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Takes the step's schedule; counters start again at zero. Outputs of earlier steps can still go backward, as long
  /// as all ranks do the same.
  /// Collective: every rank, before the first attention of a step. Ranks compare their placement digests here.
  /// Errors: Code::communication on every rank when the digests differ, naming the ranks; Code::input, before any
  ///   communication, for a schedule of another rank or world size.
  void begin_step(const Schedule& schedule);

  /// Runs every kernel call of a schedule's layer once, forward and backward, on tensors of its own, for shapes that
  /// this engine has not warmed up yet: kernels load their modules and build their plans (cuDNN up to a second for a
  /// new shape, once a thread) outside of what is timed. Exchanges nothing; not collective.
  /// @return  calls run
  /// Errors: as attention, and Code::device when there is no memory for it.
  std::size_t warm_up(const Schedule& schedule, at::ScalarType dtype, at::Device device);

  /// Attention of this rank's tokens: softmax(q k^T / sqrt(head_dim)) v within each sequence, never across.
  /// @param q    [tokens_local, heads, head_dim]     fp64, fp32 or bf16; order = schedule.segments
  /// @param k,v  [tokens_local, kv_heads, head_dim]  same dtype
  /// @return     [tokens_local, heads, head_dim], same order and dtype; differentiable in q, k and v, once
  /// Collective: every rank calls this once per layer, and runs backward through it, in the same order; also a rank
  ///   whose tokens_local is 0, whose q, k, v must require gradients where the other ranks' do. Under activation
  ///   checkpointing the call is made again inside backward, by all ranks alike.
  /// Errors: Code::input for shapes before any communication, Code::device for a device or dtype without a kernel;
  ///   Code::communication after it, Code::device when memory runs out in a layer; Engine unusable afterwards.
  at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

  /// The step's schedule. Errors: Code::input before the first begin_step.
  const Schedule& schedule() const;
  EngineCounters counters() const;
  /// The step so far. On a GPU waits for the exchanges that are queued.
  StepReport report();

 private:
  std::shared_ptr<struct EngineState> state_;  ///< shared with the graphs that go backward through it
};

}  // namespace zellige
