// SPDX-License-Identifier: Apache-2.0
// The attention kernels for CUDA that come with torch.
#include <algorithm>
#include <bit>

#include "engine/attention_kernel.h"

namespace zellige {
namespace {

bool is_half(at::ScalarType type) { return type == at::kBFloat16 || type == at::kHalf; }

at::Tensor heads_first(const at::Tensor& tensor) { return tensor.transpose(1, 2); }

/// Random states of dropout, of which there is none here: never read.
at::Tensor no_state(const at::Tensor& like, at::IntArrayRef sizes, at::ScalarType type) {
  return at::empty(sizes, like.options().dtype(type));
}

/// FlashAttention-2 in torch asks torch's own setting, which is the whole process's, whether to be deterministic.
class AskedToRepeat {
 public:
  explicit AskedToRepeat(bool deterministic) : changes_(deterministic && !context().deterministicAlgorithms()) {
    if (!changes_) return;
    fills_ = context().deterministicFillUninitializedMemory();
    context().setDeterministicFillUninitializedMemory(false);
    context().setDeterministicAlgorithms(true, /*warn_only=*/false);
  }
  ~AskedToRepeat() {
    if (!changes_) return;
    context().setDeterministicAlgorithms(false, false);
    context().setDeterministicFillUninitializedMemory(fills_);
  }
  AskedToRepeat(const AskedToRepeat&) = delete;
  AskedToRepeat& operator=(const AskedToRepeat&) = delete;

 private:
  static at::Context& context() { return at::globalContext(); }
  const bool changes_;
  bool fills_ = true;
};

/// FlashAttention-2 and cuDNN fail on tensors with more elements: their offsets have 32 bits.
constexpr std::int64_t kMostElements = (std::int64_t{1} << 31) - 1;

/// Sequences of a batch that one call of those takes.
std::int64_t most_at_once(const at::Tensor& q, const at::Tensor& k) {
  return std::max<std::int64_t>(1, kMostElements / std::max({q.stride(0), k.stride(0), std::int64_t{1}}));
}

/// Runs a batch in parts. @param size  of the next part, given how many sequences are left
/// @param run  (begin, count) of a part to its result
template <class Size, class Run>
AttentionOutput forward_in_parts(const at::Tensor& q, const at::Tensor& into, const Size& size, const Run& run) {
  const std::int64_t batch = q.size(0);
  AttentionOutput all;
  for (std::int64_t begin = 0, count = 0; begin < batch; begin += count) {
    count = size(batch - begin);
    AttentionOutput part = run(begin, count);
    if (count == batch) return part;
    if (begin == 0) {
      all.out = into.defined() ? into : at::empty(q.sizes(), q.options());
      all.lse = at::empty({batch, q.size(2), q.size(1)}, part.lse.options());
    }
    all.out.narrow(0, begin, count).copy_(part.out);
    all.lse.narrow(0, begin, count).copy_(part.lse);
  }
  return all;
}

template <class Size, class Run>
AttentionGradients backward_in_parts(const at::Tensor& q, const at::Tensor& k, const AttentionGradients& into,
                                     const Size& size, const Run& run) {
  const std::int64_t batch = q.size(0);
  AttentionGradients all;
  for (std::int64_t begin = 0, count = 0; begin < batch; begin += count) {
    count = size(batch - begin);
    AttentionGradients part = run(begin, count);
    if (count == batch) return part;
    if (begin == 0) {
      const auto target = [](const at::Tensor& wanted, const at::Tensor& like) {
        return wanted.defined() ? wanted : at::empty(like.sizes(), like.options());
      };
      all = {target(into.q, q), target(into.k, k), target(into.v, k)};
    }
    all.q.narrow(0, begin, count).copy_(part.q);
    all.k.narrow(0, begin, count).copy_(part.k);
    all.v.narrow(0, begin, count).copy_(part.v);
  }
  return all;
}

class FlashAttention2 final : public AttentionKernel {
 public:
  explicit FlashAttention2(const KernelSettings& settings) : settings_(settings) {}

  std::string_view name() const override { return "flash-attention-2"; }

  bool supports(const AttentionShape& shape) const override {
    return shape.device == c10::DeviceType::CUDA && is_half(shape.dtype) && shape.head_dim % 8 == 0 &&
           shape.head_dim <= 256;
  }

  AttentionOutput forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                          const at::Tensor& into) const override {
    const std::int64_t most = most_at_once(q, k);
    return forward_in_parts(
        q, into, [most](std::int64_t left) { return std::min(left, most); },
        [&](std::int64_t begin, std::int64_t count) {
          const auto some = [&](const at::Tensor& tensor) { return tensor.narrow(0, begin, count); };
          const auto result =
              at::_flash_attention_forward(some(q), some(k), some(v), {}, {}, q.size(1), k.size(1), /*dropout_p=*/0.0,
                                           /*is_causal=*/false, /*return_debug_mask=*/false, scale);
          return AttentionOutput{std::get<0>(result), std::get<1>(result)};
        });
  }

  AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& out, const at::Tensor& lse, double scale,
                              const AttentionGradients& into) const override {
    const AskedToRepeat asked(settings_.deterministic);
    const std::int64_t most = most_at_once(q, k);
    return backward_in_parts(
        q, k, into, [most](std::int64_t left) { return std::min(left, most); },
        [&](std::int64_t begin, std::int64_t count) {
          const auto some = [&](const at::Tensor& tensor) { return tensor.narrow(0, begin, count); };
          auto [grad_q, grad_k, grad_v] = at::_flash_attention_backward(
              some(grad_out), some(q), some(k), some(v), some(out), some(lse), at::Tensor(), at::Tensor(), q.size(1),
              k.size(1), /*dropout_p=*/0.0, /*is_causal=*/false, no_state(q, {2}, at::kUInt64),
              no_state(q, {}, at::kUInt64), scale);
          return AttentionGradients{grad_q, grad_k, grad_v};
        });
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
    const AskedToRepeat asked(settings_.deterministic);
    auto [grad_q, grad_k, grad_v] = at::_flash_attention_backward(
        grad_out, q, k, v, out, lse, lengths.begins, lengths.begins, lengths.longest, lengths.longest, 0.0, false,
        no_state(q, {2}, at::kUInt64), no_state(q, {}, at::kUInt64), scale);
    return {grad_q, grad_k, grad_v};
  }

 private:
  const KernelSettings& settings_;
};

class Cudnn final : public AttentionKernel {
 public:
  std::string_view name() const override { return "cudnn"; }
  bool can_repeat() const override { return false; }

  bool supports(const AttentionShape& shape) const override {
    // A single query or key is no shape for it; torch refuses those too.
    return shape.device == c10::DeviceType::CUDA && is_half(shape.dtype) && shape.head_dim % 8 == 0 &&
           shape.head_dim <= 128 && shape.queries != 1 && shape.keys != 1 &&
           std::max(shape.queries, shape.keys) * shape.heads * shape.head_dim <= kMostElements;
  }

  AttentionOutput forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                          const at::Tensor& into) const override {
    const std::int64_t most = most_at_once(q, k);
    return forward_in_parts(
        q, into, [most](std::int64_t left) { return power_of_two(std::min(left, most)); },
        [&](std::int64_t begin, std::int64_t count) {
          const auto some = [&](const at::Tensor& tensor) { return heads_first(tensor.narrow(0, begin, count)); };
          const auto result = at::_cudnn_attention_forward(some(q), some(k), some(v), {}, {}, {}, q.size(1), k.size(1),
                                                           /*compute_log_sumexp=*/true, 0.0, false, false, scale);
          return AttentionOutput{heads_first(std::get<0>(result)),
                                 std::get<1>(result).view({count, q.size(2), q.size(1)})};
        });
  }

  AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& out, const at::Tensor& lse, double scale,
                              const AttentionGradients& into) const override {
    const std::int64_t most = most_at_once(q, k);
    const at::Tensor state = no_state(q, {}, at::kLong);
    // torch 2.11 keeps plans by the strides of q, k and v alone: with those of the output it would take another's plan.
    const at::Tensor output = out.contiguous(), grad_output = grad_out.contiguous();
    return backward_in_parts(
        q, k, into, [most](std::int64_t left) { return power_of_two(std::min(left, most)); },
        [&](std::int64_t begin, std::int64_t count) {
          const auto some = [&](const at::Tensor& tensor) { return heads_first(tensor.narrow(0, begin, count)); };
          const auto [grad_q, grad_k, grad_v] = at::_cudnn_attention_backward(
              some(grad_output), some(q), some(k), some(v), some(output), lse.narrow(0, begin, count).unsqueeze(-1),
              state, state, at::Tensor(), at::Tensor(), at::Tensor(), q.size(1), k.size(1), 0.0, false, scale);
          return AttentionGradients{heads_first(grad_q), heads_first(grad_k), heads_first(grad_v)};
        });
  }

 private:
  static std::int64_t power_of_two(std::int64_t count) {
    return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count)));
  }
};

class MemoryEfficient final : public AttentionKernel {
 public:
  std::string_view name() const override { return "memory-efficient"; }
  bool can_repeat() const override { return false; }

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

std::unique_ptr<const AttentionKernel> make_flash_attention_2(const KernelSettings& settings) {
  return std::make_unique<FlashAttention2>(settings);
}

std::unique_ptr<const AttentionKernel> make_cudnn() { return std::make_unique<Cudnn>(); }

std::unique_ptr<const AttentionKernel> make_memory_efficient() { return std::make_unique<MemoryEfficient>(); }

}  // namespace zellige
