// SPDX-License-Identifier: Apache-2.0
// The attention kernels for CUDA that come with torch.
#include <algorithm>
#include <bit>

#include "engine/attention_kernel.h"

namespace zellige {
namespace {

bool is_half(at::ScalarType type) { return type == at::kBFloat16 || type == at::kHalf; }

at::Tensor heads_first(const at::Tensor& tensor) { return tensor.transpose(1, 2); }

/// Random states of dropout, of which there is none here.
at::Tensor no_state(const at::Tensor& like, at::IntArrayRef sizes, at::ScalarType type) {
  return at::zeros(sizes, like.options().dtype(type));
}

class FlashAttention2 final : public AttentionKernel {
 public:
  std::string_view name() const override { return "flash-attention-2"; }

  bool supports(const AttentionShape& shape) const override {
    return shape.device == c10::DeviceType::CUDA && is_half(shape.dtype) && shape.head_dim % 8 == 0 &&
           shape.head_dim <= 256;
  }

  AttentionOutput forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                          const at::Tensor&) const override {
    const auto result = at::_flash_attention_forward(q, k, v, {}, {}, q.size(1), k.size(1), /*dropout_p=*/0.0,
                                                     /*is_causal=*/false, /*return_debug_mask=*/false, scale);
    return {std::get<0>(result), std::get<1>(result)};
  }

  AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& out, const at::Tensor& lse, double scale,
                              const AttentionGradients&) const override {
    auto [grad_q, grad_k, grad_v] = at::_flash_attention_backward(
        grad_out, q, k, v, out, lse, at::Tensor(), at::Tensor(), q.size(1), k.size(1), /*dropout_p=*/0.0,
        /*is_causal=*/false, no_state(q, {2}, at::kUInt64), no_state(q, {}, at::kUInt64), scale);
    return {grad_q, grad_k, grad_v};
  }

  bool takes_packed() const override { return true; }

  AttentionOutput forward_packed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const PackedLengths& lengths, double scale, const at::Tensor&) const override {
    const auto result = at::_flash_attention_forward(q, k, v, lengths.begins, lengths.begins, lengths.longest,
                                                     lengths.longest, 0.0, false, false, scale);
    return {std::get<0>(result), std::get<1>(result)};
  }

  AttentionGradients backward_packed(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                                     const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
                                     const PackedLengths& lengths, double scale,
                                     const AttentionGradients&) const override {
    auto [grad_q, grad_k, grad_v] = at::_flash_attention_backward(
        grad_out, q, k, v, out, lse, lengths.begins, lengths.begins, lengths.longest, lengths.longest, 0.0, false,
        no_state(q, {2}, at::kUInt64), no_state(q, {}, at::kUInt64), scale);
    return {grad_q, grad_k, grad_v};
  }
};

class Cudnn final : public AttentionKernel {
 public:
  std::string_view name() const override { return "cudnn"; }

  bool supports(const AttentionShape& shape) const override {
    // A single query or key is no shape for it; torch refuses those too.
    return shape.device == c10::DeviceType::CUDA && is_half(shape.dtype) && shape.head_dim % 8 == 0 &&
           shape.head_dim <= 128 && shape.queries != 1 && shape.keys != 1 &&
           std::max(shape.queries, shape.keys) * shape.heads * shape.head_dim <= kMostElements;
  }

