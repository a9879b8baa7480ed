// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "zellige/placement.h"
#include "zellige/score.h"

namespace zellige {

/// One bucket that a page shows, with its colours.
struct Swatch {
  std::string bucket;
  MediaKind kind = MediaKind::image;
  Tokens tokens;
  std::string colour;  ///< "#rrggbb"
};

/// The buckets that the plans use, images first, shorter first; images in cool colours, videos in warm ones, darker
/// with the length.
std::vector<Swatch> swatches(const std::vector<Plan>& plans);

/// What one sequence puts on one rank: all of it, or a shard.
struct Part {
  SequenceIndex sequence = 0;  ///< in the plan's placement
  int swatch = 0;              ///< in swatches()
  Tokens tokens;               ///< owned by the rank
  Microseconds time;
  Bytes memory;
};

/// A rank's parts from the bottom of its bar: shards, widest split first; then whole sequences; longer ones first. Ties
/// keep batch order.
using Stack = std::vector<Part>;

/// @return  [ranks]
std::vector<Stack> stacks(const Placement& placement, const std::vector<Swatch>& swatches, const LoadModel& model);

/// What a bar's height stands for.
enum class Measure { tokens, time, memory };
double value(const Part& part, Measure measure);
/// Of every rank; equal to the sum over its stack.
std::vector<double> totals(const Score& score, Measure measure);

}  // namespace zellige
