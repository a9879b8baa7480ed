// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/step_plan.h"
#include "engine/torch.h"

namespace zellige {

/// Views of packed tensors [tokens_local, heads, head_dim] and of boxes [rows, heads, head_dim].

inline at::Tensor rows_of(const at::Tensor& tensor, TokenRange rows) {
  return tensor.narrow(0, rows.begin, rows.count);
}

inline at::Tensor box_of(const at::Tensor& tensor, TokenRange rows, HeadRange heads) {
  return rows_of(tensor, rows).narrow(1, heads.begin, heads.count);
}

inline at::Tensor slice_in(const at::Tensor& tensor, const SliceCopy& copy) {
  return box_of(tensor, copy.rows, copy.heads);
}

/// Equal lengths as one dense batch [count, length, heads, head_dim].
inline at::Tensor batch_of(const at::Tensor& packed, const WholeGroup& group) {
  return packed.narrow(0, group.local_begin, group.count * group.length).unflatten(0, {group.count, group.length});
}

/// A batch of one.
inline at::Tensor alone(const at::Tensor& box) { return box.unsqueeze(0); }

/// An uninitialised box of `rows` tokens and as many heads as `heads`.
inline at::Tensor new_box(const at::Tensor& like, TokenRange rows, HeadRange heads) {
  return at::empty({rows.count, heads.count, like.size(2)}, like.options());
}

/// How many whole groups run before the first wave: half of them, so that some are left to hide the last exchange,
/// where exchanges run beside other work; else all.
inline std::size_t groups_first(const StepPlan& plan) {
  const std::size_t groups = plan.schedule.whole_groups.size();
  return plan.schedule.exec.overlap && plan.forward.has_exchanges() ? (groups + 1) / 2 : groups;
}

}  // namespace zellige
