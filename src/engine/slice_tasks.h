// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace zellige {

/// One box of rows, each a run of adjacent bytes, that goes to another place of the same GPU. Host data.
struct SliceTask {
  enum class Kind : std::int32_t {
    copy,
    add_bfloat16,     ///< to += from: fp32 += bf16
    add_half,         ///< fp32 += fp16
    add_float,        ///< fp32 += fp32
    add_to_bfloat16,  ///< bf16 += bf16, summed in fp32 and rounded once
    add_to_half,      ///< fp16 += fp16, likewise
  };
  char* to = nullptr;
  const char* from = nullptr;
  std::int64_t to_stride = 0, from_stride = 0;  ///< bytes from row to row
  std::int64_t rows = 0;
  std::int32_t chunks = 0;  ///< 16-byte chunks of `from` in a row
  Kind kind = Kind::copy;
};

/// Runs tasks whose places don't overlap on a CUDA stream, many in one launch. Addresses and strides are multiples of
/// 16 bytes. Returns at once; empty when launched, else what CUDA said. In slice_tasks.cu; no_slice_tasks.cpp where
/// there is no CUDA compiler.
const char* launch_slice_tasks(std::span<const SliceTask> tasks, void* stream);

/// Merges attention over more keys into a running result (merge_partial), on a CUDA stream: per row and head,
/// share = sigmoid(more_lse - lse), out += share (more - out), lse = log(exp(lse) + exp(more_lse)).
/// Tensors [rows, heads, head_dim] contiguous, lse [heads, rows]; head_dim a multiple of 8.
struct MergeTask {
  void* out = nullptr;  ///< fp32, or of the type of `more`
  float* lse = nullptr;
  const void* more = nullptr;  ///< bf16 or fp16
  const float* more_lse = nullptr;
  std::int64_t rows = 0;
  std::int32_t heads = 0, head_dim = 0;
  bool more_is_bfloat16 = true;
  bool out_is_float = true;
};
const char* launch_merge(const MergeTask& task, void* stream);

/// Whether the two above are there.
bool has_slice_kernels();

}  // namespace zellige
