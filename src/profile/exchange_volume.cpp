// SPDX-License-Identifier: Apache-2.0
// Counts over the rank set of one split sequence, from who needs what (docs/concepts/schedule.md):
// rank (iq, ih, ik) computes head group ih for the queries of chunks (iq, *, ik) against the keys of all chunks.
#include "zellige/profile.h"

namespace zellige {
namespace {

struct Elements {
  double queries;    // of one whole sequence: Q; O, dO and dQ are as large
  double key_value;  // K and V together; dK and dV together are as large
};

Elements elements(const ModelGeometry& model, Tokens length) {
  const double tokens = static_cast<double>(length.value);
  return {tokens * model.heads * model.head_dim, 2 * tokens * model.kv_heads * model.head_dim};
}

// One K/V token of one head group is needed by q*h ranks of its own ik, of which one owns it: (q*h - 1) / h crossings
// for each of the h head groups, of which (q - 1) * h / h come from another iq.
double from_other_query_chunks(double key_value, Configuration c) { return key_value * (c.q - 1); }
double within_query_chunk(double key_value, Configuration c) { return key_value * (c.h - 1) / c.h; }

// Every rank passes what it holds, a share 1 / (h * k) of K/V, on in k - 1 steps: q*h*k * (k - 1) / (h * k).
double around_the_ring(double key_value, Configuration c) { return key_value * c.q * (c.k - 1); }

// One tensor in the layout of chunks goes to the layout of heads, or back: all but each rank's own head group moves.
double between_layouts(double queries, Configuration c) { return queries * (c.h - 1) / c.h; }

}  // namespace

ExchangeVolume forward_volume(const ModelGeometry& model, Tokens length, Configuration c) {
  const auto [queries, key_value] = elements(model, length);
  // 2(h-1)/h [Q, O] + 2(qh-1)/h [K, V] + 2q(k-1) [ring]
  return {.all_gather = from_other_query_chunks(key_value, c),
          .ulysses = 2 * between_layouts(queries, c) + within_query_chunk(key_value, c),
          .ring = around_the_ring(key_value, c)};
}

ExchangeVolume backward_volume(const ModelGeometry& model, Tokens length, Configuration c, bool keep_kv) {
  const auto [queries, key_value] = elements(model, length);
  // 2(h-1)/h [dO, dQ] + 2q(k-1) [K, V again around the ring] + 2(qhk-1)/h [dK, dV from every rank to the owner:
  // q*h*k ranks compute a share of each, one of them owns it], and 2(qh-1)/h where A brings K, V again.
  const double times = keep_kv ? 1 : 2;
  return {.all_gather = times * from_other_query_chunks(key_value, c),
          .ulysses = 2 * between_layouts(queries, c) + times * within_query_chunk(key_value, c),
          .ring = 2 * around_the_ring(key_value, c)};
}

}  // namespace zellige
