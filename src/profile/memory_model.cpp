// SPDX-License-Identifier: Apache-2.0
// M = M^act + M^KV + M^buf (paper, section IV-B) of one sequence on the rank of its set that holds most: coordinates
// (0, 0, 0), whose chunk, queries and keys are the first and therefore the longest. Tensors below are those that the
// block of Wan keeps between forward and backward; norm statistics and kernel workspaces are left to calibration.
#include <algorithm>

#include "profile/transformer_work.h"
#include "zellige/error.h"
#include "zellige/profile.h"

namespace zellige {
namespace {

constexpr std::int64_t kSumBytes = 4;  // fp32: accumulators and log-sum-exp, whatever the tensors' precision

/// Sizes on the rank, in tokens and elements of one token.
struct Shapes {
  std::int64_t chunk;           // l: tokens owned, ceil(L / lambda)
  std::int64_t queries;         // l_q: tokens of the h chunks (0, *, 0), whose queries this rank computes
  std::int64_t keys;            // l_k: tokens of the q*h chunks (*, *, 0), the resident K/V block
  std::int64_t width;           // d
  std::int64_t key_value;       // 2 d_kv: K and V of one token, all heads
  std::int64_t ffn;             // f
  std::int64_t text;            // tokens of cross-attention's text, whole on every rank that has a chunk
  std::int64_t head_width;      // d / h
  std::int64_t head_key_value;  // 2 d_kv / h
  std::int64_t head_count;      // heads / h
};

Shapes shapes(const ModelGeometry& model, Tokens length, Configuration c) {
  const std::int64_t degree = c.degree();
  // The first L mod lambda chunks have one token more.
  const auto first_chunks = [&](std::int64_t n) {
    return n * (length.value / degree) + std::min(n, length.value % degree);
  };
  const std::int64_t key_value = 2LL * model.kv_heads * model.head_dim;
  return {.chunk = first_chunks(1),
          .queries = first_chunks(c.h),
          .keys = first_chunks(std::int64_t{c.q} * c.h),
          .width = model.width(),
          .key_value = key_value,
          .ffn = model.ffn,
          .text = model.text == TextPlacement::cross ? model.text_tokens : 0,
          .head_width = model.width() / c.h,
          .head_key_value = key_value / c.h,
          .head_count = model.heads / c.h};
}

/// A split sequence of h > 1 holds its attention's result twice: by heads (the kernel's backward needs it) and by
/// chunks (the projection's backward needs it).
std::int64_t self_attention_bytes(const Shapes& s, Configuration c, std::int64_t element) {
  const std::int64_t by_chunks = s.chunk * (s.width    // LN1(x) (1 + c1) + s1: input of the q, k and v projections
                                            + s.width  // q before its RMSNorm
                                            + s.key_value / 2  // k before its RMSNorm
                                            + s.width          // attention's result, input of the output projection
                                            + s.width);        // the projection's result, which g1 multiplies
  const std::int64_t by_heads = s.queries * s.head_width * (c.h > 1 ? 2 : 1);      // Q with RoPE; the result
  return (by_chunks + by_heads) * element + s.queries * s.head_count * kSumBytes;  // and its log-sum-exp
}

std::int64_t cross_attention_bytes(const Shapes& s, const ModelGeometry& model, std::int64_t element) {
  if (model.text != TextPlacement::cross) return 0;
  const std::int64_t of_chunk = s.chunk * (s.width        // x after self-attention: input of LN3
                                           + s.width      // LN3(x): input of the q projection
                                           + s.width      // q before its RMSNorm
                                           + s.width      // q
                                           + s.width);    // attention's result, input of the output projection
  const std::int64_t of_text = s.text * (s.key_value / 2  // k before its RMSNorm
                                         + s.key_value);  // k and v
  return (of_chunk + of_text) * element + s.chunk * model.heads * kSumBytes;
}

std::int64_t feed_forward_bytes(const Shapes& s, std::int64_t element) {
  return s.chunk *
         (s.width       // x after attention: input of LN2
          + s.width     // LN2(x) (1 + c2) + s2: input of the first layer
          + 2 * s.ffn   // before and after GELU
          + s.width) *  // the second layer's result, which g2 multiplies
         element;
}

/// Elements of the exchanges of one layer on the rank: what it sends and what it receives. Messages to itself are none.
struct Exchange {
  std::int64_t send = 0;
  std::int64_t receive = 0;
};

Exchange sum(Exchange a, Exchange b) { return {a.send + b.send, a.receive + b.receive}; }

/// The biggest send and the biggest receive of all exchanges of a layer: their buffers are made once a step.
Exchange biggest_exchange(const Shapes& s, Configuration c, bool keep_kv) {
  const Exchange to_heads{s.chunk * (s.width - s.head_width), (s.queries - s.chunk) * s.head_width};
  const Exchange to_chunks{to_heads.receive, to_heads.send};
  const Exchange fetch{s.chunk * s.head_key_value * (std::int64_t{c.q} * c.h - 1),
                       (s.keys - s.chunk) * s.head_key_value};
  // Gradients of the own K/V block go to the chunks' owners; a foreign block has no chunk of this rank.
  const Exchange own_block_gradient{fetch.receive, fetch.send};
  const Exchange foreign_block_gradient{s.keys * s.head_key_value,
                                        s.chunk * s.head_key_value * std::int64_t{c.q} * c.h};

  Exchange biggest;
  const auto count = [&](Exchange exchange) {
    biggest = {std::max(biggest.send, exchange.send), std::max(biggest.receive, exchange.receive)};
  };
  count(sum(to_heads, fetch));                                                           // A: Q, K, V
  count(to_chunks);                                                                      // B: O
  count(keep_kv ? to_heads : sum(to_heads, fetch));                                      // A': dO, and K, V again
  if (c.k == 1) count(sum(to_chunks, own_block_gradient));                               // B': dQ, dK, dV
  if (c.k == 2) count(sum(to_chunks, sum(own_block_gradient, foreign_block_gradient)));  // B' of the last two blocks
  if (c.k > 2) count(sum(to_chunks, sum(foreign_block_gradient, foreign_block_gradient)));
  // Ring step 2 carries the own block's gradient, the later ones a foreign block's; K/V themselves have own buffers.
  if (c.k > 2) count(own_block_gradient);
  if (c.k > 3) count(foreign_block_gradient);
  return biggest;
}

std::int64_t buffer_bytes(const Shapes& s, Configuration c, bool keep_kv, std::int64_t element) {
  if (c.is_whole()) return 0;
  const Exchange exchange = biggest_exchange(s, c, keep_kv);
  // Ring: the block that is being computed and the one that is arriving.
  const std::int64_t ring = c.k > 1 ? 2 * s.keys * s.head_key_value : 0;
  // Partial results in fp32, forward (merged result, log-sum-exp) or backward (dQ over the blocks; the owner's dK, dV).
  const std::int64_t merged = s.queries * s.head_width * kSumBytes;
  const std::int64_t forward = c.k > 1 ? merged + s.queries * s.head_count * kSumBytes : 0;
  const std::int64_t backward = (c.k > 1 ? merged : 0) + s.chunk * s.key_value * kSumBytes;
  return (exchange.send + exchange.receive + ring) * element + std::max(forward, backward);
}

}  // namespace

MemoryTerms memory_terms(const ModelGeometry& model, Tokens length, Configuration configuration,
                         const MemoryOptions& options) {
  if (std::string reason = why_illegal(model, length, configuration, configuration.degree()); !reason.empty()) {
    throw Error(Code::input, "profile.memory_terms", reason);
  }
  check_size(model, length);
  const Shapes s = shapes(model, length, configuration);
  const std::int64_t element = options.element_bytes;

  const std::int64_t feed_forward = feed_forward_bytes(s, element);
  const std::int64_t block =
      self_attention_bytes(s, configuration, element) + cross_attention_bytes(s, model, element) + feed_forward;
  const std::int64_t input = s.chunk * s.width * element;
  const std::int64_t text = s.text * s.width * element;  // the text's embedding, shared by all blocks
  const std::int64_t gradient = input;                   // of the residual stream, as it passes through the block
  const std::int64_t live_blocks = options.checkpointing ? 1 : model.layers;

  MemoryTerms terms;
  // M^act = layers * l d  [block inputs]  +  live blocks * saved tensors  +  gradient  +  text
  terms.activations.value = model.layers * input + live_blocks * block + gradient + text;

  // M^KV: Table II, nested: the resident block of exchange A is l_k tokens of one head group, L kv / (h k):
  // L kv for (q, 1, 1), L kv / h for (1, h, 1), L kv / k for (1, 1, k).
  const std::int64_t resident = s.keys * s.head_key_value * element;
  if (options.keep_kv || configuration.is_whole()) {
    terms.key_value.value = live_blocks * resident;
  } else {
    // The chunk's own K and V stay, to be sent again. What was fetched lives during attention only, when the
    // feed-forward tensors of that block are not there: only what exceeds them adds to the peak.
    terms.key_value.value =
        live_blocks * s.chunk * s.key_value * element + std::max<std::int64_t>(0, resident - feed_forward);
  }
  // M^buf: once a step, reused by all layers.
  terms.buffers.value = buffer_bytes(s, configuration, options.keep_kv, element);
  return terms;
}

}  // namespace zellige
