// SPDX-License-Identifier: Apache-2.0
#include "engine/attention_kernel.h"

#include <cmath>
#include <limits>
#include <string>

#include "zellige/error.h"

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

  AttentionOutput forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale) const override {
    const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
        heads_first(q), heads_first(k), heads_first(v), /*dropout_p=*/0.0, /*is_causal=*/false,
        /*attn_mask=*/std::nullopt, scale);
    return {heads_first(out), lse};
  }

  AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& out, const at::Tensor& lse, double scale) const override {
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

  AttentionOutput forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale) const override {
    const at::ScalarType type = accumulation_type(q.scalar_type());
    const at::Tensor scores = scores_of(q, k, scale, type);
    const at::Tensor lse = scores.logsumexp(-1);
    const at::Tensor out = at::matmul(probabilities(scores, lse), heads_first(v).to(type));
    return {heads_first(out).to(q.scalar_type()), lse};
  }

  AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& out, const at::Tensor& lse, double scale) const override {
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

/// Query heads that share a key/value head are laid behind one another as further queries of it: without a mask that is
/// the same attention, and the kernel sums the gradients of the shared head itself.
/// [batch, tokens, heads, head_dim] -> [batch, shared * tokens, heads / shared, head_dim]
at::Tensor fold(const at::Tensor& tensor, std::int64_t shared) {
  if (shared == 1) return tensor;
  return tensor.unflatten(2, {tensor.size(2) / shared, shared}).permute({0, 3, 1, 2, 4}).flatten(1, 2);
}

at::Tensor unfold(const at::Tensor& tensor, std::int64_t shared) {
  if (shared == 1) return tensor;
  return tensor.unflatten(1, {shared, tensor.size(1) / shared}).permute({0, 2, 3, 1, 4}).flatten(2, 3);
}

/// [batch, heads, tokens] <-> [batch, heads / shared, shared * tokens]
at::Tensor fold_lse(const at::Tensor& lse, std::int64_t shared) {
  if (shared == 1) return lse;
  return lse.unflatten(1, {lse.size(1) / shared, shared}).flatten(2, 3);
}

at::Tensor unfold_lse(const at::Tensor& lse, std::int64_t shared) {
  if (shared == 1) return lse;
  return lse.unflatten(2, {shared, lse.size(2) / shared}).flatten(1, 2);
}

AttentionShape shape_of(const at::Tensor& q, const at::Tensor& k) {
  return {.device = q.device().type(),
          .dtype = q.scalar_type(),
          .batch = q.size(0),
          .queries = q.size(1),
          .keys = k.size(1),
          .heads = k.size(2),
          .head_dim = q.size(3)};
}

double scale_of(const at::Tensor& q) { return 1.0 / std::sqrt(static_cast<double>(q.size(3))); }

}  // namespace

KernelTable::KernelTable(std::string_view only) {
  if (only.empty() || only == "aten-cpu-flash") kernels_.push_back(std::make_unique<AtenCpuFlash>());
  if (only == "plain") kernels_.push_back(std::make_unique<Plain>());
  if (kernels_.empty()) {
    throw Error(Code::input, "engine",
                "kernel '" + std::string(only) + "'; use 'aten-cpu-flash', 'plain', or '' for the best");
  }
}

const AttentionKernel& KernelTable::choose(const AttentionShape& shape) const {
  for (const auto& kernel : kernels_) {
    if (kernel->supports(shape)) return *kernel;
  }
  throw Error(Code::device, "engine",
              std::string("no attention kernel for ") + c10::toString(shape.dtype) + " on " +
                  c10::DeviceTypeName(shape.device, /*lower_case=*/true) + " with head_dim " +
                  std::to_string(shape.head_dim) + "; 'aten-cpu-flash' takes fp64, fp32 and bf16 on the CPU");
}

AttentionOutput KernelTable::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const {
  const AttentionShape shape = shape_of(q, k);
  const AttentionKernel& kernel = choose(shape);
  if (q.numel() == 0 || k.numel() == 0) {
    return {at::zeros(q.sizes(), q.options()),
            at::full({q.size(0), q.size(2), q.size(1)}, -std::numeric_limits<double>::infinity(),
                     q.options().dtype(accumulation_type(q.scalar_type())))};
  }
  const std::int64_t shared = q.size(2) / k.size(2);
  AttentionOutput result = kernel.forward(fold(q, shared), k, v, scale_of(q));
  return {unfold(result.out, shared), unfold_lse(result.lse, shared)};
}

AttentionGradients KernelTable::backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                                         const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse) const {
  const AttentionKernel& kernel = choose(shape_of(q, k));
  if (q.numel() == 0 || k.numel() == 0) {
    return {at::zeros(q.sizes(), q.options()), at::zeros(k.sizes(), k.options()), at::zeros(v.sizes(), v.options())};
  }
  const std::int64_t shared = q.size(2) / k.size(2);
  AttentionGradients gradients = kernel.backward(fold(grad_out, shared), fold(q, shared), k, v, fold(out, shared),
                                                 fold_lse(lse, shared), scale_of(q));
  gradients.q = unfold(gradients.q, shared);
  return gradients;
}

at::ScalarType accumulation_type(at::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; }

void merge_partial(at::Tensor& out, at::Tensor& lse, const AttentionOutput& more) {
  // The share of the new part, exp(lse_more) / (exp(lse) + exp(lse_more)), without exponentials that could overflow.
  // Two empty sets have a difference of NaN and no share to give.
  at::Tensor share = (more.lse - lse).sigmoid_();
  share.masked_fill_(at::logical_and(more.lse.isneginf(), lse.isneginf()), 0);
  out.lerp_(more.out.to(out.scalar_type()), share.transpose(1, 2).unsqueeze(-1));
  lse = at::logaddexp(lse, more.lse);
}

}  // namespace zellige
