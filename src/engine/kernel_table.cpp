// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "zellige/error.h"

namespace zellige {
namespace {

/// Query heads that share a key/value head are laid behind one another as further queries of it: without a mask that is
/// the same attention, and the kernel sums the gradients of the shared head itself.
/// [batch, tokens, heads, head_dim] -> [batch, shared * tokens, heads / shared, head_dim]
at::Tensor fold(const at::Tensor& tensor, std::int64_t shared) {
  return tensor.unflatten(2, {tensor.size(2) / shared, shared}).permute({0, 3, 1, 2, 4}).flatten(1, 2);
}

at::Tensor unfold(const at::Tensor& tensor, std::int64_t shared) {
  return tensor.unflatten(1, {shared, tensor.size(1) / shared}).permute({0, 2, 3, 1, 4}).flatten(2, 3);
}

/// [batch, heads, tokens] <-> [batch, heads / shared, shared * tokens]
at::Tensor fold_lse(const at::Tensor& lse, std::int64_t shared) {
  return lse.unflatten(1, {lse.size(1) / shared, shared}).flatten(2, 3);
}

at::Tensor unfold_lse(const at::Tensor& lse, std::int64_t shared) {
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

double scale_of(const at::Tensor& q) { return 1.0 / std::sqrt(static_cast<double>(q.size(-1))); }

/// GPU kernels load 16 bytes at a time.
bool is_aligned(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return true;
  constexpr std::int64_t kBytes = 16;
  const auto element = static_cast<std::int64_t>(tensor.element_size());
  if (reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % kBytes != 0 || tensor.stride(-1) != 1) return false;
  for (std::int64_t i = 0; i + 1 < tensor.dim(); ++i) {
    if (tensor.size(i) > 1 && tensor.stride(i) * element % kBytes != 0) return false;
  }
  return true;
}

at::Tensor aligned(const at::Tensor& tensor) {
  return is_aligned(tensor) ? tensor : tensor.clone(at::MemoryFormat::Contiguous);
}

/// A place that a kernel can write to itself.
at::Tensor usable(const at::Tensor& into) { return into.defined() && is_aligned(into) ? into : at::Tensor(); }

/// Puts a result where it was wanted, unless it is there already.
void settle(const at::Tensor& wanted, at::Tensor& result) {
  if (!wanted.defined()) return;
  if (wanted.data_ptr() != result.data_ptr() || wanted.strides() != result.strides()) wanted.copy_(result);
  result = wanted;
}

const char* const kKnown =
    "'flash-attention-3', 'cudnn', 'flash-attention-2', 'memory-efficient' (CUDA), 'aten-cpu-flash' (CPU), 'plain' "
    "(any), or '' for the best";

}  // namespace

KernelTable::KernelTable(std::string_view only, std::vector<KernelRate> rates, bool deterministic)
    : rates_(std::move(rates)), whole_together_(only == "flash-attention-2") {
  settings_.deterministic = deterministic;
  const auto add = [&](std::string_view name, auto make) {
    if (!only.empty() && only != name) return;
    if (auto kernel = make()) kernels_.push_back(std::move(kernel));
  };
  add("flash-attention-3", [this] { return make_flash_attention_3(settings_); });
  add("cudnn", make_cudnn);
  add("flash-attention-2", [this] { return make_flash_attention_2(settings_); });
  add("memory-efficient", make_memory_efficient);
  add("aten-cpu-flash", make_aten_cpu_flash);
  if (only == "plain") kernels_.push_back(make_plain());
  if (!kernels_.empty()) return;
  if (only == "flash-attention-3") {
    throw Error(
        Code::device, "engine.kernels",
        "kernel 'flash-attention-3' is not loaded: no library has registered flash_attn_3's operators; name one "
        "(EngineOptions::flash_attention_3, or ZELLIGE_FLASH_ATTENTION_3 for the command)");
  }
  throw Error(Code::input, "engine", "kernel '" + std::string(only) + "'; use " + kKnown);
}

bool KernelTable::has(std::string_view kernel) const {
  return std::any_of(kernels_.begin(), kernels_.end(), [&](const auto& one) { return one->name() == kernel; });
}

const AttentionKernel& KernelTable::choose(const AttentionShape& shape, Direction direction) const {
  const ShapeKey key{shape.device, shape.dtype, shape.batch,    shape.queries,
                     shape.keys,   shape.heads, shape.head_dim, direction};
  const std::lock_guard lock(choices_mutex_);
  const AttentionKernel*& choice = choices_[key];
  if (choice == nullptr) choice = &find(shape, direction);
  return *choice;
}

const AttentionKernel& KernelTable::find(const AttentionShape& shape, Direction direction) const {
  const char* const direction_name = direction == Direction::forward ? "forward" : "backward";
  const AttentionKernel* first = nullptr;
  const AttentionKernel* fastest = nullptr;
  const AttentionKernel* short_keys = nullptr;
  double best = 0;
  int measured = 0;
  const bool must_repeat = settings_.deterministic && direction == Direction::backward;
  for (const auto& kernel : kernels_) {
    if (!kernel->supports(shape) || (must_repeat && !kernel->can_repeat())) continue;
    if (first == nullptr) first = kernel.get();
    if (kernel->name() == "cudnn") short_keys = kernel.get();
    const double rate = measured_rate(rates_, kernel->name(), direction_name, std::max<std::int64_t>(shape.keys, 1),
                                      std::max<std::int64_t>(shape.batch, 1), std::max<std::int64_t>(shape.heads, 1));
    if (rate > 0) ++measured;
    if (rate > best) {
      best = rate;
      fastest = kernel.get();
    }
  }
  if (measured > 1) return *fastest;  // rates of one kernel say nothing about the others
  constexpr std::int64_t kShortKeys = 256;
  const bool is_short = shape.keys <= kShortKeys && shape.queries <= kShortKeys;
  // In parts it is no faster; backward neither, and the others take any log-sum-exp.
  const bool in_one = std::has_single_bit(static_cast<std::uint64_t>(std::max<std::int64_t>(shape.batch, 0)));
  if (short_keys != nullptr && is_short && in_one && direction == Direction::forward) return *short_keys;
  if (first != nullptr) return *first;
  throw Error(Code::device, "engine",
              std::string("no attention kernel for ") + c10::toString(shape.dtype) + " on " +
                  c10::DeviceTypeName(shape.device, /*lower_case=*/true) + " with head_dim " +
                  std::to_string(shape.head_dim) + (must_repeat ? " that is deterministic" : "") + "; there are " +
                  kKnown);
}

AttentionOutput KernelTable::run_forward(const AttentionKernel& kernel, const at::Tensor& q, const at::Tensor& k,
                                         const at::Tensor& v, const PackedLengths* lengths,
                                         const at::Tensor& into) const {
  const at::Tensor query = aligned(q), key = aligned(k), value = aligned(v);
  AttentionOutput result = lengths == nullptr
                               ? kernel.forward(query, key, value, scale_of(q), usable(into))
                               : kernel.forward_packed(query, key, value, *lengths, scale_of(q), usable(into));
  settle(into, result.out);
  return result;
}

AttentionGradients KernelTable::run_backward(const AttentionKernel& kernel, const at::Tensor& grad_out,
                                             const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                             const at::Tensor& out, const at::Tensor& lse, const PackedLengths* lengths,
                                             const AttentionGradients& into) const {
  const at::Tensor grad = aligned(grad_out), query = aligned(q), key = aligned(k), value = aligned(v);
  const at::Tensor output = aligned(out);
  const AttentionGradients wanted = {usable(into.q), usable(into.k), usable(into.v)};
  AttentionGradients result =
      lengths == nullptr ? kernel.backward(grad, query, key, value, output, lse, scale_of(q), wanted)
                         : kernel.backward_packed(grad, query, key, value, output, lse, *lengths, scale_of(q), wanted);
  settle(into.q, result.q);
  settle(into.k, result.k);
  settle(into.v, result.v);
  return result;
}

AttentionOutput KernelTable::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const at::Tensor& into) const {
  const AttentionKernel& kernel = choose(shape_of(q, k), Direction::forward);
  if (q.numel() == 0 || k.numel() == 0) {
    AttentionOutput nothing = {at::zeros(q.sizes(), q.options()),
                               at::full({q.size(0), q.size(2), q.size(1)}, -std::numeric_limits<double>::infinity(),
                                        q.options().dtype(accumulation_type(q.scalar_type())))};
    settle(into, nothing.out);
    return nothing;
  }
  const std::int64_t shared = q.size(2) / k.size(2);
  if (shared == 1) return run_forward(kernel, q, k, v, nullptr, into);
  AttentionOutput result = run_forward(kernel, fold(q, shared), k, v, nullptr, {});
  result = {unfold(result.out, shared), unfold_lse(result.lse, shared)};
  settle(into, result.out);
  return result;
}

AttentionGradients KernelTable::backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                                         const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
                                         const AttentionGradients& into) const {
  const AttentionKernel& kernel = choose(shape_of(q, k), Direction::backward);
  AttentionGradients result;
  const std::int64_t shared = q.size(2) / k.size(2);
  if (q.numel() == 0 || k.numel() == 0) {
    result = {at::zeros(q.sizes(), q.options()), at::zeros(k.sizes(), k.options()), at::zeros(v.sizes(), v.options())};
  } else if (shared == 1) {
    return run_backward(kernel, grad_out, q, k, v, out, lse, nullptr, into);
  } else {
    result = run_backward(kernel, fold(grad_out, shared), fold(q, shared), k, v, fold(out, shared),
                          fold_lse(lse, shared), nullptr, {at::Tensor(), into.k, into.v});
    result.q = unfold(result.q, shared);
  }
  settle(into.q, result.q);
  settle(into.k, result.k);
  settle(into.v, result.v);
  return result;
}

