// SPDX-License-Identifier: Apache-2.0
// M = M^act + M^KV + M^buf (paper, section IV-B) of one sequence on the rank of its set that holds most: coordinates
// (0, 0, 0), whose chunk, queries and keys are the first and therefore the longest. Counted are the tensors that exist
// at the moment when most do, in the backward pass of the last block, or where a split needs more then, in that of its
// self-attention. Every term is compared with counted allocations by tests/calibrate/memory_terms_test.cpp; workspaces
// of kernels are left to calibration.
#include <algorithm>
#include <initializer_list>

#include "profile/transformer_work.h"
#include "zellige/error.h"
#include "zellige/profile.h"

namespace zellige {
namespace {

constexpr std::int64_t kWideBytes = 4;        // fp32: statistics, sums and log-sum-exp, whatever the tensors' precision
constexpr std::int64_t kLatentChannels = 16;  // of the models' video autoencoder
constexpr std::int64_t kPieceElements = std::int64_t{1} << 23;  // model's elementwise work is done in such pieces

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
  std::int64_t latent;          // values of a token of the latent
  bool gathers;                 // q * h > 1: the resident block is more than the own chunk's
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
          .head_count = model.heads / c.h,
          .latent = kLatentChannels * model.patch[0] * model.patch[1] * model.patch[2],
          .gathers = c.q * c.h > 1};
}

/// What self-attention keeps beside K and V. A split of h > 1 holds queries and results twice: of its chunk, and those
/// that it computes.
std::int64_t self_attention_bytes(const Shapes& s, const MemoryOptions& options) {
  const std::int64_t by_chunks = s.chunk * (s.width    // LN1(x) (1 + c1) + s1: input of the q, k and v projections
                                            + s.width  // q before its RMSNorm
                                            + s.key_value / 2  // k before its RMSNorm
                                            + s.width          // q with RoPE
                                            + s.width);        // attention's result, input of the output projection
  const std::int64_t by_heads = s.queries > s.chunk ? 2 * s.queries * s.head_width : 0;
  const std::int64_t statistics = s.chunk * 4 * kWideBytes;  // LN1's two, one of each RMSNorm
  return (by_chunks + by_heads) * options.element_bytes + statistics + s.queries * s.head_count * kWideBytes;
}

std::int64_t cross_attention_bytes(const Shapes& s, const ModelGeometry& model, const MemoryOptions& options) {
  if (s.text == 0) return 0;
  const std::int64_t of_chunk =
      s.chunk * (s.width                                  // LN3(x): input of the q projection
                 + s.width                                // q before its RMSNorm
                 + s.width                                // q
                 + 2 * s.width);                          // each text's result, and all in one: the projection's input
  const std::int64_t of_text = s.text * (s.key_value / 2  // k before its RMSNorm
                                         + s.key_value);  // k and v
  const std::int64_t statistics = s.chunk * 3 + s.text;   // LN3's two, one of each RMSNorm
  return (of_chunk + of_text) * options.element_bytes + (s.chunk * model.heads + statistics) * kWideBytes;
}

/// The rest of a block: two residuals, and the feed-forward network, which computes its inner layer's result again.
std::int64_t feed_forward_bytes(const Shapes& s, const MemoryOptions& options) {
  const std::int64_t residuals = s.text > 0 ? 2 * s.width : s.width;  // x after self- and after cross-attention
  const std::int64_t updates = 2 * s.width;  // what self-attention and the feed-forward add to x, which g1, g2 multiply
  const std::int64_t inner = s.width + s.ffn;  // LN2(x) (1 + c2) + s2; before GELU
  return s.chunk * ((residuals + updates + inner) * options.element_bytes + 2 * kWideBytes);
}

/// The modulation's six rows of a sequence, and of two of them one more than each.
std::int64_t modulation_bytes(const Shapes& s) { return 8 * s.width * kWideBytes; }

/// Inputs, what belongs to no block, and the text's embedding.
std::int64_t ends_bytes(const Shapes& s, const ModelGeometry& model, const MemoryOptions& options) {
  const std::int64_t of_token = 3 * s.latent;  // latent, target, prediction
  const std::int64_t turns = model.head_dim * std::max<std::int64_t>(kWideBytes, options.element_bytes);  // complex
  // The text encoder's states; before and after GELU; the embedding.
  const std::int64_t of_text = options.text_dim + 3 * s.width;
  return (s.chunk * of_token + s.text * of_text) * options.element_bytes + s.chunk * (turns + kWideBytes);
}

/// Elements of one exchange of a layer on the rank: what it sends and what it receives. Messages to itself are none.
struct Exchange {
  std::int64_t send = 0;
  std::int64_t receive = 0;
};

Exchange sum(Exchange a, Exchange b) { return {a.send + b.send, a.receive + b.receive}; }

