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

/// Dense: out [batch, queries, heads, head_dim] in the dtype of q; empty key sets give zero.
/// lse [batch, heads, queries], natural log, fp64 for fp64 inputs and fp32 for all others; empty key sets give -inf.
/// Of sequences behind one another: out [tokens, heads, head_dim], lse [heads, tokens].
struct AttentionOutput {
  at::Tensor out, lse;
};

/// In the shapes and the dtype of q, k, v.
struct AttentionGradients {
  at::Tensor q, k, v;
};

/// Sequences of different lengths behind one another, each attending to itself.
struct PackedLengths {
  at::Tensor begins;  ///< [sequences + 1] int32, on the device: where each begins, and the end of the last
  std::vector<std::int64_t> lengths;
  std::int64_t longest = 0;
};

/// What the calls of a kernel table have in common. Kernels that heed it read it at each call, so it outlives them.
struct KernelSettings {
  int spare_sms = 0;           ///< multiprocessors left to what runs beside
  bool deterministic = false;  ///< backward gives the same bits in every run
};

/// Attention without mask: softmax(scale q k^T) v. Dense tensors are [batch, tokens, heads, head_dim] views, packed
/// ones [tokens, heads, head_dim]; elements of a head adjacent, at least one query and one key a sequence, as many
/// key/value heads as query heads, and on a GPU aligned to 16 bytes. `into`: where the caller wants a result, of its
/// shape and dtype, or undefined. A kernel that can writes there and returns it; else it returns a tensor of its own.
/// Threads: const, any number at a time.
class AttentionKernel {
 public:
  virtual ~AttentionKernel() = default;
  virtual std::string_view name() const = 0;
  virtual bool supports(const AttentionShape& shape) const = 0;
  virtual AttentionOutput forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                                  const at::Tensor& into) const = 0;
  /// Gradients of one block of keys. @param out, lse  the final ones, over all blocks, whatever keys are given.
  virtual AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                                      const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse, double scale,
                                      const AttentionGradients& into) const = 0;

  /// Whether its backward can give the same bits in every run (KernelSettings::deterministic).
  virtual bool can_repeat() const { return true; }

  /// Whether it runs sequences of different lengths in one call: the block-diagonal call of the paper (section IV-D).
  virtual bool takes_packed() const { return false; }
  virtual AttentionOutput forward_packed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                         const PackedLengths& lengths, double scale, const at::Tensor& into) const;
  virtual AttentionGradients backward_packed(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                                             const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
                                             const PackedLengths& lengths, double scale,
                                             const AttentionGradients& into) const;
};

/// "aten-cpu-flash": ATen's blocked CPU kernel, fp64, fp32, bf16.
std::unique_ptr<const AttentionKernel> make_aten_cpu_flash();
/// "plain": the formula; holds the matrix of probabilities in at least fp32, any device and dtype. For tests.
std::unique_ptr<const AttentionKernel> make_plain();
/// "memory-efficient": ATen's, CUDA, fp32 too.
std::unique_ptr<const AttentionKernel> make_memory_efficient();
/// "flash-attention-2": in torch, CUDA, bf16 and fp16; takes packed sequences.
std::unique_ptr<const AttentionKernel> make_flash_attention_2(const KernelSettings& settings);
/// "cudnn": in torch, Hopper and newer, bf16 and fp16. Runs a batch in parts whose sizes are powers of two, since each
/// new shape costs it a plan of up to 0.5 s. Its backward gives NaN in dQ where a log-sum-exp is below -88
/// (cuDNN 9.19): with normalised queries and keys, as Wan has, that can't be.
std::unique_ptr<const AttentionKernel> make_cudnn();
/// "flash-attention-3": Hopper, bf16 and fp16; takes packed sequences. From the operators that the dispatcher has under
/// flash_attn_3; null when it has none.
std::unique_ptr<const AttentionKernel> make_flash_attention_3(const KernelSettings& settings);

/// Loads the library that registers flash_attn_3's operators, once a process.
/// Errors: Code::device when it can't be loaded or registers none, saying why.
void load_flash_attention_3(const std::string& path);

}  // namespace zellige
