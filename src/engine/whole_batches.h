// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "zellige/profile.h"
#include "zellige/schedule.h"

namespace zellige {

/// Neighbouring groups of whole sequences that one kernel call runs: a dense batch when it is one group, else sequences
/// of different lengths behind one another.
struct WholeBatch {
  std::size_t first = 0;  ///< in Schedule::whole_groups
  std::size_t count = 1;

  bool operator==(const WholeBatch&) const = default;
};

/// How whole groups share kernel calls. A dense call has the highest rate when it fills the GPU many times over; groups
/// too small for that run faster together with small neighbours.
/// @param heads     of a sequence
/// @param together  all in one call, whatever their size: the paper's block-diagonal call (section IV-D)
std::vector<WholeBatch> batch_whole_groups(std::span<const WholeGroup> groups, int heads, bool together);

/// Every group a call of its own.
std::vector<WholeBatch> one_batch_a_group(std::span<const WholeGroup> groups);

/// Rate of a kernel on a shape by the nearest measured row, in floating-point operations a microsecond; 0 when the
/// table has no row of that kernel and direction.
double measured_rate(std::span<const KernelRate> rates, std::string_view kernel, std::string_view direction,
                     std::int64_t length, std::int64_t count, std::int64_t heads);

}  // namespace zellige
