// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/torch.h"
#include "zellige/model.h"

namespace zellige {

/// How packed tokens fall into runs of neighbouring segments of equal length, each of which is a dense [count, length]
/// view; and what of the model depends on the layout alone. Made once a forward pass.
///
/// All functions append a piece of zero rows to the real ones, so that a rank without tokens builds the same graph as
/// the others and its parameters get gradients (of zero).
class PackedLayout {
 public:
  /// @param wide  precision of the rotation: fp32 or fp64
  PackedLayout(const std::vector<PackedSegment>& segments, const WanConfig& config, const at::TensorOptions& wide);

  /// Gives every token its segment's row: [segments, n] -> [tokens, n].
  at::Tensor spread(const at::Tensor& rows) const;

  /// Cross-attention of each segment's tokens to that segment's own keys.
  /// @param q    [tokens, heads, head_dim]
  /// @param k,v  [segments, length, heads, head_dim]
  /// @return     [tokens, heads, head_dim]
  at::Tensor cross_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const;

  /// Turns interleaved channel pairs by the angles of the token's place in its sample: 3D RoPE, theta 1e4, angles in
  /// fp64; rows and columns take a third of the pairs each (rounded down), frames the rest: 44/42/42 of 128 channels.
  /// @param x  [tokens, heads, head_dim]
  at::Tensor rotate(const at::Tensor& x) const;

  std::int64_t num_tokens() const { return num_tokens_; }

 private:
  std::int64_t num_tokens_ = 0;
  std::vector<std::int64_t> counts_;   // segments of each run, and a last 0
  std::vector<std::int64_t> lengths_;  // tokens of a segment of each run, and a last 0
  std::vector<std::int64_t> rows_;     // counts x lengths
  at::Tensor turns_;                   // [tokens, 1, head_dim / 2], complex
};

}  // namespace zellige
