// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "zellige/trainer.h"
#include "zellige/units.h"

namespace zellige {

/// What the thread ranks of a run need of this machine's memory: an estimate, from below where it errs.
struct HostNeed {
  Bytes states;       ///< a rank: parameters, gradients and both moments of AdamW
  Bytes activations;  ///< a rank: of its share of a batch's tokens, twice the memory model of section IV-B
  Bytes thread;       ///< a rank: its threads' stacks and buffers

  Bytes a_rank() const { return states + activations + thread; }
};
HostNeed host_need(const TrainConfig& config);

/// Physical memory that this process may still take: what the system has free or can free, within the limit of its
/// control group. Zero when the system doesn't say.
Bytes available_host_memory();

/// Refuses a run of more ranks than fit, before a thread is started: thread ranks of one process would fill the memory
/// of the whole machine.
/// @param available  zero: unknown, nothing is refused
/// Errors: Code::input naming the count, the need, and how many ranks fit.
void require_host_memory(const TrainConfig& config, Bytes available);

}  // namespace zellige
