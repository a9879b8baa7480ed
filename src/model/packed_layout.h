// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/torch.h"
#include "zellige/model.h"

namespace zellige {

/// Neighbouring rows that are worked on at once: whole segments of one length, or a part of one segment.
struct TokenPiece {
  std::int64_t begin = 0, rows = 0;
  std::int64_t segment = 0, segments = 1;  ///< the first and how many
};

/// So many elements a piece has at most (but one row at least): in fp32 32 MiB, which bounds what work on a piece needs
/// beside its inputs and results, and is enough for a GPU.
constexpr std::int64_t kPieceElements = std::int64_t{1} << 23;

/// Rows of `width` elements in pieces of equal size, segments unheeded; none where there are no rows.
std::vector<TokenPiece> equal_pieces(std::int64_t rows, std::int64_t width);

/// How packed tokens fall into runs of neighbouring segments of equal length, each of which is a dense [count, length]
/// view; and what of the model depends on the layout alone. Made once a forward pass.
///
/// A rank without tokens builds the same graph as the others, and its parameters get gradients (of zero).
class PackedLayout {
 public:
  /// @param wide  precision of the rotation: fp32 or fp64
  /// @param piece_elements  that pieces() has at most; smaller in tests
  PackedLayout(const std::vector<PackedSegment>& segments, const WanConfig& config, const at::TensorOptions& wide,
               std::int64_t piece_elements = kPieceElements);

  /// All tokens, of `width` elements each, in pieces of equally long segments; none where there are no tokens.
  std::vector<TokenPiece> pieces(std::int64_t width) const;

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
  std::int64_t piece_elements_;
  std::int64_t num_tokens_ = 0;
  std::vector<std::int64_t> counts_;   // segments of each run, and a last 0
  std::vector<std::int64_t> lengths_;  // tokens of a segment of each run, and a last 0
  std::vector<std::int64_t> rows_;     // counts x lengths
  at::Tensor turns_;                   // [tokens, 1, head_dim / 2], complex
};

}  // namespace zellige
