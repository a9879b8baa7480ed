// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace zellige {

/// How a training step picks each sample's noise level sigma (0: data, 1: noise).
enum class SigmaSampling {
  shifted_grid,  ///< uniform over the 1,000 training timesteps, shifted towards noise (DiffSynth)
  logit_normal,  ///< sigmoid of a normal draw, then shifted (SD3)
};

struct FlowOptions {
  SigmaSampling sampling = SigmaSampling::shifted_grid;
  double shift = 5;         ///< sigma' = shift * sigma / (1 + (shift - 1) * sigma); 1: no shift
  bool bell_weight = true;  ///< shifted_grid: weigh a sample by a bell over timesteps with mean 1 over the grid
  double logit_mean = 0;    ///< logit_normal
  double logit_std = 1;     ///< logit_normal
  bool fixed_noise =
      false;  ///< a sample keeps its noise and sigma in every step, so that a falling loss is easy to see
  std::uint64_t seed = 0;
};

/// A sample's noise level in one step.
struct FlowDraw {
  double sigma = 0;
  double weight = 1;  ///< of the sample's loss

  double timestep() const { return 1000 * sigma; }  ///< what the model is told
};

/// Flow matching: x_t = (1 - sigma) x0 + sigma eps, and the model learns eps - x0. Sigma and noise are functions of
/// (seed, step, sample id, global token index) and of nothing else, so that every placement sees the same data and any
/// rank can make any range of a sample's tokens. Threads: const, any number of callers.
class FlowMatching {
 public:
  /// Errors: Code::input for a shift or a deviation that is not positive.
  explicit FlowMatching(const FlowOptions& options);

  FlowDraw draw(std::int64_t step, std::string_view sample_id) const;

  /// Fills `noise` with independent standard normal values for tokens [token_begin, token_begin + n) of a sample.
  /// @param noise  n rows of `width` values, token by token
  void noise(std::int64_t step, std::string_view sample_id, std::int64_t token_begin, std::int64_t width,
             std::span<double> noise) const;

 private:
  FlowOptions options_;
  std::vector<FlowDraw> grid_;
};

}  // namespace zellige
