// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "zellige/placement.h"

namespace zellige {

/// Payload bytes that leave their rank in a whole step (forward, recomputation where blocks are checkpointed, backward;
/// all layers; at the tensors' precision), by primitive.
struct BytesMoved {
  Bytes all_gather, ulysses, ring;
  Bytes total() const { return all_gather + ulysses + ring; }
};

struct Score {
  std::vector<Microseconds> load;      ///< [ranks], sum of prices
  std::vector<Microseconds> exchange;  ///< [ranks], sum of the prices' exchange parts
  std::vector<Bytes> memory;           ///< [ranks], sum of needs
  std::vector<Tokens> tokens;          ///< [ranks], tokens owned
  Microseconds makespan;               ///< largest load
  Microseconds floor;                  ///< floor(F)
  Microseconds step;                   ///< makespan + step_base: predicted step time
  Bytes peak;                          ///< largest memory + memory_base: predicted peak
  double over_floor = 0;               ///< makespan / F - 1
  double imbalance = 1;                ///< largest load / mean load; 1 when there is no load
  int split_count = 0;
  BytesMoved moved;
};

/// Scores a placement by the paper's additive model (Eq. 1, Eq. 6).
/// Errors: Code::input when the profile has no price for a sequence's bucket and configuration.
Score score(const Placement& placement, const Profile& profile);

}  // namespace zellige
