// SPDX-License-Identifier: Apache-2.0
// The world group over NCCL; no_nccl_group.cpp takes this file's place where torch has no CUDA.
#include <exception>

#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "engine/rendezvous.h"
#include "engine/torch.h"
#include "zellige/error.h"
#include "zellige/process_group.h"

namespace zellige {
namespace {

const char* const kWhere = "engine.join_world";

/// Ends its communicators with itself: waits for what is under way, unless the program is on its way out with an error,
/// where the other ranks may never join.
class WorldProcessGroup final : public c10d::ProcessGroup {
 public:
  WorldProcessGroup(const c10::intrusive_ptr<c10d::Store>& store, const Rendezvous& at,
                    const c10::intrusive_ptr<c10d::ProcessGroupNCCL>& backend)
      : ProcessGroup(store, at.rank, at.ranks), backend_(backend) {
    setBackend(c10::DeviceType::CUDA, BackendType::NCCL, backend);
    setDefaultBackend(BackendType::NCCL);
    setGroupName("zellige");
  }
  ~WorldProcessGroup() override {
    if (std::uncaught_exceptions() > 0) {
      backend_->abort();
    } else {
      backend_->shutdown();
    }
  }

 private:
  const c10::intrusive_ptr<c10d::ProcessGroupNCCL> backend_;
};

}  // namespace

std::string why_no_nccl() { return c10::cuda::device_count() > 0 ? "" : "there is no GPU that CUDA can use"; }

WorldGroup join_world(const Env& env, const WorldGroupOptions& options) {
  const Rendezvous at = rendezvous_of(env);
  if (const std::string why = why_no_nccl(); !why.empty()) throw Error(Code::device, kWhere, why);
  const int gpus = c10::cuda::device_count();
  if (at.local_rank >= gpus) {
    throw Error(Code::device, kWhere,
                "LOCAL_RANK is " + std::to_string(at.local_rank) + " but the host has " + std::to_string(gpus) +
                    " GPUs; start one process a GPU");
  }
  const at::Device device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(at.local_rank));
  c10::cuda::set_device(device.index());
  const c10::intrusive_ptr<c10d::Store> store = open_store(at, options.start_timeout);
  try {
    const auto nccl = c10d::ProcessGroupNCCL::Options::create();
    nccl->timeout = options.timeout;
    nccl->group_name = "zellige";
    const auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, at.rank, at.ranks, nccl);
    backend->setBoundDeviceId(device);
    auto group = c10::make_intrusive<WorldProcessGroup>(store, at, backend);
    group->setBoundDeviceId(device);
    backend->eagerConnectSingleDevice(device);  // what is wrong with the links shows here, not in the first step
    return {std::move(group), at.rank, at.ranks, device};
  } catch (const std::exception& error) {
    throw Error(Code::communication, kWhere,
                "rank " + std::to_string(at.rank) + " of " + std::to_string(at.ranks) + ": NCCL: " + error.what());
  }
}

}  // namespace zellige
