// SPDX-License-Identifier: Apache-2.0
#include "placement/exchanges.h"

namespace zellige {

void append_ring_step(const Shard& shard, Pass pass, Exchange& exchange) {
  const int step = exchange.step;
  if (step >= shard.k()) return;
  // Blocks go from neighbour to neighbour rather than straight from their holder: the volume is the same, and a ring
  // that spans hosts crosses between them at its seams only.
  const int next = (shard.ik() + 1) % shard.k();
  const int previous = (shard.ik() + shard.k() - 1) % shard.k();
  for (const Payload payload : {Payload::key, Payload::value}) {
    shard.append(exchange.sends, payload, shard.iq(), shard.ih(), next, shard.block(step - 1), shard.ih());
    shard.append(exchange.receives, payload, shard.iq(), shard.ih(), previous, shard.block(step), shard.ih());
  }
  if (pass == Pass::backward && step >= 2) {
    append_block_gradients(shard, Payload::grad_key, step - 2, exchange);
    append_block_gradients(shard, Payload::grad_value, step - 2, exchange);
  }
}

void append_block_gradients(const Shard& shard, Payload payload, int stage, Exchange& exchange) {
  const int block_ik = shard.block_ik(stage);
  const int computing_ik = (shard.ik() + stage) % shard.k();  // whose block of this stage is our own
  for (int iq = 0; iq < shard.q(); ++iq) {
    for (int ih = 0; ih < shard.h(); ++ih) {
      // In stage 0 a rank's block holds its own chunk, whose gradients stay.
      if (shard.is_self(iq, ih, block_ik)) continue;
      shard.append(exchange.sends, payload, iq, ih, block_ik, shard.chunk_of(iq, ih, block_ik), shard.ih());
      shard.append(exchange.receives, payload, iq, ih, computing_ik, shard.own_chunk(), ih);
    }
  }
}

}  // namespace zellige
