// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zellige/placement.h"

namespace zellige {

/// One contiguous run of a sequence's tokens that this rank owns: a whole sequence, or its chunk of a split one.
struct Segment {
  SequenceIndex sequence = 0;        ///< in placement.sequences
  std::int64_t sequence_tokens = 0;  ///< L
  Configuration config;
  int iq = 0, ih = 0, ik = 0;  ///< this rank's coordinates; ih fastest, then iq, then ik
  std::vector<Rank> ranks;     ///< the rank set in coordinate order: rank (iq, ih, ik) is ranks[ih + h * (iq + q * ik)]
  std::int64_t token_begin = 0;  ///< first owned token, global in the sequence
  std::int64_t num_tokens = 0;   ///< owned tokens
  std::int64_t local_begin = 0;  ///< where they start in the rank's packed tensor
};

/// Whole sequences of equal length, adjacent in the packed tensor: one dense [count, length] view.
struct WholeGroup {
  std::int64_t length = 0;
  std::int64_t count = 0;
  std::int64_t local_begin = 0;
};

/// The tensors that travel.
enum class Payload { query, key, value, output, grad_output, grad_query, grad_key, grad_value };

/// Which exchange of a layer: A before attention, the ring's steps, B after it (engine.md, "One layer on one rank").
enum class Phase { a, ring, b };

/// A slice of one payload of one split sequence that goes to or comes from one peer. Heads of key-like payloads count
/// key/value heads. Elements travel token by token, then head, then head_dim.
struct Piece {
  SequenceIndex sequence = 0;
  Payload payload = Payload::query;
  Rank peer = 0;
  std::int64_t token_begin = 0;  ///< global in the sequence
  std::int64_t num_tokens = 0;
  int head_begin = 0;  ///< global head
  int num_heads = 0;

  bool operator==(const Piece&) const = default;
};

/// One all-to-all on the world group. A message to a peer is its pieces in order: split sequence (schedule order),
/// payload, token ascending. What stays on the rank is no piece.
struct Exchange {
  Phase phase = Phase::a;
  int wave = 0;                              ///< from 0
  int step = 0;                              ///< ring step, from 1; 0 elsewhere
  std::vector<Piece> sends;                  ///< by peer, then message order
  std::vector<Piece> receives;               ///< by peer, then message order
  std::vector<std::int64_t> send_counts;     ///< [ranks], elements
  std::vector<std::int64_t> receive_counts;  ///< [ranks], elements
};

/// All that one rank runs in an attention layer, forward and backward; the same for all layers of the step. Host data.
/// Every rank's `forward` and `backward` list the same (phase, wave, step) in the same order, also on a rank that holds
/// nothing: the number and order of collectives follow from the whole placement.
struct Schedule {
  Rank rank = 0;
  int ranks = 1;
  int heads = 0, kv_heads = 0, head_dim = 0;
  ExecOptions exec;
  std::string digest;             ///< the placement's
  std::int64_t num_tokens = 0;    ///< tokens_local
  std::vector<Segment> segments;  ///< whole sequences by falling length (batch order inside a length), then chunks by
                                  ///< falling degree (batch order inside a degree)
  std::vector<WholeGroup> whole_groups;
  std::size_t num_whole = 0;  ///< segments[0, num_whole) are whole, the rest chunks
  std::vector<Exchange> forward;
  std::vector<Exchange> backward;
};

/// Token range of chunk `index` when `length` tokens are cut in `degree` contiguous chunks, the first length mod degree
/// of which get one token more.
struct TokenRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};
TokenRange chunk(std::int64_t length, int degree, int index);

/// Heads [begin, begin + count) that wave `wave` of `waves` takes of the `local_heads` heads of a shard.
struct HeadRange {
  int begin = 0;
  int count = 0;
};
HeadRange wave_heads(int local_heads, int waves, int wave);

/// Lowers a placement to what `rank` runs. Errors: Code::input when the placement is malformed (rank sets, legality) or
/// asks for an engine that is not there.
Schedule lower(const Placement& placement, Rank rank);

std::string_view name(Payload payload);
std::string_view name(Phase phase);

}  // namespace zellige
