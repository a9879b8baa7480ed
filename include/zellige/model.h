// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ATen.h>

#include "zellige/catalog.h"

namespace zellige {

/// Sizes of a Wan2.1 text-to-video transformer. The defaults are wan2.1-t2v-1.3b's: 825 tensors, 1,418,996,800
/// parameters.
struct WanConfig {
  int heads = 12;
  int head_dim = 128;
  int layers = 30;
  int ffn = 8960;
  int freq_dim = 256;     ///< channels of the sinusoidal timestep embedding
  int text_tokens = 512;  ///< a text is padded to so many tokens, and the padding is attended
  int text_dim = 4096;    ///< channels of the text encoder
  int in_channels = 16;   ///< of the latent
  int out_channels = 16;
  std::array<int, 3> patch{1, 2, 2};  ///< latent frames, height, width
  double eps = 1e-6;                  ///< of all norms

  int dim() const { return heads * head_dim; }
  int patch_volume() const { return patch[0] * patch[1] * patch[2]; }
  int in_width() const { return in_channels * patch_volume(); }    ///< values of a token
  int out_width() const { return out_channels * patch_volume(); }  ///< values of a predicted token
};

/// The sizes of a geometry of the catalog. Errors: Code::input when it is none that a Wan transformer can have (text in
/// the same attention, grouped heads, odd head_dim).
WanConfig wan_config(const ModelGeometry& geometry, int text_dim = 4096);
/// A preset by its catalog name: "tiny", "wan2.1-t2v-1.3b", "wan2.1-t2v-14b". Errors: Code::input for another name.
WanConfig wan_preset(std::string_view name);

/// A run of one sample's tokens in a packed tensor, in the order of Schedule::segments.
struct PackedSegment {
  std::array<std::int64_t, 3> grid{};  ///< frames, height, width of the whole sample, in patches
  std::int64_t token_begin = 0;        ///< first token, global in the sample; frame by frame, row by row
  std::int64_t num_tokens = 0;         ///< >= 1
};

/// What a rank feeds to the model: tokens of many samples in one tensor, each under its own timestep and text.
/// A rank that holds nothing has zero segments and rows, and calls the model all the same.
struct PackedTokens {
  at::Tensor latents;                   ///< [tokens_local, in_width]; a token's values by channel, then place in patch
  at::Tensor timesteps;                 ///< [segments] fp64, 0..1000
  at::Tensor text;                      ///< [segments, text_tokens, text_dim]
  std::vector<PackedSegment> segments;  ///< their num_tokens sum to tokens_local
};

/// Attention of packed tokens within each sample: q, k, v [tokens_local, heads, head_dim] to the same shape,
/// differentiable; Engine::attention in training. Called once a block, once more in backward under checkpointing.
using PackedAttention = std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v)>;

/// The Wan2.1 transformer on packed tokens: 3D RoPE at each token's place in its whole sample, timestep modulation and
/// cross-attention a sample. Every rank builds the same graph, whatever it holds: there is no branch on emptiness that
/// could leave a parameter without a gradient.
/// Threads: const calls from one thread at a time per model.
class WanTransformer {
 public:
  struct Options {
    at::ScalarType parameters = at::kFloat;
    at::ScalarType compute = at::kFloat;  ///< of matrix products and activations; norms, modulation and RoPE run in
                                          ///< fp32 at least
    at::Device device = at::kCPU;
  };

  /// Allocates the parameters, uninitialised. Errors: Code::input for impossible sizes.
  explicit WanTransformer(const WanConfig& config, const Options& options);
  explicit WanTransformer(const WanConfig& config);

  /// Fills the parameters as Wan does (Xavier-uniform linear layers, embeddings of deviation 0.02, zero biases), from
  /// (seed, parameter name, element) alone: equal on every rank. One difference: the output layer starts at deviation
  /// 0.02, not at zero, so that the first step's loss already depends on every layer.
  void initialise(std::uint64_t seed);

  /// Predicts the velocity eps - x0 of every token.
  /// @return  [tokens_local, out_width], values by channel, then place in patch (as the latents); compute dtype
  /// Collective: as `attention` is, once a block in order, and in the backward pass in reverse.
  /// @param checkpointing  keep a block's input only, and run the block again in the backward pass
  /// Errors: Code::input for shapes, before the first call of `attention`.
  at::Tensor forward(const PackedTokens& input, const PackedAttention& attention, bool checkpointing) const;

  const WanConfig& config() const { return config_; }
  const Options& options() const { return options_; }

  /// Parameters in the order, and under the names, of Wan's own checkpoints; leaves that require gradients.
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const std::vector<std::string>& names() const { return names_; }
  /// Errors: Code::input for a name that is none.
  const at::Tensor& parameter(std::string_view name) const;
  std::int64_t num_parameters() const;

 private:
  WanConfig config_;
  Options options_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
};

/// A latent cut in tokens and put together again. `latent` [channels, frames, height, width] of whole patches, tokens
/// [frames x height x width in patches, channels x patch volume], values by channel, then place in patch.
at::Tensor patchify(const at::Tensor& latent, std::array<int, 3> patch);
at::Tensor unpatchify(const at::Tensor& tokens, std::array<std::int64_t, 3> grid, std::array<int, 3> patch);

/// Weighted squared error of this rank's tokens: sum over tokens of weight x mean over channels (prediction -
/// target)^2. With weight = sample weight / (samples in the batch x tokens of the sample), the sum over ranks is the
/// batch's loss wherever the tokens lie. fp32 at least; 0 with a graph for a rank that holds nothing.
/// @param prediction,target  [tokens_local, out_width]
/// @param token_weights      [tokens_local]
at::Tensor flow_loss(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& token_weights);

}  // namespace zellige
