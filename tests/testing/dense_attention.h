// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace zellige::oracle {

/// A plain host tensor [tokens, heads, head_dim] of doubles, row-major.
struct HeadTensor {
  HeadTensor() = default;
  HeadTensor(std::int64_t num_tokens, int num_heads, int dim, double fill = std::numeric_limits<double>::quiet_NaN())
      : tokens(num_tokens), heads(num_heads), head_dim(dim), values(num_tokens * num_heads * dim, fill) {}

  double* row(std::int64_t token, int head) { return values.data() + (token * heads + head) * head_dim; }
  const double* row(std::int64_t token, int head) const { return values.data() + (token * heads + head) * head_dim; }

  std::int64_t tokens = 0;
  int heads = 0;
  int head_dim = 0;
  std::vector<double> values;
};

/// What goes into the attention of one sequence: q, grad_output [L, heads, head_dim]; k, v [L, kv_heads, head_dim].
struct AttentionInputs {
  HeadTensor q, k, v, grad_output;
};

/// What comes out: output, grad_q [L, heads, head_dim]; grad_k, grad_v [L, kv_heads, head_dim].
struct AttentionResult {
  HeadTensor output, grad_q, grad_k, grad_v;
};

/// Inputs of unit variance that follow from the seed alone.
AttentionInputs random_inputs(std::int64_t tokens, int heads, int kv_heads, int head_dim, std::uint64_t seed);

/// softmax(q k^T / sqrt(head_dim)) v and its gradients the long way: the whole matrix of probabilities of each head,
/// and the Jacobian of the softmax.
AttentionResult dense_attention(const AttentionInputs& inputs);

/// Largest absolute difference over all four tensors; infinite where either holds a NaN or the shapes differ.
double largest_error(const AttentionResult& a, const AttentionResult& b);

}  // namespace zellige::oracle
