// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "placement/shard.h"

namespace zellige {

/// What one shard sends and receives in one exchange (engine.md, "Coordinates"). Each appends its pieces payload by
/// payload, tokens ascending for each peer; Exchange order by peer is made afterwards.

/// Forward: queries of the Ulysses group, keys and values of the resident block. Backward: the outputs' gradients, and
/// keys and values again where they were not kept.
void append_exchange_a(const Shard& shard, Pass pass, bool keep_kv, Exchange& exchange);

/// Ring step `exchange.step` in 1..: the neighbour's block comes, ours goes on; backward also brings the gradients of
/// the block before last to their owners. Nothing for a shard whose ring has fewer steps.
void append_ring_step(const Shard& shard, Pass pass, Exchange& exchange);

/// Forward: outputs to their owners. Backward: gradients of the queries, and of the keys and values that no ring step
/// took.
void append_exchange_b(const Shard& shard, Pass pass, Exchange& exchange);

/// Gradients of one payload (grad_key or grad_value) of one stage, from the ranks that computed them to the chunks'
/// owners; shared by ring steps and exchange B.
void append_block_gradients(const Shard& shard, Payload payload, int stage, Exchange& exchange);

}  // namespace zellige
