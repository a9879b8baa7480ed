// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/torch.h"
#include "zellige/batch.h"
#include "zellige/model.h"

namespace zellige {

/// Where a sample's latent and text embedding come from. Any range of tokens can be asked for alone, since a rank
/// makes only what it owns. Threads: const, any number of callers.
class LatentSource {
 public:
  virtual ~LatentSource() = default;

  /// What the step log calls the data.
  virtual std::string_view label() const = 0;

  /// @param grid  frames, height, width of the whole sample, in patches
  /// @return      [num_tokens, in_width], fp64, CPU; values by channel, then place in patch
  virtual at::Tensor latents(const BatchSequence& sample, const std::array<std::int64_t, 3>& grid,
                             std::int64_t token_begin, std::int64_t num_tokens) const = 0;

  /// @return  [text_tokens, text_dim], fp64, CPU; zero beyond the text's end
  virtual at::Tensor text(const BatchSequence& sample) const = 0;
};

/// Made-up data, the same for a sample wherever it is made: per channel a plane wave through frames, rows and columns,
/// and some noise, with a deviation near 1; texts of random length.
std::unique_ptr<LatentSource> synthetic_latents(const WanConfig& model, std::uint64_t seed);

/// What tells a sample from others in all epochs: where it comes from, or its id where that is not said.
const std::string& data_key(const BatchSequence& sample);

}  // namespace zellige
