// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernel_table.h"
#include "engine/slice_copies.h"
#include "engine/step_plan.h"
#include "engine/torch.h"

namespace zellige {

/// Views of packed tensors [tokens_local, heads, head_dim] and of boxes [rows, heads, head_dim].

inline at::Tensor rows_of(const at::Tensor& tensor, TokenRange rows) {
  return tensor.narrow(0, rows.begin, rows.count);
}

inline at::Tensor box_of(const at::Tensor& tensor, TokenRange rows, HeadRange heads) {
  return tensor.as_strided({rows.count, heads.count, tensor.size(2)}, tensor.strides(),
                           tensor.storage_offset() + rows.begin * tensor.stride(0) + heads.begin * tensor.stride(1));
}

inline SliceBox box_in(const at::Tensor& tensor, const SliceCopy& copy) { return {tensor, copy.rows, copy.heads}; }

/// A batch of one.
inline at::Tensor alone(const at::Tensor& box) { return box.unsqueeze(0); }

/// An uninitialised box of `rows` tokens and as many heads as `heads`.
inline at::Tensor new_box(const at::Tensor& like, TokenRange rows, HeadRange heads) {
  return at::empty({rows.count, heads.count, like.size(2)}, like.options());
}

/// How many of the whole calls run before the first wave, to hide its exchange A; the others hide the last B. Where
/// exchanges don't run beside other work, all.
inline std::size_t calls_first(const StepPlan& plan, const PassPlan& pass, const std::vector<WholeCall>& calls) {
  if (!plan.schedule.exec.overlap || !pass.has_exchanges()) return calls.size();
  const auto elements = [](const ExchangePlan& exchange) {
    return static_cast<double>(exchange.send_elements + exchange.receive_elements);
  };
  const double before = elements(pass.rounds.front().a);
  const double all = before + elements(pass.rounds.back().b);
  // Work in units of keys x queries.
  std::vector<double> work;
  double total = 0;
  for (const WholeCall& call : calls) {
    double of_call =
        static_cast<double>(call.count) * static_cast<double>(call.length) * static_cast<double>(call.length);
    for (const std::int64_t length : call.lengths.lengths) {
      if (!call.is_dense()) of_call += static_cast<double>(length) * static_cast<double>(length);
    }
    work.push_back(of_call);
    total += of_call;
  }
  double done = 0;
  std::size_t first = 0;
  while (first < calls.size() && (all == 0 || done < total * before / all)) done += work[first++];
  return first;
}

}  // namespace zellige
