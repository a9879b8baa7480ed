// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/meeting_point.h"
#include "engine/torch.h"

namespace zellige {

/// One rank's end of a process group whose ranks are threads of this process: collectives copy between the threads'
/// memory. Every call returns an asynchronous Work with a Future; results of reductions are summed in rank order in at
/// least 32 bits, so they are the same bits on every rank and in every run.
/// CPU tensors only: on a GPU all ranks of a process share one backward thread per device, which would deadlock.
/// Errors: Code::input before any communication for tensors that a call cannot take; Code::communication for
/// mismatches,
///   time limits and failures of other ranks, through the Work.
class ThreadBackend final : public c10d::Backend {
 public:
  ThreadBackend(std::shared_ptr<MeetingPoint> point, int rank);

  using Work = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  const std::string getBackendName() const override;
  Work broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  Work allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Work allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  Work reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  Work allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  Work _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  Work reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                      const c10d::ReduceScatterOptions& options) override;
  Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override;
  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                     std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  Work alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  Work barrier(const c10d::BarrierOptions& options) override;

 private:
  Work join(Call call, Tensors inputs, Tensors outputs, c10d::OpType type, const MeetingPoint::Work& work);
  Work exchange(const char* operation, c10d::OpType type, Tensors outputs, Tensors inputs);
  std::vector<std::int64_t> split_elements(const char* operation, const at::Tensor& tensor,
                                           const std::vector<std::int64_t>& splits) const;

  const std::shared_ptr<MeetingPoint> point_;
};

}  // namespace zellige
