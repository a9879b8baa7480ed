// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>
#include <vector>

#include "model/counter_random.h"
#include "train/latent_source.h"

namespace zellige {
namespace {

constexpr double kWave = 1.3;   // amplitude: variance 0.85
constexpr double kNoise = 0.4;  // deviation: variance 0.16

// A plane wave of one channel: phase and turns per sample along frames, height and width.
struct Wave {
  double phase;
  std::array<double, 3> turns;
};

class SyntheticLatents : public LatentSource {
 public:
  SyntheticLatents(const WanConfig& model, std::uint64_t seed) : model_(model), seed_(seed) {}

  std::string_view label() const override { return "synthetic"; }

  at::Tensor latents(const BatchSequence& sample, const std::array<std::int64_t, 3>& grid, std::int64_t token_begin,
                     std::int64_t num_tokens) const override {
    const std::vector<Wave> waves = waves_of(sample);
    const std::uint64_t stream = random_stream(seed_, "synthetic-noise", 0, data_key(sample));
    const std::int64_t width = model_.in_width();
    const at::Tensor tokens = at::empty({num_tokens, width}, at::kDouble);
    double* value = tokens.data_ptr<double>();
    std::vector<double> noise(static_cast<std::size_t>(width));
    for (std::int64_t token = token_begin; token < token_begin + num_tokens; ++token) {
      const std::array<std::int64_t, 3> place = {token / (grid[1] * grid[2]), token / grid[2] % grid[1],
                                                 token % grid[2]};
      CounterRandom(stream, static_cast<std::uint64_t>(token)).normal(noise);
      const double* drawn = noise.data();
      for (const Wave& wave : waves) {
        for (int f = 0; f < model_.patch[0]; ++f) {
          for (int y = 0; y < model_.patch[1]; ++y) {
            for (int x = 0; x < model_.patch[2]; ++x) {
              const std::array<int, 3> inner = {f, y, x};
              double turns = wave.phase;
              for (int axis = 0; axis < 3; ++axis) {
                const double cells = static_cast<double>(grid[axis] * model_.patch[axis]);
                const double cell = static_cast<double>(place[axis] * model_.patch[axis] + inner[axis]);
                turns += wave.turns[axis] * cell / cells;
              }
              *value++ = kWave * std::sin(2 * std::numbers::pi * turns) + kNoise * *drawn++;
            }
          }
        }
      }
    }
    return tokens;
  }

  at::Tensor text(const BatchSequence& sample) const override {
    const at::Tensor text = at::zeros({model_.text_tokens, model_.text_dim}, at::kDouble);
    CounterRandom random(random_stream(seed_, "synthetic-text", 0, data_key(sample)), 0);
    const auto length = static_cast<std::int64_t>(1 + random.unit() * model_.text_tokens);
    random.normal({text.data_ptr<double>(), static_cast<std::size_t>(length * model_.text_dim)});
    return text;
  }

 private:
  std::vector<Wave> waves_of(const BatchSequence& sample) const {
    CounterRandom random(random_stream(seed_, "synthetic-waves", 0, data_key(sample)), 0);
    std::vector<Wave> waves(static_cast<std::size_t>(model_.in_channels));
    for (Wave& wave : waves) {
      wave.phase = random.unit();
      for (double& turns : wave.turns) turns = std::floor(4 * random.unit());
    }
    return waves;
  }

  WanConfig model_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<LatentSource> synthetic_latents(const WanConfig& model, std::uint64_t seed) {
  return std::make_unique<SyntheticLatents>(model, seed);
}

const std::string& data_key(const BatchSequence& sample) { return sample.source.empty() ? sample.id : sample.source; }

}  // namespace zellige
