// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/instance.h"

namespace zellige::testing {

/// Classes of batches that differ in what makes them hard to plan:
///   suite         a workload of the evaluation at any share, redrawn, estimated prices with noise
///   model         another model (head counts that are no powers of two, grouped K/V heads, joint text), any buckets
///   random-prices prices of no pattern, small whole numbers, so that ties happen
///   memory-tight  the same, memory from 2% below what whole sequences need on average to a third above it
///   giant         one sequence that outweighs all others
///   many-equal    one bucket, more sequences than ranks
///   short-clips   hundreds of short sequences of several lengths beside a few long ones
const std::vector<std::string>& mixed_classes();

/// A batch of a class for `ranks` ranks and the profile that prices it. Same seed, same instance.
Instance mixed_instance(const std::string& which, int ranks, std::uint64_t seed);

/// A number of ranks: 2 .. 16 in three draws of five, else a power of two or its neighbour up to `most`.
int mixed_ranks(RandomEngine& engine, int most);

}  // namespace zellige::testing
