// SPDX-License-Identifier: Apache-2.0
#include "engine/slice_copies.h"

#include <optional>

#include <c10/core/impl/VirtualGuardImpl.h>

#include "zellige/error.h"

namespace zellige {
namespace {

constexpr std::int64_t kChunk = 16;

/// The stream that work on the device is queued on now, as CUDA knows it.
void* current_stream(c10::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  return guard.getStreamNativeHandle(guard.getStream(device));
}

std::uintptr_t address_of(const SliceBox& box) {
  const at::Tensor& tensor = box.tensor;
  const std::int64_t elements = box.rows.begin * tensor.stride(0) + box.heads.begin * tensor.stride(1);
  return reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) +
         static_cast<std::uintptr_t>(elements * static_cast<std::int64_t>(tensor.element_size()));
}

std::int64_t row_bytes(const SliceBox& box) {
  return box.heads.count * box.tensor.size(2) * static_cast<std::int64_t>(box.tensor.element_size());
}

std::int64_t stride_bytes(const SliceBox& box) {
  return box.tensor.stride(0) * static_cast<std::int64_t>(box.tensor.element_size());
}

bool is_chunked(const SliceBox& box) {
  const at::Tensor& tensor = box.tensor;
  const bool heads_adjacent = tensor.stride(2) == 1 && (box.heads.count == 1 || tensor.stride(1) == tensor.size(2));
  return heads_adjacent && address_of(box) % kChunk == 0 && stride_bytes(box) % kChunk == 0 &&
         row_bytes(box) % kChunk == 0;
}

std::optional<SliceTask::Kind> kind_of(const at::Tensor& to, const at::Tensor& from, bool adding) {
  using enum SliceTask::Kind;
  if (!adding) return to.scalar_type() == from.scalar_type() ? std::optional(copy) : std::nullopt;
  if (to.scalar_type() == at::kBFloat16 && from.scalar_type() == at::kBFloat16) return add_to_bfloat16;
  if (to.scalar_type() == at::kHalf && from.scalar_type() == at::kHalf) return add_to_half;
  if (to.scalar_type() != at::kFloat) return std::nullopt;
  if (from.scalar_type() == at::kBFloat16) return add_bfloat16;
  if (from.scalar_type() == at::kHalf) return add_half;
  if (from.scalar_type() == at::kFloat) return add_float;
  return std::nullopt;
}

[[noreturn]] void fail(const char* why) { throw Error(Code::device, "engine", std::string("CUDA: ") + why); }

}  // namespace

void SliceCopies::add_task(const SliceBox& to, const SliceBox& from, bool adding) {
  const auto kind = kind_of(to.tensor, from.tensor, adding);
  if (!has_slice_kernels() || !to.tensor.is_cuda() || !kind || !is_chunked(to) || !is_chunked(from)) {
    at::Tensor target = to.view();
    adding ? target.add_(from.view()) : target.copy_(from.view());
    return;
  }
  device_ = to.tensor.device();
  tasks_.push_back({.to = reinterpret_cast<char*>(address_of(to)),
                    .from = reinterpret_cast<const char*>(address_of(from)),
                    .to_stride = stride_bytes(to),
                    .from_stride = stride_bytes(from),
                    .rows = from.rows.count,
                    .chunks = static_cast<std::int32_t>(row_bytes(from) / kChunk),
                    .kind = *kind});
}

void SliceCopies::run() {
  if (tasks_.empty()) return;
  const char* why = launch_slice_tasks(tasks_, current_stream(device_));
  tasks_.clear();
  if (*why != '\0') fail(why);
}

bool merge_on_gpu(const at::Tensor& out, const at::Tensor& lse, const at::Tensor& more, const at::Tensor& more_lse) {
  const at::ScalarType type = more.scalar_type();
  const bool fits = has_slice_kernels() && out.is_cuda() && (type == at::kBFloat16 || type == at::kHalf) &&
                    (out.scalar_type() == at::kFloat || out.scalar_type() == type) && out.is_contiguous() &&
                    more.is_contiguous() && lse.is_contiguous() && more_lse.is_contiguous() && more.size(-1) % 8 == 0 &&
                    more.numel() > 0;
  if (!fits) return false;
  const MergeTask task = {.out = out.data_ptr(),
                          .lse = lse.data_ptr<float>(),
                          .more = more.data_ptr(),
                          .more_lse = more_lse.data_ptr<float>(),
                          .rows = more.size(-3),
                          .heads = static_cast<std::int32_t>(more.size(-2)),
                          .head_dim = static_cast<std::int32_t>(more.size(-1)),
                          .more_is_bfloat16 = type == at::kBFloat16,
                          .out_is_float = out.scalar_type() == at::kFloat};
  const char* why = launch_merge(task, current_stream(out.device()));
  if (*why != '\0') fail(why);
  return true;
}

}  // namespace zellige
