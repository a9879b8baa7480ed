// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/slice_tasks.h"
#include "engine/torch.h"
#include "zellige/schedule.h"

namespace zellige {

/// Rows x heads of a tensor [tokens, heads, head_dim], told without making a view of it: a layer names hundreds. The
/// tensor outlives the box.
struct SliceBox {
  SliceBox(const at::Tensor& of, TokenRange of_rows, HeadRange of_heads) : tensor(of), rows(of_rows), heads(of_heads) {}

  at::Tensor view() const { return tensor.narrow(0, rows.begin, rows.count).narrow(1, heads.begin, heads.count); }

  const at::Tensor& tensor;
  TokenRange rows;
  HeadRange heads;
};

inline SliceBox whole_box(const at::Tensor& tensor) {
  return {tensor, {0, tensor.size(0)}, {0, static_cast<int>(tensor.size(1))}};
}

/// Copies and sums of boxes [rows, heads, head_dim], gathered first and then run together: on a GPU in one launch where
/// boxes lie as the kernel wants them, else one by one.
class SliceCopies {
 public:
  void copy(const SliceBox& to, const SliceBox& from) { add_task(to, from, /*adding=*/false); }
  /// to += from, in the dtype of `to`.
  void add(const SliceBox& to, const SliceBox& from) { add_task(to, from, /*adding=*/true); }
  /// Runs and forgets what was gathered: on a GPU queued on the current stream. Places written to must not overlap.
  /// Errors: Code::device when CUDA refuses.
  void run();

 private:
  void add_task(const SliceBox& to, const SliceBox& from, bool adding);

  std::vector<SliceTask> tasks_;
  c10::Device device_{c10::kCPU};
};

/// merge_partial for one shard in fewer passes where a kernel for it is there. @param out  fp32, or the dtype of `more`
/// when no further block of keys follows
/// @return  whether it was done
bool merge_on_gpu(const at::Tensor& out, const at::Tensor& lse, const at::Tensor& more, const at::Tensor& more_lse);

}  // namespace zellige
