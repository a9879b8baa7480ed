// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small samples, packed in any order and cut in any chunks, and dense attention over them on one rank.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "engine/torch.h"
#include "zellige/model.h"

namespace zellige::testing {

inline at::Tensor normal(std::vector<std::int64_t> shape, std::uint64_t seed, at::ScalarType type = at::kDouble) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(shape, generator, at::TensorOptions(at::kDouble)).to(type);
}

/// Sizes that differ from each other wherever they may, so that a mix-up shows.
inline WanConfig small_config() {
  WanConfig config;
  config.heads = 3;
  config.head_dim = 8;
  config.layers = 2;
  config.ffn = 40;
  config.freq_dim = 10;
  config.text_tokens = 5;
  config.text_dim = 7;
  config.in_channels = 3;
  config.out_channels = 2;
  return config;
}

/// Every parameter away from its starting value: nothing is zero, so that no term hides.
inline void scatter_parameters(WanTransformer& model, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : model.parameters()) {
    parameter.mutable_grad() = at::Tensor();
    const at::Tensor values = normal(parameter.sizes().vec(), ++seed);
    const double spread =
        parameter.dim() > 1 ? 1 / std::sqrt(double(parameter.numel()) / double(parameter.size(0))) : 0.3;
    at::Tensor target = parameter;
    target.copy_(values * spread + (parameter.dim() == 1 ? 0.5 : 0.0));
  }
}

struct Sample {
  std::array<std::int64_t, 3> grid{};
  double timestep = 0;
  double weight = 1;
  at::Tensor latents;  // [tokens, in_width]
  at::Tensor target;   // [tokens, out_width]
  at::Tensor text;     // [text_tokens, text_dim]

  std::int64_t tokens() const { return grid[0] * grid[1] * grid[2]; }
};

inline std::vector<Sample> make_samples(const WanConfig& config, const std::vector<std::array<std::int64_t, 3>>& grids,
                                        std::uint64_t seed) {
  std::vector<Sample> samples;
  for (const auto& grid : grids) {
    Sample sample;
    sample.grid = grid;
    sample.timestep = 137.0 * double(samples.size() + 1) + 0.25;
    sample.weight = 0.5 + 0.25 * double(samples.size());
    sample.latents = normal({sample.tokens(), config.in_width()}, ++seed);
    sample.target = normal({sample.tokens(), config.out_width()}, ++seed);
    sample.text = normal({config.text_tokens, config.text_dim}, ++seed);
    samples.push_back(sample);
  }
  return samples;
}

/// A run of one sample's tokens.
struct TokenRun {
  std::size_t sample = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

inline std::vector<TokenRun> whole(const std::vector<Sample>& samples, const std::vector<std::size_t>& order) {
  std::vector<TokenRun> runs;
  for (std::size_t i : order) runs.push_back({i, 0, samples[i].tokens()});
  return runs;
}

struct Packed {
  PackedTokens input;
  at::Tensor target;
  at::Tensor token_weights;
};

inline Packed pack(const WanConfig& config, const std::vector<Sample>& samples, const std::vector<TokenRun>& runs) {
  std::vector<at::Tensor> latents = {at::empty({0, config.in_width()}, at::kDouble)};
  std::vector<at::Tensor> targets = {at::empty({0, config.out_width()}, at::kDouble)};
  std::vector<at::Tensor> texts = {at::empty({0, config.text_tokens, config.text_dim}, at::kDouble)};
  std::vector<at::Tensor> weights = {at::empty({0}, at::kDouble)};
  std::vector<double> times;
  Packed packed;
  for (const TokenRun& run : runs) {
    const Sample& sample = samples[run.sample];
    latents.push_back(sample.latents.narrow(0, run.begin, run.count));
    targets.push_back(sample.target.narrow(0, run.begin, run.count));
    texts.push_back(sample.text.unsqueeze(0));
    const double weight = sample.weight / double(samples.size()) / double(sample.tokens());
    weights.push_back(at::full({run.count}, weight, at::kDouble));
    times.push_back(sample.timestep);
    packed.input.segments.push_back({sample.grid, run.begin, run.count});
  }
  packed.input.latents = at::cat(latents, 0);
  packed.input.text = at::cat(texts, 0);
  packed.input.timesteps = at::tensor(times, at::kDouble);
  packed.target = at::cat(targets, 0);
  packed.token_weights = at::cat(weights, 0);
  return packed;
}

/// Softmax attention written out: the tokens of a sample are gathered from all its runs.
inline PackedAttention dense_attention(std::vector<TokenRun> runs) {
  return [runs = std::move(runs)](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    std::vector<std::vector<std::int64_t>> rows;  // of each sample
    std::int64_t row = 0;
    for (const TokenRun& run : runs) {
      if (rows.size() <= run.sample) rows.resize(run.sample + 1);
      for (std::int64_t i = 0; i < run.count; ++i) rows[run.sample].push_back(row++);
    }
    at::Tensor out = (q + k + v) * 0;
    for (const auto& list : rows) {
      if (list.empty()) continue;
      const at::Tensor index = at::tensor(list, at::kLong);
      const auto heads_first = [&](const at::Tensor& x) { return x.index_select(0, index).transpose(0, 1); };
      const at::Tensor scores =
          heads_first(q).matmul(heads_first(k).transpose(1, 2)) / std::sqrt(static_cast<double>(q.size(2)));
      out = out.index_add(0, index, scores.softmax(-1).matmul(heads_first(v)).transpose(0, 1));
    }
    return out;
  };
}

struct Outcome {
  at::Tensor prediction;
  double loss = 0;
  std::vector<at::Tensor> gradients;
};

/// Prediction, loss and gradients of one rank that holds `runs`.
inline Outcome train_once(const WanTransformer& model, const std::vector<Sample>& samples,
                          const std::vector<TokenRun>& runs, bool checkpointing) {
  const Packed packed = pack(model.config(), samples, runs);
  for (const at::Tensor& parameter : model.parameters()) parameter.mutable_grad() = at::Tensor();
  const at::Tensor prediction = model.forward(packed.input, dense_attention(runs), checkpointing);
  const at::Tensor loss = flow_loss(prediction, packed.target, packed.token_weights);
  loss.backward();
  Outcome outcome;
  outcome.prediction = prediction.detach();
  outcome.loss = loss.item<double>();
  for (const at::Tensor& parameter : model.parameters()) outcome.gradients.push_back(parameter.grad());
  return outcome;
}

/// ||a - b|| / ||b||, in fp64.
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  const double norm = b.to(at::kDouble).norm().item<double>();
  const double difference = (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
  return norm > 0 ? difference / norm : difference;
}

inline void expect_equal_gradients(const WanTransformer& model, const std::vector<at::Tensor>& found,
                                   const std::vector<at::Tensor>& wanted, double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(found[i].defined()) << model.names()[i] << " has no gradient";
    EXPECT_LE(distance(found[i], wanted[i]), tolerance) << model.names()[i];
  }
}

}  // namespace zellige::testing
