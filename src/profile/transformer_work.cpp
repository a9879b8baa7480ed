// SPDX-License-Identifier: Apache-2.0
#include "profile/transformer_work.h"

#include "zellige/error.h"

namespace zellige {
namespace {

// Wan's ends, which a catalog's geometry does not carry.
constexpr std::int64_t kLatentChannels = 16;
constexpr std::int64_t kTextWidth = 4096;
constexpr std::int64_t kTimeFrequencies = 256;

std::int64_t linear(std::int64_t in, std::int64_t out) { return in * out + out; }

}  // namespace

std::int64_t parameter_count(const ModelGeometry& model) {
  const std::int64_t d = model.width();
  const std::int64_t d_kv = std::int64_t{model.kv_heads} * model.head_dim;
  const std::int64_t attention = 2 * linear(d, d) + 2 * linear(d, d_kv) + d + d_kv;  // q, o; k, v; RMSNorm of q, of k
  const bool cross = model.text == TextPlacement::cross;
  const std::int64_t block = attention + (cross ? attention + 2 * d : 0)             // and LN3
                             + linear(d, model.ffn) + linear(model.ffn, d) + 6 * d;  // and the modulation
  const std::int64_t patch = kLatentChannels * model.patch[0] * model.patch[1] * model.patch[2];
  return model.layers * block + linear(patch, d)                          // patch embedding
         + linear(kTextWidth, d) + linear(d, d)                           // text embedding
         + linear(kTimeFrequencies, d) + linear(d, d) + linear(d, 6 * d)  // time embedding and its projection
         + linear(d, patch) + 2 * d;                                      // head and its modulation
}

LayerWork layer_work(const ModelGeometry& model, double tokens) {
  const double d = model.width();
  const double d_kv = static_cast<double>(model.kv_heads) * model.head_dim;
  LayerWork work;
  work.projections = tokens * (4 * d * d + 4 * d * d_kv);  // 8 S d^2 where K/V are not grouped
  work.feed_forward = tokens * 4 * d * model.ffn;          // 4 S d f
  if (model.text == TextPlacement::cross) {
    const double text = model.text_tokens;
    work.projections += tokens * 4 * d * d + text * 4 * d * d_kv;  // 4 S d^2 + 4 T d^2
    work.cross_attention = 4 * tokens * text * d;                  // 4 S T d
  }
  return work;
}

double attention_work(const ModelGeometry& model, Tokens length) {
  const double tokens = static_cast<double>(length.value);
  return 4 * tokens * tokens * model.width();
}

void check_size(const ModelGeometry& model, Tokens length) {
  // A loose bound on everything that is kept of a sequence: 64 tensors of its widest kind in each layer, in 8 bytes.
  const double widest = static_cast<double>(model.heads) * model.head_dim + model.ffn;
  const double bytes = (static_cast<double>(length.value) + model.text_tokens) * widest * model.layers * 64 * 8;
  if (bytes > 0x1p62) {
    throw Error(Code::input, "profile.memory_terms",
                "a sequence of " + std::to_string(length.value) + " tokens of model '" + model.name +
                    "' is too large to count its bytes");
  }
}

}  // namespace zellige
