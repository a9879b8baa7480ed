// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "engine/torch.h"
#include "model/block_functions.h"
#include "model/checkpoint.h"
#include "model/packed_layout.h"
#include "zellige/error.h"
#include "zellige/model.h"

namespace zellige {
namespace {

constexpr std::size_t kBeforeBlocks = 12;  // parameters of the embeddings
constexpr std::size_t kBlock = 27;         // parameters of a block

// Weights and biases of linear layers follow each other in the list of parameters.
struct Linear {
  const at::Tensor& weight;
  const at::Tensor& bias;

  // In the precision of x.
  at::Tensor operator()(const at::Tensor& x) const {
    return at::linear(x, weight.flatten(1).to(x.scalar_type()), bias.to(x.scalar_type()));
  }
};

// One forward pass: what its layers share.
struct Pass {
  const WanConfig& config;
  const PackedAttention& attention;
  const std::shared_ptr<const PackedLayout>& layout;
  at::ScalarType compute;
  at::ScalarType wide;  // fp32 at least

  at::Tensor modulated(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale) const {
    return modulated_norm(x, shift, scale, layout, config.eps);
  }

  // Root-mean-square norm over all channels, before they are cut in heads.
  at::Tensor heads_of(const at::Tensor& x, const at::Tensor& gain) const {
    return root_mean_square_norm(x, gain.to(wide), config.eps).unflatten(-1, {config.heads, config.head_dim});
  }

  // @param p  q, k, v, o (weight, bias), norm_q, norm_k
  at::Tensor self_attention(const at::Tensor& x, const at::Tensor* p) const {
    const at::Tensor q = layout->rotate(heads_of(Linear{p[0], p[1]}(x), p[8]));
    const at::Tensor k = layout->rotate(heads_of(Linear{p[2], p[3]}(x), p[9]));
    const at::Tensor v = Linear{p[4], p[5]}(x).unflatten(-1, {config.heads, config.head_dim});
    return Linear{p[6], p[7]}(attention(q, k, v).flatten(1));
  }

  at::Tensor cross_attention(const at::Tensor& x, const at::Tensor& text, const at::Tensor* p) const {
    const at::Tensor q = heads_of(Linear{p[0], p[1]}(x), p[8]);
    const at::Tensor k = heads_of(Linear{p[2], p[3]}(text), p[9]);
    const at::Tensor v = Linear{p[4], p[5]}(text).unflatten(-1, {config.heads, config.head_dim});
    return Linear{p[6], p[7]}(layout->cross_attention(q, k, v).flatten(1));
  }

