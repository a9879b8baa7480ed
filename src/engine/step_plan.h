// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "zellige/schedule.h"

namespace zellige {

/// Global heads that a rank computes for one split sequence in one wave; both empty where the wave has none of them.
struct WaveHeads {
  HeadRange query, key;
};

/// One split segment of this rank, with all ranges that its waves and stages compute.
struct ShardPlan {
  Segment segment;
  TokenRange queries;              ///< of all waves and stages
  std::vector<TokenRange> blocks;  ///< [k] keys of each ring stage; blocks[0] is the resident block
  std::vector<WaveHeads> waves;

  std::size_t stages() const { return blocks.size(); }
  /// From how many ranks the gradient of one key comes: where queries or the ring are split.
  int key_terms() const { return segment.config.q * segment.config.k; }
  bool is_active(std::size_t wave) const { return waves[wave].key.count > 0; }
  /// Rows of this rank's own chunk within the query range and within the resident block.
  TokenRange own_in_queries() const { return {segment.token_begin - queries.begin, segment.num_tokens}; }
  TokenRange own_in_resident() const { return {segment.token_begin - blocks[0].begin, segment.num_tokens}; }
  TokenRange local_rows() const { return {segment.local_begin, segment.num_tokens}; }
};

/// Which tensor a slice lies in: the rank's packed tensors [tokens_local, all heads], the box of queries that the rank
/// computes [queries, wave's heads], or a block of keys [blocks[stage], wave's heads].
enum class Place { packed, queries, block };

/// A Piece resolved: rows x heads of a tensor on this rank, and where they lie in the exchange's buffer.
struct SliceCopy {
  std::size_t shard = 0;  ///< in StepPlan::shards
  Rank peer = 0;
  Payload payload = Payload::query;
  Place place = Place::packed;
  std::size_t stage = 0;    ///< with Place::block
  TokenRange rows;          ///< in that tensor
  HeadRange heads;          ///< in that tensor
  std::int64_t offset = 0;  ///< in the buffer, elements
};

/// One all-to-all with everything looked up: built once a step, used by every layer.
struct ExchangePlan {
  Phase phase = Phase::a;
  std::size_t wave = 0;
  std::vector<SliceCopy> sends, receives;
  std::vector<std::int64_t> send_counts, receive_counts;  ///< [ranks], elements
  std::int64_t send_elements = 0, receive_elements = 0;
  /// Elements that leave the rank, by primitive: keys, values and their gradients between different ik are the ring's,
  /// between different iq all-gather's, the rest is Ulysses'.
  std::int64_t ring_elements = 0, all_gather_elements = 0, ulysses_elements = 0;
};

/// One wave of one group of split sequences: what its exchanges bring is computed, and what that gives goes back.
struct Round {
  int group = 0;
  std::size_t wave = 0;
  std::vector<std::size_t> shards;  ///< of the group, with heads in this wave; in StepPlan::shards
  ExchangePlan a;
  std::vector<ExchangePlan> ring;  ///< [longest ring of the group - 1]
  ExchangePlan b;
  bool a_is_early = false;  ///< A is posted before the round before is computed, else after that one's B
};

/// The collectives of one layer in one direction; none when no sequence of the placement is split. A coalesced step has
/// a round a wave; under the paper's engine every group of sequences has such rounds.
struct PassPlan {
  std::vector<Round> rounds;

  bool has_exchanges() const { return !rounds.empty(); }
};

/// Elements of the largest message buffers that a phase needs.
struct BufferNeed {
  std::int64_t send = 0, receive = 0;
};

/// A schedule made ready to run. Host data without torch.
struct StepPlan {
  Schedule schedule;
  std::vector<ShardPlan> shards;  ///< schedule.segments from num_whole on
  TokenRange split_rows;          ///< rows of the shards in the packed tensors, behind all whole sequences
  PassPlan forward, backward;

  std::size_t waves() const { return static_cast<std::size_t>(schedule.exec.waves); }
  std::array<BufferNeed, 3> needs;  ///< [phases] over both passes and all rounds
  const BufferNeed& need(Phase phase) const { return needs[static_cast<std::size_t>(phase)]; }
};

/// Errors: Code::input when the schedule does not hold together: exchanges out of order, counts that differ from their
/// pieces, pieces of sequences or ranges that this rank does not have. What lower() returns holds together.
StepPlan make_step_plan(const Schedule& schedule);

}  // namespace zellige
