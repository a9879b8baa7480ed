// SPDX-License-Identifier: Apache-2.0
// The functions of a block against the plain operators that they stand for, results and gradients, in pieces of every
// size.
#include <functional>
#include <memory>
#include <numeric>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "model/block_functions.h"

namespace zellige {
namespace {

constexpr std::int64_t kWidth = 6;
constexpr double kEps = 1e-6;
const std::vector<std::int64_t> kLengths = {5, 5, 3, 3, 3, 1, 1};

std::shared_ptr<const PackedLayout> layout_of(const std::vector<std::int64_t>& lengths, std::int64_t rows_a_piece) {
  std::vector<PackedSegment> segments;
  for (const std::int64_t length : lengths) segments.push_back({{1, 1, length}, 0, length});
  WanConfig config;
  config.heads = 1;
  config.head_dim = kWidth;
  return std::make_shared<const PackedLayout>(segments, config, at::TensorOptions(at::kDouble), rows_a_piece * kWidth);
}

at::Tensor spread(const at::Tensor& rows, const std::vector<std::int64_t>& lengths) {
  return rows.repeat_interleave(at::tensor(lengths), 0);
}

using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// Compares results and all gradients; the inputs are random leaves of the given shapes.
void expect_alike(const Function& found, const Function& wanted, const std::vector<std::vector<std::int64_t>>& shapes) {
  at::manual_seed(7);
  std::vector<at::Tensor> inputs;
  for (const auto& shape : shapes) inputs.push_back(at::randn(shape, at::kDouble).requires_grad_());
  const at::Tensor a = found(inputs), b = wanted(inputs);
  ASSERT_EQ(a.sizes(), b.sizes());
  const at::Tensor weight = at::randn(b.sizes(), at::kDouble);
  EXPECT_TRUE(at::allclose(a, b, 1e-12, 1e-12));
  const auto of_a = torch::autograd::grad({a}, inputs, {weight}), of_b = torch::autograd::grad({b}, inputs, {weight});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(at::allclose(of_a[i], of_b[i], 1e-11, 1e-11)) << "gradient of input " << i;
  }
}

TEST(BlockFunctions, PiecesCoverEveryTokenOnceAndEndWithSegments) {
  for (const std::int64_t rows : {1, 2, 3, 4, 6, 7, 10, 100}) {
    const auto layout = layout_of(kLengths, rows);
    std::vector<std::int64_t> owner;
    for (const TokenPiece& piece : layout->pieces(kWidth)) {
      EXPECT_EQ(piece.begin, static_cast<std::int64_t>(owner.size()));
      EXPECT_LE(piece.rows, rows);
      ASSERT_EQ(piece.rows % piece.segments, 0);
      for (std::int64_t i = 0; i < piece.rows; ++i) owner.push_back(piece.segment + i / (piece.rows / piece.segments));
    }
    std::vector<std::int64_t> wanted;
    for (std::size_t s = 0; s < kLengths.size(); ++s)
      wanted.insert(wanted.end(), kLengths[s], static_cast<std::int64_t>(s));
    EXPECT_EQ(owner, wanted) << rows << " rows a piece";
  }
  EXPECT_TRUE(layout_of({}, 4)->pieces(kWidth).empty());
}

TEST(BlockFunctions, EqualPlainOperators) {
  const auto tokens = std::accumulate(kLengths.begin(), kLengths.end(), std::int64_t{0});
  const auto segments = static_cast<std::int64_t>(kLengths.size());
  const std::vector<std::int64_t> x{tokens, kWidth}, rows{segments, kWidth}, channels{kWidth};
  for (const std::int64_t piece : {1, 4, 1000}) {
    const auto layout = layout_of(kLengths, piece);
    expect_alike([&](const auto& in) { return modulated_norm(in[0], in[1], in[2], layout, kEps); },
                 [&](const auto& in) {
                   return at::layer_norm(in[0], {kWidth}, {}, {}, kEps) * (1 + spread(in[2], kLengths)) +
                          spread(in[1], kLengths);
                 },
                 {x, rows, rows});
    expect_alike([&](const auto& in) { return gated(in[0], in[1], in[2], layout); },
                 [&](const auto& in) { return in[0] + in[1] * spread(in[2], kLengths); }, {x, x, rows});
  }
  expect_alike([&](const auto& in) { return affine_norm(in[0], in[1], in[2], kEps); },
               [&](const auto& in) { return at::layer_norm(in[0], {kWidth}, in[1], in[2], kEps); },
               {x, channels, channels});
  expect_alike([&](const auto& in) { return root_mean_square_norm(in[0], in[1], kEps); },
               [&](const auto& in) { return at::rms_norm(in[0], {kWidth}, in[1], kEps); }, {{2, 9, kWidth}, channels});
  expect_alike(
      [&](const auto& in) { return feed_forward(in[0], in[1], in[2], in[3], in[4]); },
      [&](const auto& in) { return at::linear(at::gelu(at::linear(in[0], in[1], in[2]), "tanh"), in[3], in[4]); },
      {x, {11, kWidth}, {11}, {kWidth, 11}, {kWidth}});
}

TEST(BlockFunctions, WithoutTokensGradientsAreZero) {
  const auto layout = layout_of({}, 4);
  const at::Tensor x = at::zeros({0, kWidth}, at::kDouble).requires_grad_();
  const at::Tensor rows = at::zeros({0, kWidth}, at::kDouble).requires_grad_();
  const at::Tensor gain = at::ones({kWidth}, at::kDouble).requires_grad_();
  at::Tensor y = gated(modulated_norm(x, rows, rows, layout, kEps), x, rows, layout);
  y = affine_norm(root_mean_square_norm(y, gain, kEps), gain, gain, kEps);
  const at::Tensor gradient = torch::autograd::grad({y.sum()}, {gain})[0];
  EXPECT_TRUE(at::equal(gradient, at::zeros({kWidth}, at::kDouble)));
}

}  // namespace
}  // namespace zellige
