// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/sha256.h"
#include "engine/torch.h"
#include "model/counter_random.h"
#include "zellige/error.h"
#include "zellige/flow.h"
#include "zellige/model.h"

namespace zellige {
namespace {

constexpr int kTimesteps = 1000;

double shifted(double sigma, double shift) { return shift * sigma / (1 + (shift - 1) * sigma); }

void require_positive(const char* what, double value) {
  if (std::isfinite(value) && value > 0) return;
  throw Error(Code::input, "model.flow", std::string(what) + " " + std::to_string(value) + " must be positive");
}

}  // namespace

std::uint64_t random_stream(std::uint64_t seed, std::string_view purpose, std::int64_t step, std::string_view id) {
  // The id comes last: it may hold any character, and what stands before it cannot be mistaken for it.
  std::string text = std::string(purpose) + '/' + std::to_string(seed) + '/' + std::to_string(step) + '/';
  text.append(id);
  return std::stoull(sha256(text).substr(std::string_view("sha256:").size(), 16), nullptr, 16);
}

FlowMatching::FlowMatching(const FlowOptions& options) : options_(options) {
  require_positive("shift", options.shift);
  if (options.sampling == SigmaSampling::logit_normal) {
    require_positive("logit_std", options.logit_std);
    return;
  }
  for (int i = 0; i < kTimesteps; ++i) {
    FlowDraw draw;
    draw.sigma = shifted(1 - static_cast<double>(i) / kTimesteps, options.shift);
    if (options.bell_weight) {
      const double offset = draw.sigma - 0.5;
      draw.weight = std::exp(-2 * offset * offset);
    }
    grid_.push_back(draw);
  }
  if (!options.bell_weight) return;
  // The bell stands on its lowest grid point and has mean 1, so that it leaves the loss's scale alone.
  const double lowest = std::ranges::min(grid_, {}, &FlowDraw::weight).weight;
  double sum = 0;
  for (FlowDraw& draw : grid_) sum += draw.weight -= lowest;
  for (FlowDraw& draw : grid_) draw.weight *= kTimesteps / sum;
}

FlowDraw FlowMatching::draw(std::int64_t step, std::string_view sample_id) const {
  CounterRandom random(random_stream(options_.seed, "sigma", options_.fixed_noise ? 0 : step, sample_id), 0);
  if (options_.sampling == SigmaSampling::shifted_grid) {
    return grid_[static_cast<std::size_t>(random.unit() * kTimesteps)];
  }
  double normal = 0;
  random.normal({&normal, 1});
  const double sigma = 1 / (1 + std::exp(-(options_.logit_mean + options_.logit_std * normal)));
  return {shifted(sigma, options_.shift), 1};
}

void FlowMatching::noise(std::int64_t step, std::string_view sample_id, std::int64_t token_begin, std::int64_t width,
                         std::span<double> noise) const {
  const std::uint64_t stream = random_stream(options_.seed, "noise", options_.fixed_noise ? 0 : step, sample_id);
  std::uint64_t token = static_cast<std::uint64_t>(token_begin);
  for (std::size_t i = 0; i < noise.size(); i += width) CounterRandom(stream, token++).normal(noise.subspan(i, width));
}

at::Tensor flow_loss(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& token_weights) {
  const at::ScalarType wide = prediction.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor error = prediction.to(wide) - target.to(wide);
  return (error.square().mean(1) * token_weights.to(wide)).sum();
}

}  // namespace zellige
