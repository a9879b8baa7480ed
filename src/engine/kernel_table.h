// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/attention_kernel.h"
#include "engine/torch.h"
#include "engine/whole_batches.h"

namespace zellige {

enum class Direction { forward, backward };

/// Whole sequences that one kernel call runs.
struct WholeCall {
  TokenRange rows;          ///< in the packed tensors
  std::int64_t count = 0;   ///< sequences
  std::int64_t length = 0;  ///< of each, in a dense call; 0 in a packed one
  PackedLengths lengths;    ///< of a packed call
  const AttentionKernel* forward = nullptr;
  const AttentionKernel* backward = nullptr;

  bool is_dense() const { return length > 0; }
};

/// The kernels at hand and which one runs what: by measured rates where a profile has some, else by the order that was
/// measured on an H200 (docs/evaluation.md): FlashAttention-3 where it is registered, cuDNN forward up to 256 tokens
/// and where FlashAttention-3 is missing, FlashAttention-2, and the memory-efficient kernel for fp32.
class KernelTable {
 public:
  /// @param only   the one kernel to use, by name; empty: the best for each shape. "flash-attention-2" runs all whole
  ///               sequences in one packed call, as the paper does.
  /// @param rates  a profile's kernel rows
  /// Errors: Code::input for an unknown name, listing the known ones; Code::device for "flash-attention-3" when it is
  /// not
  ///   loaded.
  /// @param deterministic  backward on kernels that give the same bits in every run
  explicit KernelTable(std::string_view only = {}, std::vector<KernelRate> rates = {}, bool deterministic = false);
  KernelTable(const KernelTable&) = delete;
  KernelTable& operator=(const KernelTable&) = delete;

  /// Errors: Code::device when no kernel takes the shape.
  const AttentionKernel& choose(const AttentionShape& shape, Direction direction) const;

  /// As AttentionKernel, for any number of queries and keys, none included, any alignment, and for heads / kv_heads
  /// query heads a key/value head. `into` may be undefined; a result that is asked into a tensor is always there
  /// afterwards.
  AttentionOutput forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const at::Tensor& into = {}) const;
  AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& out, const at::Tensor& lse, const AttentionGradients& into = {}) const;

  /// How the whole sequences of a schedule run. The calls refer to this table.
  std::vector<WholeCall> plan_whole(const Schedule& schedule, const at::TensorOptions& options) const;
  /// One such call, on the packed tensors [tokens_local, (kv_)heads, head_dim]; the result goes to its rows of `out`.
  /// @return the log-sum-exp, for backward
  at::Tensor forward(const WholeCall& call, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& out) const;
  void backward(const WholeCall& call, const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
                const AttentionGradients& into) const;

  /// Multiprocessors that kernels which can leave to an exchange beside them.
  void set_spare_sms(int count) { settings_.spare_sms = count; }
  bool has(std::string_view kernel) const;

 private:
  using ShapeKey = std::tuple<c10::DeviceType, at::ScalarType, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                              std::int64_t, Direction>;

  const AttentionKernel& find(const AttentionShape& shape, Direction direction) const;
  AttentionOutput run_forward(const AttentionKernel& kernel, const at::Tensor& q, const at::Tensor& k,
                              const at::Tensor& v, const PackedLengths* lengths, const at::Tensor& into) const;
  AttentionGradients run_backward(const AttentionKernel& kernel, const at::Tensor& grad_out, const at::Tensor& q,
                                  const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                                  const at::Tensor& lse, const PackedLengths* lengths,
                                  const AttentionGradients& into) const;

  std::vector<std::unique_ptr<const AttentionKernel>> kernels_;  ///< the better ones first
  std::vector<KernelRate> rates_;
  bool whole_together_ = false;
  KernelSettings settings_;
  mutable std::mutex choices_mutex_;
  mutable std::map<ShapeKey, const AttentionKernel*> choices_;  ///< what `choose` found
};

/// The dtype in which partial results are merged and gradients summed: fp64 for fp64, else fp32.
at::ScalarType accumulation_type(at::ScalarType type);

/// Merges the attention over more keys into a running result, by log-sum-exp. Two empty key sets stay zero and -inf.
/// @param out, lse    running result [batch, queries, heads, head_dim] in accumulation_type, [batch, heads, queries]
/// @param more        result over other keys, of the same shapes
void merge_partial(at::Tensor& out, at::Tensor& lse, const AttentionOutput& more);

}  // namespace zellige