std::vector<WholeCall> KernelTable::plan_whole(const Schedule& schedule, const at::TensorOptions& options) const {
  const std::vector<WholeGroup>& groups = schedule.whole_groups;
  AttentionShape shape = {.device = options.device().type(),
                          .dtype = c10::typeMetaToScalarType(options.dtype()),
                          .batch = 1,
                          .queries = 2,
                          .keys = 2,
                          .heads = schedule.heads,
                          .head_dim = schedule.head_dim};
  const AttentionKernel* packing = nullptr;
  for (const auto& kernel : kernels_) {
    if (packing == nullptr && kernel->takes_packed() && kernel->supports(shape)) packing = kernel.get();
  }
  // Grouped heads are folded, which a packed call can't be.
  const bool can_pack = packing != nullptr && schedule.heads == schedule.kv_heads;
  const std::vector<WholeBatch> batches =
      can_pack ? batch_whole_groups(groups, schedule.heads, whole_together_) : one_batch_a_group(groups);

  std::vector<WholeCall> calls;
  for (const WholeBatch& batch : batches) {
    const WholeGroup& first = groups[batch.first];
    WholeCall& call = calls.emplace_back();
    call.rows = {first.local_begin, 0};
    std::vector<int> begins = {0};
    for (std::size_t i = batch.first; i < batch.first + batch.count; ++i) {
      call.count += groups[i].count;
      call.rows.count += groups[i].count * groups[i].length;
      call.lengths.lengths.insert(call.lengths.lengths.end(), static_cast<std::size_t>(groups[i].count),
                                  groups[i].length);
    }
    if (batch.count == 1 && !(whole_together_ && can_pack)) {
      call.length = first.length;
      shape.batch = first.count;
      shape.queries = shape.keys = first.length;
      shape.heads = schedule.kv_heads;
      call.forward = &choose(shape, Direction::forward);
      call.backward = &choose(shape, Direction::backward);
      continue;
    }
    for (const std::int64_t length : call.lengths.lengths) begins.push_back(begins.back() + static_cast<int>(length));
    call.lengths.longest = *std::max_element(call.lengths.lengths.begin(), call.lengths.lengths.end());
    call.lengths.begins = at::tensor(begins, at::kInt).to(options.device());
    call.forward = call.backward = packing;
  }
  return calls;
}

