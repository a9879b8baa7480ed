// SPDX-License-Identifier: Apache-2.0
#include "engine/attention_kernel.h"
#include "engine/kernel_table.h"

namespace zellige {
namespace {

at::Tensor heads_first(const at::Tensor& tensor) { return tensor.transpose(1, 2); }

/// ATen's CPU flash attention: never holds the matrix of probabilities.
class AtenCpuFlash final : public AttentionKernel {
 public:
  std::string_view name() const override { return "aten-cpu-flash"; }

  bool supports(const AttentionShape& shape) const override {
    return shape.device == c10::DeviceType::CPU &&
           (shape.dtype == at::kDouble || shape.dtype == at::kFloat || shape.dtype == at::kBFloat16);
  }

  AttentionOutput forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                          const at::Tensor&) const override {
    const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
        heads_first(q), heads_first(k), heads_first(v), /*dropout_p=*/0.0, /*is_causal=*/false,
        /*attn_mask=*/std::nullopt, scale);
    return {heads_first(out), lse};
  }

  AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& out, const at::Tensor& lse, double scale,
                              const AttentionGradients&) const override {
    const auto [grad_q, grad_k, grad_v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        heads_first(grad_out), heads_first(q), heads_first(k), heads_first(v), heads_first(out), lse,
        /*dropout_p=*/0.0, /*is_causal=*/false, /*attn_mask=*/std::nullopt, scale);
    return {heads_first(grad_q), heads_first(grad_k), heads_first(grad_v)};
  }
};

/// The formula written down, for tests.
class Plain final : public AttentionKernel {
 public:
  std::string_view name() const override { return "plain"; }
  bool supports(const AttentionShape&) const override { return true; }

  AttentionOutput forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                          const at::Tensor&) const override {
    const at::ScalarType type = accumulation_type(q.scalar_type());
    const at::Tensor scores = scores_of(q, k, scale, type);
    const at::Tensor lse = scores.logsumexp(-1);
    const at::Tensor out = at::matmul(probabilities(scores, lse), heads_first(v).to(type));
    return {heads_first(out).to(q.scalar_type()), lse};
  }

  AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& out, const at::Tensor& lse, double scale,
                              const AttentionGradients&) const override {
    const at::ScalarType type = accumulation_type(q.scalar_type());
    const at::Tensor d = heads_first(grad_out).to(type);
    const at::Tensor delta = (d * heads_first(out).to(type)).sum(-1, /*keepdim=*/true);
    const at::Tensor p = probabilities(scores_of(q, k, scale, type), lse);
    const at::Tensor grad_scores = p * (at::matmul(d, heads_first(v).to(type).transpose(-1, -2)) - delta) * scale;
    const auto wire = [&](const at::Tensor& tensor) { return heads_first(tensor).to(q.scalar_type()); };
    return {wire(at::matmul(grad_scores, heads_first(k).to(type))),
            wire(at::matmul(grad_scores.transpose(-1, -2), heads_first(q).to(type))),
            wire(at::matmul(p.transpose(-1, -2), d))};
  }

 private:
  static at::Tensor scores_of(const at::Tensor& q, const at::Tensor& k, double scale, at::ScalarType type) {
    return at::matmul(heads_first(q).to(type), heads_first(k).to(type).transpose(-1, -2)) * scale;
  }

  /// Rows whose log-sum-exp is -inf have no key with a finite score: nothing flows through them.
  static at::Tensor probabilities(const at::Tensor& scores, const at::Tensor& lse) {
    const at::Tensor rows = lse.unsqueeze(-1);
    return (scores - rows).exp().masked_fill(rows.isneginf(), 0);
  }
};

}  // namespace

std::unique_ptr<const AttentionKernel> make_aten_cpu_flash() { return std::make_unique<AtenCpuFlash>(); }

std::unique_ptr<const AttentionKernel> make_plain() { return std::make_unique<Plain>(); }

}  // namespace zellige
