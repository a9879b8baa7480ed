// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "zellige/placement.h"

namespace zellige::oracle {

/// What random_placement may draw. All ranges are inclusive.
struct RandomPlacementOptions {
  int min_ranks = 1, max_ranks = 8;
  int min_split = 0, max_split = 4;  ///< sequences of degree > 1; none where only one rank works
  int min_whole = 0, max_whole = 6;
  int max_degree = 12;
  std::int64_t max_tokens = 40;            ///< of a sequence, and at least its degree
  std::vector<int> heads = {4, 6, 12};     ///< one of them
  std::vector<int> head_dims = {1, 2, 4};  ///< one of them
  bool grouped_kv = true;                  ///< kv_heads may be a proper divisor of heads
  int max_waves = 5;
  bool idle_ranks = true;  ///< some placements leave ranks with nothing
};

/// A legal placement that follows from the seed alone: rank sets that overlap, whole sequences beside shards, lengths
/// that divide by nothing, some equal lengths and degrees (ties), a shuffled batch order, and ranks that hold nothing.
/// Claims (time, memory) are zero; buckets are named after lengths.
Placement random_placement(std::uint64_t seed, const RandomPlacementOptions& options = {});

/// Every configuration of degree <= max_degree whose h divides `heads` and `kv_heads`, whole included; by degree.
std::vector<Configuration> configurations_up_to(int max_degree, int heads, int kv_heads);

/// A placement of the given sequences (tokens, configuration, ranks) for a model of these heads; the rest is default.
struct PlacementEntry {
  std::int64_t tokens = 0;
  Configuration config;
  std::vector<Rank> ranks;
};
Placement make_placement(int ranks, int heads, int kv_heads, int head_dim, const std::vector<PlacementEntry>& entries);

}  // namespace zellige::oracle