namespace {

at::Tensor rows_of_call(const WholeCall& call, const at::Tensor& packed) {
  if (!call.is_dense()) return packed.narrow(0, call.rows.begin, call.rows.count);
  // In one step: each view costs the processor microseconds, and a layer makes dozens.
  const std::int64_t row = packed.stride(0);
  return packed.as_strided({call.count, call.length, packed.size(1), packed.size(2)},
                           {call.length * row, row, packed.stride(1), packed.stride(2)},
                           packed.storage_offset() + call.rows.begin * row);
}

}  // namespace

at::Tensor KernelTable::forward(const WholeCall& call, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const at::Tensor& out) const {
  const auto part = [&](const at::Tensor& packed) { return rows_of_call(call, packed); };
  if (!call.is_dense()) return run_forward(*call.forward, part(q), part(k), part(v), &call.lengths, part(out)).lse;
  if (q.size(1) != k.size(1)) return forward(part(q), part(k), part(v), part(out)).lse;
  return run_forward(*call.forward, part(q), part(k), part(v), nullptr, part(out)).lse;
}

void KernelTable::backward(const WholeCall& call, const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
                           const AttentionGradients& into) const {
  const auto part = [&](const at::Tensor& packed) { return rows_of_call(call, packed); };
  const AttentionGradients wanted = {part(into.q), part(into.k), part(into.v)};
  if (call.is_dense() && q.size(1) != k.size(1)) {
    backward(part(grad_out), part(q), part(k), part(v), part(out), lse, wanted);
    return;
  }
  run_backward(*call.backward, part(grad_out), part(q), part(k), part(v), part(out), lse,
               call.is_dense() ? nullptr : &call.lengths, wanted);
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