  AttentionOutput forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                          const at::Tensor& into) const override {
    const std::int64_t batch = q.size(0);
    const std::int64_t most = most_at_once(q, k);
    AttentionOutput all;
    for (std::int64_t at = 0, count = 0; at < batch; at += count) {
      count = part(batch - at, most);
      const auto some = [&](const at::Tensor& tensor) { return heads_first(tensor.narrow(0, at, count)); };
      const auto result = at::_cudnn_attention_forward(some(q), some(k), some(v), {}, {}, {}, q.size(1), k.size(1),
                                                       /*compute_log_sumexp=*/true, 0.0, false, false, scale);
      const at::Tensor out = heads_first(std::get<0>(result));
      const at::Tensor lse = std::get<1>(result).view({count, q.size(2), q.size(1)});
      if (count == batch) return {out, lse};
      if (at == 0) {
        all.out = into.defined() ? into : at::empty(q.sizes(), q.options());
        all.lse = at::empty({batch, q.size(2), q.size(1)}, lse.options());
      }
      all.out.narrow(0, at, count).copy_(out);
      all.lse.narrow(0, at, count).copy_(lse);
    }
    return all;
  }

  AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& out, const at::Tensor& lse, double scale,
                              const AttentionGradients& into) const override {
    const std::int64_t batch = q.size(0);
    const std::int64_t most = most_at_once(q, k);
    const at::Tensor state = no_state(q, {}, at::kLong);
    // torch 2.11 keeps plans by the strides of q, k and v alone: with those of the output it would take another's plan.
    const at::Tensor output = out.contiguous(), grad_output = grad_out.contiguous();
    AttentionGradients all;
    for (std::int64_t at = 0, count = 0; at < batch; at += count) {
      count = part(batch - at, most);
      const auto some = [&](const at::Tensor& tensor) { return heads_first(tensor.narrow(0, at, count)); };
      const auto [grad_q, grad_k, grad_v] = at::_cudnn_attention_backward(
          some(grad_output), some(q), some(k), some(v), some(output), lse.narrow(0, at, count).unsqueeze(-1), state,
          state, at::Tensor(), at::Tensor(), at::Tensor(), q.size(1), k.size(1), 0.0, false, scale);
      if (count == batch) return {heads_first(grad_q), heads_first(grad_k), heads_first(grad_v)};
      if (at == 0) {
        const auto target = [](const at::Tensor& wanted, const at::Tensor& like) {
          return wanted.defined() ? wanted : at::empty(like.sizes(), like.options());
        };
        all = {target(into.q, q), target(into.k, k), target(into.v, v)};
      }
      all.q.narrow(0, at, count).copy_(heads_first(grad_q));
      all.k.narrow(0, at, count).copy_(heads_first(grad_k));
      all.v.narrow(0, at, count).copy_(heads_first(grad_v));
    }
    return all;
  }

 private:
  /// It refuses offsets of 32 bits and more.
  static constexpr std::int64_t kMostElements = (std::int64_t{1} << 31) - 1;

  /// Sequences of a batch that one call can take.
  static std::int64_t most_at_once(const at::Tensor& q, const at::Tensor& k) {
    return std::max<std::int64_t>(1, kMostElements / std::max({q.stride(0), k.stride(0), std::int64_t{1}}));
  }

  static std::int64_t part(std::int64_t count, std::int64_t most) {
    return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::min(count, most))));
  }
};

class MemoryEfficient final : public AttentionKernel {
 public:
  std::string_view name() const override { return "memory-efficient"; }

  bool supports(const AttentionShape& shape) const override {
    return shape.device == c10::DeviceType::CUDA && (shape.dtype == at::kFloat || is_half(shape.dtype)) &&
           shape.head_dim % 8 == 0;
  }

  AttentionOutput forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                          const at::Tensor&) const override {
    const auto result = at::_scaled_dot_product_efficient_attention(heads_first(q), heads_first(k), heads_first(v), {},
                                                                    /*compute_log_sumexp=*/true, 0.0, false, scale);
    // Its rows are rounded up to whole tiles.
    return {heads_first(std::get<0>(result)), std::get<1>(result).narrow(2, 0, q.size(1)).contiguous()};
  }

  AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& out, const at::Tensor& lse, double scale,
                              const AttentionGradients&) const override {
    const std::int64_t rows = (q.size(1) + kTile - 1) / kTile * kTile;
    const at::Tensor whole_tiles = at::constant_pad_nd(lse, {0, rows - q.size(1)}, 0);
    const at::Tensor state = no_state(q, {}, at::kLong);
    const auto result = at::_scaled_dot_product_efficient_attention_backward(
        heads_first(grad_out), heads_first(q), heads_first(k), heads_first(v), at::Tensor(), heads_first(out),
        whole_tiles, state, state, 0.0, {true, true, true, false}, false, scale);
    return {heads_first(std::get<0>(result)), heads_first(std::get<1>(result)), heads_first(std::get<2>(result))};
  }

 private:
  static constexpr std::int64_t kTile = 32;
};

}  // namespace

std::unique_ptr<const AttentionKernel> make_flash_attention_2() { return std::make_unique<FlashAttention2>(); }

std::unique_ptr<const AttentionKernel> make_cudnn() { return std::make_unique<Cudnn>(); }

std::unique_ptr<const AttentionKernel> make_memory_efficient() { return std::make_unique<MemoryEfficient>(); }

}  // namespace zellige
