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

bool is_chunked(const at::Tensor& box) {
  const auto element = static_cast<std::int64_t>(box.element_size());
  const bool heads_adjacent = box.stride(2) == 1 && (box.size(1) == 1 || box.stride(1) == box.size(2));
  return heads_adjacent && reinterpret_cast<std::uintptr_t>(box.data_ptr()) % kChunk == 0 &&
         box.stride(0) * element % kChunk == 0 && box.size(1) * box.size(2) * element % kChunk == 0;
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

void SliceCopies::add_task(const at::Tensor& to, const at::Tensor& from, bool adding) {
  const auto kind = kind_of(to, from, adding);
  if (!has_slice_kernels() || !to.is_cuda() || !kind || !is_chunked(to) || !is_chunked(from)) {
    if (adding) {
      at::Tensor sum = to;
      sum.add_(from);
    } else {
      to.copy_(from);
    }
    return;
  }
  device_ = to.device();
  const auto bytes = [](const at::Tensor& box) {
    return box.stride(0) * static_cast<std::int64_t>(box.element_size());
  };
  const std::int64_t row_bytes = from.size(1) * from.size(2) * static_cast<std::int64_t>(from.element_size());
  tasks_.push_back({.to = static_cast<char*>(to.data_ptr()),
                    .from = static_cast<const char*>(from.data_ptr()),
                    .to_stride = bytes(to),
                    .from_stride = bytes(from),
                    .rows = from.size(0),
                    .chunks = static_cast<std::int32_t>(row_bytes / kChunk),
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
