// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "placement/exchanges.h"

namespace zellige {
namespace {

/// The inverse of exchange A's queries: each rank gives what it computed for a chunk back to the chunk's owner.
void append_to_owners(const Shard& shard, Payload payload, Exchange& exchange) {
  for (int ih = 0; ih < shard.h(); ++ih) {
    if (ih == shard.ih()) continue;
    shard.append(exchange.sends, payload, shard.iq(), ih, shard.ik(), shard.chunk_of(shard.iq(), ih, shard.ik()),
                 shard.ih());
    shard.append(exchange.receives, payload, shard.iq(), ih, shard.ik(), shard.own_chunk(), ih);
  }
}

}  // namespace

void append_exchange_b(const Shard& shard, Pass pass, Exchange& exchange) {
  if (pass == Pass::forward) {
    append_to_owners(shard, Payload::output, exchange);
    return;
  }
  append_to_owners(shard, Payload::grad_query, exchange);
  // Ring step t took stage t - 2; the last two stages are computed after the last step was posted.
  const int first_left = std::max(0, shard.k() - 2);
  for (const Payload payload : {Payload::grad_key, Payload::grad_value}) {
    for (int stage = first_left; stage < shard.k(); ++stage) append_block_gradients(shard, payload, stage, exchange);
  }
}

}  // namespace zellige
