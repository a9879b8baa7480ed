// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/exchanger.h"
#include "engine/kernel_table.h"
#include "engine/step_plan.h"
#include "engine/torch.h"

namespace zellige {

/// What forward leaves to backward beside q, k, v and the output: log-sum-exps, and of split sequences what exchange A
/// brought and what was computed for others. Undefined where backward can take a view of the rank's own tensors
/// instead, or fetches again.
struct LayerMemory {
  std::vector<at::Tensor> whole_lse;  ///< [whole calls]

  struct Shard {
    at::Tensor q, out;  ///< [queries, wave's heads, head_dim], where h > 1
    at::Tensor k, v;    ///< the resident block, where kept and q * h > 1
    at::Tensor lse;     ///< [1, wave's heads, queries], where the wave has heads of the shard
  };
  std::vector<std::vector<Shard>> shards;  ///< [waves][shards]

  /// As one list of fixed length for the same plan, and back.
  std::vector<at::Tensor> flatten() const;
  static LayerMemory unflatten(const std::vector<at::Tensor>& tensors, std::size_t from, const StepPlan& plan,
                               std::size_t whole_calls);
};

/// What a layer runs with.
struct LayerWork {
  const StepPlan& plan;
  const std::vector<WholeCall>& whole;
  const KernelTable& kernels;
  Exchanger& exchanger;
};

/// Runs one attention layer, forward: whole groups and the waves of the shards with their exchanges (engine.md, "One
/// layer on one rank"). Outside autograd.
/// @param q,k,v   [tokens_local, (kv_)heads, head_dim], elements of a head adjacent
/// @param memory  filled when not null
/// Collective.
at::Tensor layer_forward(const LayerWork& work, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         LayerMemory* memory);

/// Backward of the same layer. @param out  what forward returned
/// Collective.
AttentionGradients layer_backward(const LayerWork& work, const at::Tensor& grad_out, const at::Tensor& q,
                                  const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                                  const LayerMemory& memory);

}  // namespace zellige
