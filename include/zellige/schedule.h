// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zellige/placement.h"

namespace zellige {

/// A run of tokens, global in a sequence.
struct TokenRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;

  std::int64_t end() const { return begin + count; }
  bool operator==(const TokenRange&) const = default;
};

/// A run of heads.
struct HeadRange {
  int begin = 0;
  int count = 0;

  int end() const { return begin + count; }
  bool operator==(const HeadRange&) const = default;
};

/// One contiguous run of a sequence's tokens that this rank owns: a whole sequence, or its chunk of a split one. Its
/// rows in the rank's packed tensors are [local_begin, local_begin + num_tokens). A sequence has at most one segment on
/// a rank, and num_tokens >= 1.
struct Segment {
  SequenceIndex sequence = 0;        ///< in placement.sequences
  std::int64_t sequence_tokens = 0;  ///< L
  Configuration config;
  int iq = 0, ih = 0, ik = 0;  ///< this rank's coordinates; ih fastest, then iq, then ik
  std::vector<Rank> ranks;     ///< the rank set in coordinate order: rank (iq, ih, ik) is ranks[ih + h * (iq + q * ik)]
                               ///< and owns the chunk of that index
  std::int64_t token_begin = 0;  ///< first owned token, global in the sequence
  std::int64_t num_tokens = 0;   ///< owned tokens
  std::int64_t local_begin = 0;  ///< where they start in the rank's packed tensor
  int group = 0;                 ///< whose exchanges carry it (Exchange::group); 0 of a whole sequence
};

/// Whole sequences of equal length, adjacent in the packed tensor: one dense [count, length] view.
struct WholeGroup {
  std::int64_t length = 0;
  std::int64_t count = 0;
  std::int64_t local_begin = 0;
};

/// The tensors that travel. Their order here is their order in a message.
enum class Payload { query, key, value, output, grad_output, grad_query, grad_key, grad_value };

/// Which exchange of a layer: A before attention, the ring's steps, B after it (engine.md, "One layer on one rank").
enum class Phase { a, ring, b };

/// A slice of one payload of one split sequence that goes to or comes from one peer: the box of tokens
/// [token_begin, token_begin + num_tokens) x heads [head_begin, head_begin + num_heads) x head_dim, never empty.
/// Both ends write the same piece, peer aside. Heads of key, value, grad_key and grad_value count key/value heads, all
/// others query heads. Elements travel token by token, then head, then head_dim: num_tokens * num_heads * head_dim.
struct Piece {
  SequenceIndex sequence = 0;
  Payload payload = Payload::query;
  Rank peer = 0;                 ///< never the rank itself: what stays on the rank is no piece
  std::int64_t token_begin = 0;  ///< global in the sequence
  std::int64_t num_tokens = 0;
  int head_begin = 0;  ///< global head
  int num_heads = 0;

  bool operator==(const Piece&) const = default;
};

/// One all-to-all on the world group. A message to a peer is its pieces one after the other, in the order: split
/// sequence (schedule order), payload, token ascending. Messages lie in the send buffer by rising peer, without gaps,
/// so `sends` in order fill the whole buffer; the receive buffer likewise. An exchange may be empty on a rank, or on
/// all of them; it is called all the same.
struct Exchange {
  int group = 0;  ///< 0 of a coalesced step; of the paper's engine one a configuration and rank set
  Phase phase = Phase::a;
  int wave = 0;                              ///< from 0
  int step = 0;                              ///< ring step, from 1; 0 elsewhere
  std::vector<Piece> sends;                  ///< by peer, then message order
  std::vector<Piece> receives;               ///< by peer, then message order
  std::vector<std::int64_t> send_counts;     ///< [ranks], elements
  std::vector<std::int64_t> receive_counts;  ///< [ranks], elements
};

