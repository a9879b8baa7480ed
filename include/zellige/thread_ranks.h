// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "zellige/units.h"

namespace zellige {

struct ThreadRankOptions {
  std::chrono::milliseconds timeout{60'000};  ///< a collective that one rank does not join by then fails on all ranks
  int threads_per_rank = 1;                   ///< intra-op threads of each rank
};

/// Runs `body(rank, group)` on `num_ranks` threads of this process, each with its own handle of one process group whose
/// collectives (all-to-all with uneven splits, all-reduce, broadcast, all-gather, barrier) copy between the threads'
/// memory. CPU tensors only: on a GPU all ranks of a process share one backward thread, which would deadlock. Returns
/// when all are done. An exception in one rank makes the others' collectives fail, so that all end; the first one is
/// rethrown here, with its rank in the text.
/// Every collective is compared across ranks (operation, sequence number): the first mismatch is Code::communication on
/// all.
void run_thread_ranks(int num_ranks, const std::function<void(Rank, c10::intrusive_ptr<c10d::ProcessGroup>)>& body,
                      const ThreadRankOptions& options = {});

}  // namespace zellige
