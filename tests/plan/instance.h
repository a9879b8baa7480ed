// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "zellige/batch.h"
#include "zellige/planner.h"
#include "zellige/profile.h"

namespace zellige::testing {

/// A batch and the profile that prices it.
struct Instance {
  Batch batch;
  Profile profile;
};

/// What a random instance may be like.
struct InstanceShape {
  int ranks = 4;
  int buckets = 3;
  int sequences = 5;
  int largest_degree = 4;
  int configurations_a_degree = 3;  ///< at most; fewer where fewer are legal
  std::int64_t longest_whole_us = 1000;
  double memory_over_mean = 2.0;  ///< cap / (needs of the batch, all whole, a rank); also at least the smallest piece
};

/// Draws buckets with prices that fall with the degree, less than in proportion, and a batch of them. Integers are
/// small, so that ties happen.
Instance random_instance(RandomEngine& engine, const InstanceShape& shape);

/// Shapes for properties of whole plans: 1 to 6 ranks, up to 9 sequences, short and long ones, tight and loose memory.
InstanceShape any_small_shape(RandomEngine& engine);
/// Shapes of 5 to 8 ranks, too many for brute force; memory at `least_memory` times the mean or above.
InstanceShape middle_shape(RandomEngine& engine, double least_memory);

/// Gives every split option an exchange, from nothing to all of its time, most of them large; otherwise the same.
void add_exchanges(Instance& instance, RandomEngine& engine);

/// A profile with one bucket for each row of whole prices and needs, and no split options; base memory is 0.
Profile whole_profile(const std::vector<std::int64_t>& whole_us, const std::vector<std::int64_t>& needs_bytes,
                      std::int64_t cap_bytes);
/// A batch with `counts[b]` sequences of bucket b, ids "b-i".
Batch counted_batch(const Profile& profile, const std::vector<int>& counts, int ranks);

/// Options for tests: no wall limit that a slow machine could meet.
PlanOptions patient_options();

}  // namespace zellige::testing