/// Send and receive buffers of exchanges A, of the ring and of B, each as large as the largest of its kind in both
/// passes: made once a step.
std::int64_t buffer_elements(const Shapes& s, Configuration c, bool keep_kv) {
  const Exchange to_heads{s.chunk * (s.width - s.head_width), (s.queries - s.chunk) * s.head_width};
  const Exchange to_chunks{to_heads.receive, to_heads.send};
  const Exchange fetch{s.chunk * s.head_key_value * (std::int64_t{c.q} * c.h - 1),
                       (s.keys - s.chunk) * s.head_key_value};
  // Gradients of the own K/V block go to the chunks' owners; a foreign block has no chunk of this rank.
  const Exchange own_gradient{fetch.receive, fetch.send};
  const Exchange foreign_gradient{s.keys * s.head_key_value, s.chunk * s.head_key_value * std::int64_t{c.q} * c.h};
  const Exchange block{s.keys * s.head_key_value, s.keys * s.head_key_value};

  const auto largest = [](const std::initializer_list<Exchange>& exchanges) {
    Exchange found;
    for (const Exchange& e : exchanges) found = {std::max(found.send, e.send), std::max(found.receive, e.receive)};
    return found.send + found.receive;
  };
  // A: Q, K, V; A': dO, and K, V where they were not kept.
  const std::int64_t a = largest({sum(to_heads, fetch), keep_kv ? to_heads : sum(to_heads, fetch)});
  // Backward, ring step 2 also carries the own block's gradients, later ones a foreign block's.
  std::int64_t ring = 0;
  if (c.k == 2) ring = largest({block});
  if (c.k == 3) ring = largest({block, sum(block, own_gradient)});
  if (c.k > 3) ring = largest({block, sum(block, own_gradient), sum(block, foreign_gradient)});
  // B: O; B': dQ, and dK, dV of the last two blocks.
  Exchange last = own_gradient;
  if (c.k == 2) last = sum(own_gradient, foreign_gradient);
  if (c.k > 2) last = sum(foreign_gradient, foreign_gradient);
  return a + ring + largest({to_chunks, sum(to_chunks, last)});
}

/// What the backward pass of self-attention needs beside its inputs: gradients of the result and of q, k, v; of split
/// sequences the boxes that are computed with.
std::int64_t attention_backward_bytes(const Shapes& s, Configuration c, const MemoryOptions& options) {
  std::int64_t elements = s.chunk * (2 * s.width + s.key_value);
  if (c.is_whole()) return elements * options.element_bytes;
  const std::int64_t box = s.queries * s.head_width, block = s.keys * s.head_key_value;
  const bool narrow = options.element_bytes < kWideBytes;
  if (c.h > 1) elements += box;                          // dO of the queries
  if (s.gathers && !options.keep_kv) elements += block;  // fetched again
  if (c.h > 1 || c.k > 1) elements += box;               // dQ of one stage
  elements += block;                                     // dK, dV of one stage
  if (c.k > 1) elements += 2 * block;                    // of the stage before; the foreign block
  std::int64_t sums = 0;
  if (c.k > 2) sums += box * std::max<std::int64_t>(kWideBytes, options.element_bytes);  // dQ of all stages
  if (c.k == 2) elements += box;
  if (narrow && c.q * c.k > 2) sums += s.chunk * s.key_value * kWideBytes;  // dK, dV of the own chunk
  return elements * options.element_bytes + sums;
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
  const std::int64_t stream = s.chunk * s.width * element;  // the residual stream, or its gradient

  // M^KV: Table II, nested: the resident block of exchange A is l_k tokens of one head group, L kv / (h k):
  // L kv for (q, 1, 1), L kv / h for (1, h, 1), L kv / k for (1, 1, k). The chunk's own K and V stay beside it.
  const std::int64_t own = s.chunk * s.key_value * element;
  const std::int64_t resident = s.keys * s.head_key_value * element;
  const bool keeps_block = s.gathers && options.keep_kv;
  const std::int64_t key_value = keeps_block ? resident : own;

  const std::int64_t attention = self_attention_bytes(s, options) + (keeps_block ? own : 0);
  const std::int64_t block =
      attention + cross_attention_bytes(s, model, options) + feed_forward_bytes(s, options) + modulation_bytes(s);
  const std::int64_t live_blocks = options.checkpointing ? 1 : model.layers;

  // The feed-forward's backward: gradients of its result and of its inner layer, or before it the second residual's
  // product, in fp32, a piece of the tokens at a time. The result itself is gone when its input's gradient comes.
  const std::int64_t products =
      (element < kWideBytes ? 2 : 1) * std::min(s.chunk * s.width, kPieceElements) * kWideBytes;
  const std::int64_t feed_forward = stream + std::max(s.chunk * s.ffn * element, products);
  // Self-attention's backward: the other parts of the block are gone, the gradient of x after it has come.
  const std::int64_t self_attention = attention - block + stream + attention_backward_bytes(s, configuration, options);

  MemoryTerms terms;
  // M^act = layers * l d  [block inputs]  +  gradient of the last block's result  +  ends  +  live blocks * saved
  // tensors
  //         +  what the feed-forward's backward needs
  terms.activations.value =
      (model.layers + 1) * stream + ends_bytes(s, model, options) + live_blocks * block + feed_forward;
  terms.key_value.value = live_blocks * key_value;
  // M^buf: the exchanges' buffers; and what self-attention's backward needs over the feed-forward's.
  if (!configuration.is_whole()) {
    terms.buffers.value = buffer_elements(s, configuration, options.keep_kv) * element;
  }
  terms.buffers.value += std::max<std::int64_t>(0, self_attention - feed_forward);
  return terms;
}

Bytes step_workspace(const ModelGeometry& model, const MemoryOptions& options) {
  const std::int64_t d = model.width(), f = model.ffn, kv = 2LL * model.kv_heads * model.head_dim;
  const std::int64_t of_attention = 2 * d * d + d * kv;
  const std::int64_t weights = (model.text == TextPlacement::cross ? 2 : 1) * of_attention + 2 * d * f;
  const std::int64_t copies =
      options.element_bytes < kWideBytes ? weights * (options.checkpointing ? 1 : model.layers) : 0;
  return {(copies + 2 * d * f) * options.element_bytes};
}

}  // namespace zellige
