// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "zellige/schedule.h"

namespace zellige {

/// Fills in `segments`, `whole_groups`, `num_whole` and `num_tokens`: what `schedule.rank` owns and where it lies in
/// the rank's packed tensors (engine.md, "Layout of tokens").
/// @param placement  lowerable (require_lowerable)
void lay_out_segments(const Placement& placement, Schedule& schedule);

}  // namespace zellige
