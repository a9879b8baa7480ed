// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "zellige/env.h"
#include "zellige/units.h"

namespace zellige {

struct WorldGroupOptions {
  std::chrono::milliseconds timeout{600'000};        ///< a collective that a rank does not join by then fails
  std::chrono::milliseconds start_timeout{300'000};  ///< by when all processes must have come together
};

/// This process among those that one launcher started, one GPU each.
struct WorldGroup {
  c10::intrusive_ptr<c10d::ProcessGroup> group;  ///< of all ranks, NCCL; all that the engine and gradient sync need
  Rank rank = 0;
  int ranks = 1;
  at::Device device{at::kCPU};  ///< this rank's GPU, local_rank on its host; made the calling thread's current one
};

/// Brings together the processes that `torchrun --no-python PROGRAM ...` started on one or several hosts, as one c10d
/// process group over NCCL. What it needs of the environment comes in `env` (Env::from_process()): RANK, WORLD_SIZE,
/// MASTER_ADDR, MASTER_PORT, and LOCAL_RANK where a host has several. Any other launcher that sets them does too: where
/// torchrun does not serve the rendezvous itself, rank 0 listens at MASTER_PORT.
/// The group's destructor waits for its last collectives, or gives them up when an exception is on its way.
/// Collective: every process calls this once, first of all.
/// Errors: Code::input for a variable that is missing (named) or out of range; Code::device without NCCL in this
///   build, without a GPU, or with fewer GPUs than local ranks; Code::communication when the processes do not meet in
///   time, the port is taken, or NCCL fails.
WorldGroup join_world(const Env& env, const WorldGroupOptions& options = {});

/// Whether join_world can work on this machine: empty, or why not (no NCCL in this build, no GPU).
std::string why_no_nccl();

}  // namespace zellige
