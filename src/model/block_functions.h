// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/torch.h"
#include "model/packed_layout.h"

namespace zellige {

/// The parts of a block that would keep copies in fp32 of what they read, written so that they keep no more than their
/// inputs in the inputs' own precision and two numbers a token; the rest is computed again in the backward pass, piece
/// by piece of the tokens (PackedLayout::pieces). All compute in `wide`, and round once, to the precision of x.
/// First derivatives only. A rank without tokens gets gradients of zero.

/// layer_norm(x) * (1 + scale) + shift, each segment's tokens by its row.
/// @param x            [tokens, channels]
/// @param shift,scale  [segments, channels], wide
at::Tensor modulated_norm(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale,
                          const std::shared_ptr<const PackedLayout>& layout, double eps);

/// x + update * gate, each segment's tokens by its row. @param gate  [segments, channels], wide
at::Tensor gated(const at::Tensor& x, const at::Tensor& update, const at::Tensor& gate,
                 const std::shared_ptr<const PackedLayout>& layout);

/// layer_norm(x) * gain + bias. @param gain,bias  [channels], wide
at::Tensor affine_norm(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias, double eps);

/// x / sqrt(mean(x^2) + eps) * gain. @param x  [..., channels]  @param gain  [channels], wide
at::Tensor root_mean_square_norm(const at::Tensor& x, const at::Tensor& gain, double eps);

/// gelu(x W1^T + b1) W2^T + b2 with GELU's tanh form. Keeps the values before GELU, not those after it.
at::Tensor feed_forward(const at::Tensor& x, const at::Tensor& w1, const at::Tensor& b1, const at::Tensor& w2,
                        const at::Tensor& b2);

}  // namespace zellige
