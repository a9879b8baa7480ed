// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plan/deadline.h"
#include "zellige/planner.h"

namespace zellige {

/// What would make a batch fit that does not, in words: the fewest tokens of one bucket that have to go, the fewest
/// further ranks, the least further memory, and, where they alone are enough, the other menu, prices of higher degrees,
/// and activation checkpointing. Each was tried and a placement found that keeps the cap; needs of options that have no
/// price, and those with checkpointing, are scaled from priced ones by the memory model (what_if.h) and called
/// estimated. Empty when nothing was found. Deterministic but for the deadline.
std::string what_would_fit(const Batch& batch, const Profile& profile, const PlanOptions& options,
                           const Deadline& deadline);

}  // namespace zellige
