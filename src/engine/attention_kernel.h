// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/torch.h"

namespace zellige {

/// One dense attention call, as far as the choice of a kernel depends on it.
struct AttentionShape {
  c10::DeviceType device = c10::DeviceType::CPU;
  at::ScalarType dtype = at::kFloat;
  std::int64_t batch = 0, queries = 0, keys = 0, heads = 0, head_dim = 0;
};

/// out [batch, queries, heads, head_dim] in the dtype of q; empty key sets give zero.
/// lse [batch, heads, queries], natural log, fp64 for fp64 inputs and fp32 for all others; empty key sets give -inf.
struct AttentionOutput {
  at::Tensor out, lse;
};

/// In the shapes and the dtype of q, k, v.
struct AttentionGradients {
  at::Tensor q, k, v;
};

/// Attention of a dense batch, without mask: softmax(scale q k^T) v. All tensors are [batch, tokens, heads, head_dim]
/// views, elements of a head adjacent, at least one query and one key, as many key/value heads as query heads.
/// Threads: const, any number at a time.
class AttentionKernel {
 public:
  virtual ~AttentionKernel() = default;
  virtual std::string_view name() const = 0;
  virtual bool supports(const AttentionShape& shape) const = 0;
  virtual AttentionOutput forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  double scale) const = 0;
  /// Gradients of one block of keys. @param out, lse  the final ones, over all blocks, whatever keys are given.
  virtual AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                                      const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
                                      double scale) const = 0;
};

/// The kernels at hand and which one runs what.
/// "aten-cpu-flash": ATen's blocked CPU kernel, fp64, fp32, bf16. "plain": matrix of probabilities in at least fp32,
/// any device and dtype; for tests, never chosen unasked.
class KernelTable {
 public:
  /// @param only  the one kernel to use, by name; empty: the best for each shape
  /// Errors: Code::input for an unknown name, listing the known ones.
  explicit KernelTable(std::string_view only = {});

  /// Errors: Code::device when no kernel takes the shape.
  const AttentionKernel& choose(const AttentionShape& shape) const;

  /// As AttentionKernel, for any number of queries and keys, none included, and for heads / kv_heads query heads a
  /// key/value head.
  AttentionOutput forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const;
  AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& out, const at::Tensor& lse) const;

 private:
  std::vector<std::unique_ptr<const AttentionKernel>> kernels_;  ///< the better ones first
};

/// The dtype in which partial results are merged and gradients summed: fp64 for fp64, else fp32.
at::ScalarType accumulation_type(at::ScalarType type);

/// Merges the attention over more keys into a running result, by log-sum-exp. Two empty key sets stay zero and -inf.
/// @param out, lse    running result [batch, queries, heads, head_dim] in accumulation_type, [batch, heads, queries]
/// @param more        result over other keys, of the same shapes
void merge_partial(at::Tensor& out, at::Tensor& lse, const AttentionOutput& more);

}  // namespace zellige
