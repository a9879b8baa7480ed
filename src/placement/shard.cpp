// SPDX-License-Identifier: Apache-2.0
#include "placement/shard.h"

namespace zellige {
namespace {

bool counts_kv_heads(Payload payload) {
  switch (payload) {
    case Payload::key:
    case Payload::value:
    case Payload::grad_key:
    case Payload::grad_value: return true;
    case Payload::query:
    case Payload::output:
    case Payload::grad_output:
    case Payload::grad_query: return false;
  }
  return false;
}

}  // namespace

Shard::Shard(const Schedule& schedule, const Segment& segment, int wave)
    : segment_(segment),
      query_heads_(schedule.heads / segment.config.h),
      kv_heads_(schedule.kv_heads / segment.config.h),
      local_query_(wave_query_heads(schedule, segment, wave)),
      local_kv_(wave_kv_heads(schedule, segment, wave)) {
  local_query_.begin -= segment.ih * query_heads_;
  local_kv_.begin -= segment.ih * kv_heads_;
}

TokenRange Shard::chunk_of(int iq, int ih, int ik) const {
  return chunk(segment_.sequence_tokens, segment_.config.degree(), ih + h() * (iq + q() * ik));
}

Rank Shard::rank_of(int iq, int ih, int ik) const {
  return segment_.ranks[static_cast<std::size_t>(ih + h() * (iq + q() * ik))];
}

void Shard::append(std::vector<Piece>& pieces, Payload payload, int iq, int ih, int ik, TokenRange tokens,
                   int group) const {
  const bool kv = counts_kv_heads(payload);
  const HeadRange local = kv ? local_kv_ : local_query_;
  if (local.count == 0) return;
  Piece piece;
  piece.sequence = segment_.sequence;
  piece.payload = payload;
  piece.peer = rank_of(iq, ih, ik);
  piece.token_begin = tokens.begin;
  piece.num_tokens = tokens.count;
  piece.head_begin = group * (kv ? kv_heads_ : query_heads_) + local.begin;
  piece.num_heads = local.count;
  pieces.push_back(piece);
}

}  // namespace zellige