/// All that one rank runs in an attention layer, forward and backward; the same for all layers of the step. Host data.
///
/// Every rank's `forward` and `backward` list the same (phase, wave, step) in the same order, also on a rank that holds
/// nothing: with w waves and k the largest ring of the whole placement, A of wave 0, then for each wave i: A of wave
/// i + 1 (if i + 1 < w), ring steps 1..k-1 of wave i, B of wave i. Backward lists the same. Both are empty when no
/// sequence of the placement is split.
///
/// With exec.engine "paper" that list is made for each group, one group after the other, k being the largest ring of
/// the group. A group is all split sequences of one configuration and rank set (in order); groups come by falling
/// degree, then by their first sequence. With overlap A of the next group comes before the ring of this group's last
/// wave, as waves do. A layer then makes sum over groups of w (k + 1) calls each way, a coalesced one w (k + 1). Ranks
/// outside a group's rank set make its calls with zero counts: on one world group no rank set costs a communicator of
/// its own.
///
/// Forward of wave i, for each split segment g with heads in it (kv = wave_kv_heads, qh = wave_query_heads; the rank
/// computes queries query_range(g) of heads qh against all keys, in k stages; stage t against key_block(g, t)):
///   A       brings query [query_range x qh] and key, value [key_block(g, 0) x kv], the "resident block". The rank's
///   own
///           chunk is part of both ranges and is read from its packed tensors.
///   stage t = 0..k-1: attention against key_block(g, t); stages merge by log-sum-exp.
///   ring t  = 1..k-1: sends key, value of key_block(g, t - 1) on to the next ik, receives those of key_block(g, t)
///   from
///           the ik before. Nothing of it depends on stage t - 1, so it may run beside it. A sequence with a smaller k
///           than the step's takes part in its own k - 1 steps only.
///   B       (h > 1) returns output [each chunk of query_range x qh] to the chunk's owner, and brings output
///           [own chunk x the wave's heads of every other ih].
/// To keep for backward: the rank's own q, k, v; query [query_range x qh], the merged output of the same box and its
/// log-sum-exp, so that delta = rowsum(grad_output * output) needs no exchange; with keep_kv the resident block.
///
/// Backward of wave i:
///   A       brings grad_output [query_range x qh] (h > 1), and without keep_kv key, value as in forward.
///   stage t = 0..k-1: adds to grad_query [query_range x qh]; gives grad_key, grad_value [key_block(g, t) x kv].
///   ring t  = 1..k-1: key, value as in forward; t >= 2: also grad_key, grad_value of stage t - 2, each chunk to its
///           owner. It may run beside stage t - 1.
///   B       (h > 1) returns grad_query to the owners; grad_key, grad_value of the last two stages (of the only one,
///           where k = 1) to theirs.
/// An owner's grad_key, grad_value is the sum of all pieces that it receives for its chunk, of all waves, and of its
/// own stage 0 (where its own chunk lies). Every other payload is received once for each (token, head).
struct Schedule {
  Rank rank = 0;
  int ranks = 1;
  int heads = 0, kv_heads = 0, head_dim = 0;
  ExecOptions exec;
  std::string digest;             ///< the placement's
  std::int64_t num_tokens = 0;    ///< tokens_local
  std::vector<Segment> segments;  ///< whole sequences by falling length (batch order inside a length), then chunks by
                                  ///< falling degree (batch order inside a degree): the schedule order
  std::vector<WholeGroup> whole_groups;
  std::size_t num_whole = 0;  ///< segments[0, num_whole) are whole, the rest chunks
  std::vector<Exchange> forward;
  std::vector<Exchange> backward;
};

/// Token range of chunk `index` when `length` tokens are cut in `degree` contiguous chunks, the first length mod degree
/// of which get one token more.
TokenRange chunk(std::int64_t length, int degree, int index);

/// Queries that the rank of this segment computes: chunks (iq, *, ik), one contiguous range. A whole sequence: all.
TokenRange query_range(const Segment& segment);

/// Keys and values of ring stage `stage` in 0..k-1: chunks (*, *, (ik - stage) mod k), one contiguous range. Stage 0 is
/// the resident block.
TokenRange key_block(const Segment& segment, int stage);

/// Heads [begin, begin + count) that wave `wave` of `waves` takes of the `local_heads` heads of a shard:
/// [wave * n / waves, (wave + 1) * n / waves); empty in some waves where waves > n.
HeadRange wave_heads(int local_heads, int waves, int wave);

/// Global key/value heads, and global query heads, that the rank of this split segment computes in a wave; empty where
/// the wave lacks that shard. Waves cut the shard's kv_heads / h key/value heads by wave_heads, and a query head goes
/// with its key/value head (heads / kv_heads query heads share one, consecutively), so that a group is never cut.
HeadRange wave_kv_heads(const Schedule& schedule, const Segment& segment, int wave);
HeadRange wave_query_heads(const Schedule& schedule, const Segment& segment, int wave);

/// More waves than any model has heads serve nobody; a placement that asks for more is refused.
inline constexpr int kMaxWaves = 1024;

/// Lowers a placement to what `rank` runs. A pure function of its arguments; every rank of the world group lowers the
/// same placement and is refused alike, before any collective.
/// Errors: Code::input, naming the sequence and the value, when the placement is malformed (world size, model,
/// legality, rank sets, waves), too large for 64-bit counts, or asks for an engine that is not there; when `rank` is
/// not one of its ranks.
Schedule lower(const Placement& placement, Rank rank);

std::string_view name(Payload payload);  ///< e.g. "grad-output"
std::string_view name(Phase phase);      ///< "a", "ring", "b"

}  // namespace zellige
