// SPDX-License-Identifier: Apache-2.0
#include "placement/exchanges.h"

namespace zellige {
namespace {

/// Each rank gives its chunk to the others of its Ulysses group, each of them the heads that it computes.
void append_among_ulysses_group(const Shard& shard, Payload payload, Exchange& exchange) {
  for (int ih = 0; ih < shard.h(); ++ih) {
    if (ih == shard.ih()) continue;
    shard.append(exchange.sends, payload, shard.iq(), ih, shard.ik(), shard.own_chunk(), ih);
    shard.append(exchange.receives, payload, shard.iq(), ih, shard.ik(), shard.chunk_of(shard.iq(), ih, shard.ik()),
                 shard.ih());
  }
}

/// All-gather over iq and Ulysses over ih in one step: each rank gives its chunk to all of its ik, each of them the
/// heads that it computes.
void append_among_resident_block(const Shard& shard, Payload payload, Exchange& exchange) {
  for (int iq = 0; iq < shard.q(); ++iq) {
    for (int ih = 0; ih < shard.h(); ++ih) {
      if (shard.is_self(iq, ih, shard.ik())) continue;
      shard.append(exchange.sends, payload, iq, ih, shard.ik(), shard.own_chunk(), ih);
      shard.append(exchange.receives, payload, iq, ih, shard.ik(), shard.chunk_of(iq, ih, shard.ik()), shard.ih());
    }
  }
}

}  // namespace

void append_exchange_a(const Shard& shard, Pass pass, bool keep_kv, Exchange& exchange) {
  if (pass == Pass::forward) append_among_ulysses_group(shard, Payload::query, exchange);
  if (pass == Pass::forward || !keep_kv) {
    append_among_resident_block(shard, Payload::key, exchange);
    append_among_resident_block(shard, Payload::value, exchange);
  }
  if (pass == Pass::backward) append_among_ulysses_group(shard, Payload::grad_output, exchange);
}

}  // namespace zellige
