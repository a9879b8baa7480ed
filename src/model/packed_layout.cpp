// SPDX-License-Identifier: Apache-2.0
#include "model/packed_layout.h"

#include <algorithm>
#include <cmath>

namespace zellige {
namespace {

constexpr double kTheta = 1e4;

// exp(i * angle) of every token and channel pair, [tokens, 1, head_dim / 2].
// Computed on the device: of a long video it is tens of millions of sines.
at::Tensor turns_of(const std::vector<PackedSegment>& segments, std::int64_t num_tokens, int head_dim,
                    at::Device device) {
  at::Tensor places = at::empty({num_tokens, 3}, at::kDouble);
  double* place = places.data_ptr<double>();
  for (const PackedSegment& segment : segments) {
    const auto [frames, height, width] = segment.grid;
    for (std::int64_t token = segment.token_begin; token < segment.token_begin + segment.num_tokens; ++token) {
      *place++ = static_cast<double>(token / (height * width));
      *place++ = static_cast<double>(token / width % height);
      *place++ = static_cast<double>(token % width);
    }
  }
  places = places.to(device);
  const std::int64_t pairs = head_dim / 2;
  const std::int64_t third = pairs / 3;
  std::vector<at::Tensor> angles;
  const std::int64_t axis_pairs[3] = {pairs - 2 * third, third, third};
  for (int axis = 0; axis < 3; ++axis) {
    const at::Tensor exponent = at::arange(axis_pairs[axis], places.options()) / static_cast<double>(axis_pairs[axis]);
    angles.push_back(places.select(1, axis).unsqueeze(1) * at::pow(kTheta, -exponent));
  }
  const at::Tensor angle = at::cat(angles, 1).unsqueeze(1);
  return at::polar(at::ones_like(angle), angle);
}

}  // namespace

PackedLayout::PackedLayout(const std::vector<PackedSegment>& segments, const WanConfig& config,
                           const at::TensorOptions& wide, std::int64_t piece_elements)
    : piece_elements_(piece_elements) {
  const at::NoGradGuard no_grad;
  for (const PackedSegment& segment : segments) {
    if (lengths_.empty() || lengths_.back() != segment.num_tokens) {
      lengths_.push_back(segment.num_tokens);
      counts_.push_back(0);
    }
    ++counts_.back();
    num_tokens_ += segment.num_tokens;
  }
  lengths_.push_back(0);
  counts_.push_back(0);
  for (std::size_t i = 0; i < counts_.size(); ++i) rows_.push_back(counts_[i] * lengths_[i]);
  const at::ScalarType complex = at::toComplexType(at::typeMetaToScalarType(wide.dtype()));
  turns_ = turns_of(segments, num_tokens_, config.head_dim, wide.device()).to(complex);
}

std::vector<TokenPiece> equal_pieces(std::int64_t rows, std::int64_t width) {
  const std::int64_t most = std::max<std::int64_t>(1, kPieceElements / width);
  std::vector<TokenPiece> pieces;
  for (std::int64_t begin = 0; begin < rows; begin += most) {
    pieces.push_back({.begin = begin, .rows = std::min(most, rows - begin)});
  }
  return pieces;
}

std::vector<TokenPiece> PackedLayout::pieces(std::int64_t width) const {
  const std::int64_t most = std::max<std::int64_t>(1, piece_elements_ / width);
  std::vector<TokenPiece> pieces;
  std::int64_t row = 0, segment = 0;
  for (std::size_t run = 0; run + 1 < counts_.size(); ++run) {  // the last is empty
    const std::int64_t length = lengths_[run];
    const std::int64_t together = std::max<std::int64_t>(1, most / length);
    for (std::int64_t first = 0; first < counts_[run]; first += together) {
      const std::int64_t segments = std::min(together, counts_[run] - first);
      // Only a single segment can be longer than a piece.
      for (std::int64_t begin = 0; begin < segments * length; begin += most) {
        pieces.push_back({row + begin, std::min(most, segments * length - begin), segment, segments});
      }
      row += segments * length;
      segment += segments;
    }
  }
  return pieces;
}

at::Tensor PackedLayout::cross_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const {
  const std::int64_t heads = q.size(1), head_dim = q.size(2);
  const auto queries = q.split_with_sizes(rows_, 0);
  const auto keys = k.split_with_sizes(counts_, 0);
  const auto values = v.split_with_sizes(counts_, 0);
  std::vector<at::Tensor> pieces;
  for (std::size_t i = 0; i + 1 < counts_.size(); ++i) {
    const at::Tensor dense = queries[i].view({counts_[i], lengths_[i], heads, head_dim});
    pieces.push_back(
        at::scaled_dot_product_attention(dense.transpose(1, 2), keys[i].transpose(1, 2), values[i].transpose(1, 2))
            .transpose(1, 2)
            .reshape({rows_[i], heads, head_dim}));
  }
  pieces.push_back(queries.back() + keys.back().sum(1) + values.back().sum(1));
  return at::cat(pieces, 0);
}

at::Tensor PackedLayout::rotate(const at::Tensor& x) const {
  const at::Tensor pairs = x.to(at::toRealValueType(turns_.scalar_type())).unflatten(2, {x.size(2) / 2, 2});
  return at::view_as_real(at::view_as_complex(pairs.contiguous()) * turns_).flatten(2).to(x.scalar_type());
}

}  // namespace zellige
