// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "engine/torch.h"

/// One rank of several that are not there: what the engine does beside moving data, measured on one GPU.
namespace zellige::bench {

/// Takes all-to-alls and moves nothing but what a rank sends itself, as for one rank of several that are not there.
class Nowhere final : public c10d::Backend {
 public:
  using c10d::Backend::Backend;
  const std::string getBackendName() const override { return "nowhere"; }
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>&,
                                               std::vector<std::int64_t>&, const c10d::AllToAllOptions&) override {
    if (input.scalar_type() == at::kByte) output.copy_(input);  // the comparison of plans
    return {};
  }
};

/// Rank 0 of such a group.
inline c10::intrusive_ptr<c10d::ProcessGroup> one_rank_of(int ranks) {
  auto group = c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), 0, ranks);
  const c10::intrusive_ptr<c10d::Backend> backend = c10::make_intrusive<Nowhere>(0, ranks);
  for (const auto device : {c10::DeviceType::CPU, c10::DeviceType::CUDA}) {
    group->setBackend(device, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  }
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  return group;
}

}  // namespace zellige::bench
