// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "zellige/placement.h"

namespace zellige {

/// Payload bytes of attention that leave their rank in a whole step, by primitive: all layers, at wire precision (bf16,
/// 2 bytes an element), forward + recomputation + backward. Where blocks are checkpointed (profile.key.checkpointing)
/// the recomputation repeats all exchanges of the forward pass, as a block then keeps nothing but its input; K/V that
/// `keep_kv` keeps are those of the recomputation, so it saves the backward pass its own fetch and no more.
struct BytesMoved {
  Bytes all_gather, ulysses, ring;
  Bytes total() const { return all_gather + ulysses + ring; }
};

struct Score {
  std::vector<Microseconds> load;      ///< [ranks], by the load model; additive: sum of prices
  std::vector<Microseconds> exchange;  ///< [ranks], sum of the prices' exchange parts
  std::vector<Bytes> memory;           ///< [ranks], sum of needs
  std::vector<Tokens> tokens;          ///< [ranks], tokens owned
  Microseconds makespan;               ///< largest load
  Microseconds floor;                  ///< floor(F)
  Microseconds step;                   ///< makespan + step_base: predicted step time
  Bytes peak;                          ///< largest memory + memory_base: predicted peak
  double over_floor = 0;               ///< makespan / F - 1, F not rounded; 0 when there is no load
  double imbalance = 1;                ///< largest load / mean load; 1 when there is no load
  int split_count = 0;
  BytesMoved moved;
};

/// Scores a placement: by the paper's additive loads (Eq. 1, Eq. 6), or by another load model.
/// Errors: Code::input when the profile is for another model or has no price for a sequence's bucket and configuration,
/// or a rank set is not degree-many of 0 .. ranks - 1.
Score score(const Placement& placement, const Profile& profile, const LoadModel& model = {});

}  // namespace zellige
