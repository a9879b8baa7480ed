// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/points.h"

namespace zellige {

/// Where prices that were not measured come from, and what a profile says beside prices.
struct Assembly {
  Catalog catalog;
  ProfileKey key;
  std::string estimate = "cpu";  ///< built-in profile that estimates are scaled from
  int ranks = 1;                 ///< that measured; configurations of more are estimated
  int element_bytes = 2;         ///< of activations
  int text_dim = 4096;           ///< channels of the text encoder
  Bytes memory_base, memory_usable;
};

/// A profile of measured points: each price is the sequence's time scaled from `depth` blocks to all. Lengths between
/// and beyond the measured ones follow a LengthCurve; a configuration without any point, or of more ranks than
/// measured, is the built-in estimate times measured / estimated of the nearest configuration that was measured for
/// that bucket.
/// Needs of memory are the measured peaks, less the workspace, with what the analytical model says that further blocks
/// add; where nothing was measured, the analytical model in the proportion of the nearest configuration.
Profile assemble(const Points& points, const Assembly& assembly);

/// Memory that a run takes whatever sequences it has (casts of weights, workspaces): what the peaks of single whole
/// sequences leave for no tokens, by the line through the longest and the shortest; 0 with fewer than two.
Bytes workspace(const Points& points);

/// Predicted step of `count` sequences a rank set, all blocks, without gradient sync and optimizer.
double predicted_us(const Points& points, int layers, const MeasuredPoint& point, int count);

}  // namespace zellige