  // @param time  [segments, 6, dim], wide
  // @param text  [segments, text_tokens, dim]
  // @param p     modulation, self-attention, norm3, cross-attention, feed-forward
  at::Tensor block(const at::Tensor& tokens, const at::Tensor& time, const at::Tensor& text,
                   const at::Tensor* p) const {
    const std::vector<at::Tensor> m = (p[0].to(wide) + time).unbind(1);
    at::Tensor x = gated(tokens, self_attention(modulated(tokens, m[0], m[1]), p + 1), m[2], layout);
    x = x + cross_attention(affine_norm(x, p[11].to(wide), p[12].to(wide), config.eps), text, p + 13);
    const auto narrow = [&](std::size_t i) { return p[i].to(compute); };
    const at::Tensor update = feed_forward(modulated(x, m[3], m[4]), narrow(23), narrow(24), narrow(25), narrow(26));
    return gated(x, update, m[5], layout);
  }
};

// cos and sin of each timestep at `channels` / 2 frequencies, in fp64.
at::Tensor sinusoid(const at::Tensor& timesteps, int channels) {
  const at::Tensor exponent = at::arange(channels / 2, timesteps.options()) / static_cast<double>(channels / 2);
  const at::Tensor angle = timesteps.unsqueeze(1) * at::pow(1e4, -exponent);
  return at::cat({angle.cos(), angle.sin()}, 1);
}

std::string text_of(at::IntArrayRef shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

void require_shape(const char* what, const at::Tensor& tensor, std::vector<std::int64_t> wanted) {
  if (tensor.defined() && tensor.sizes() == at::IntArrayRef(wanted)) return;
  throw Error(Code::input, "model.forward",
              std::string(what) + " is " + (tensor.defined() ? text_of(tensor.sizes()) : "undefined") +
                  " but must be " + text_of(wanted));
}

void require_consistent(const PackedTokens& input, const WanConfig& config) {
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < input.segments.size(); ++i) {
    const PackedSegment& segment = input.segments[i];
    const std::int64_t length = segment.grid[0] * segment.grid[1] * segment.grid[2];
    if (segment.num_tokens < 1 || segment.token_begin < 0 || segment.token_begin + segment.num_tokens > length) {
      throw Error(Code::input, "model.forward",
                  "segment " + std::to_string(i) + ": tokens " + std::to_string(segment.token_begin) + " to " +
                      std::to_string(segment.token_begin + segment.num_tokens) + " of a sample of " +
                      std::to_string(length));
    }
    tokens += segment.num_tokens;
  }
  const auto segments = static_cast<std::int64_t>(input.segments.size());
  require_shape("latents", input.latents, {tokens, config.in_width()});
  require_shape("timesteps", input.timesteps, {segments});
  require_shape("text", input.text, {segments, config.text_tokens, config.text_dim});
}

}  // namespace

at::Tensor WanTransformer::forward(const PackedTokens& input, const PackedAttention& attention,
                                   bool checkpointing) const {
  require_consistent(input, config_);
  const at::ScalarType compute = options_.compute;
  const at::ScalarType wide = compute == at::kDouble ? at::kDouble : at::kFloat;
  const at::TensorOptions wide_options = at::TensorOptions(wide).device(options_.device);
  // Blocks run again in the backward pass: what they refer to must live as long as the graph.
  const auto layout = std::make_shared<const PackedLayout>(input.segments, config_, wide_options);
  const auto kept_attention = std::make_shared<const PackedAttention>(attention);
  const Pass pass{config_, *kept_attention, layout, compute, wide};

  const at::Tensor* p = parameters_.data();
  at::Tensor x = Linear{p[0], p[1]}(input.latents.to(options_.device, compute));
  const at::Tensor text =
      Linear{p[4], p[5]}(at::gelu(Linear{p[2], p[3]}(input.text.to(options_.device, compute)), "tanh"));
  const at::Tensor times = input.timesteps.to(options_.device, at::kDouble);
  const at::Tensor time = Linear{p[8], p[9]}(at::silu(Linear{p[6], p[7]}(sinusoid(times, config_.freq_dim).to(wide))));
  const at::Tensor block_time = Linear{p[10], p[11]}(at::silu(time)).unflatten(1, {6, config_.dim()});

  for (int i = 0; i < config_.layers; ++i) {
    std::vector<at::Tensor> inputs = {x, block_time, text};
    const auto first = parameters_.begin() + static_cast<std::ptrdiff_t>(kBeforeBlocks + kBlock * i);
    inputs.insert(inputs.end(), first, first + kBlock);
    const auto run = [config = config_, layout, kept_attention, compute, wide](const std::vector<at::Tensor>& in) {
      return Pass{config, *kept_attention, layout, compute, wide}.block(in[0], in[1], in[2], in.data() + 3);
    };
    x = checkpointing ? checkpoint(run, inputs) : run(inputs);
  }

  const at::Tensor* head = p + kBeforeBlocks + kBlock * config_.layers;
  const std::vector<at::Tensor> m = (head[0].to(wide) + time.unsqueeze(1)).unbind(1);
  // The head's outputs run by place in the patch, then channel; the latents' by channel, then place.
  return Linear{head[1], head[2]}(pass.modulated(x, m[0], m[1]))
      .unflatten(1, {config_.patch_volume(), config_.out_channels})
      .transpose(1, 2)
      .flatten(1);
}

at::Tensor patchify(const at::Tensor& latent, std::array<int, 3> patch) {
  return latent.unflatten(3, {-1, patch[2]})
      .unflatten(2, {-1, patch[1]})
      .unflatten(1, {-1, patch[0]})
      .permute({1, 3, 5, 0, 2, 4, 6})
      .flatten(3)
      .flatten(0, 2);
}

at::Tensor unpatchify(const at::Tensor& tokens, std::array<std::int64_t, 3> grid, std::array<int, 3> patch) {
  return tokens.view({grid[0], grid[1], grid[2], -1, patch[0], patch[1], patch[2]})
      .permute({3, 0, 4, 1, 5, 2, 6})
      .flatten(5)
      .flatten(3, 4)
      .flatten(1, 2);
}

}  // namespace zellige
