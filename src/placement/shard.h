// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "zellige/schedule.h"

namespace zellige {

/// Forward or backward of a layer.
enum class Pass { forward, backward };

/// One split segment in one wave, seen from this rank: who its peers are and what they own and compute. Cheap to make;
/// the schedule outlives it.
class Shard {
 public:
  Shard(const Schedule& schedule, const Segment& segment, int wave);

  int q() const { return segment_.config.q; }
  int h() const { return segment_.config.h; }
  int k() const { return segment_.config.k; }
  int iq() const { return segment_.iq; }
  int ih() const { return segment_.ih; }
  int ik() const { return segment_.ik; }

  bool is_self(int iq, int ih, int ik) const { return iq == segment_.iq && ih == segment_.ih && ik == segment_.ik; }
  TokenRange own_chunk() const { return {segment_.token_begin, segment_.num_tokens}; }
  TokenRange chunk_of(int iq, int ih, int ik) const;
  TokenRange block(int stage) const { return key_block(segment_, stage); }
  /// Coordinate ik of the block that this rank computes against in a stage.
  int block_ik(int stage) const { return (segment_.ik - stage + k()) % k(); }

  /// Appends the box of `payload`, tokens x the wave's heads of head group `group`, exchanged with rank (iq, ih, ik);
  /// nothing when the wave has no heads of this shard.
  void append(std::vector<Piece>& pieces, Payload payload, int iq, int ih, int ik, TokenRange tokens, int group) const;

 private:
  Rank rank_of(int iq, int ih, int ik) const;

  const Segment& segment_;
  int query_heads_ = 0, kv_heads_ = 0;  ///< of a head group, all waves
  HeadRange local_query_;               ///< of the wave, from the group's first
  HeadRange local_kv_;
};

}  // namespace zellige
