// SPDX-License-Identifier: Apache-2.0
#include "placement/refutation.h"

#include <gtest/gtest.h>

#include <string>

#include "placement/proof_instances.h"
#include "placement/worked_case.h"

namespace zellige {
namespace {

using proof_instances::below;
using proof_instances::random_instance;
using proof_instances::some_placement;

constexpr std::int64_t kAnySplits = 1000;
constexpr std::int64_t kAnyLoad = 1'000'000;

TEST(Refutation, RefutesNothingThatAPlacementReaches) {
  int refuted = 0, open = 0, beyond_area = 0, splits = 0, infeasible = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    ProofInstance instance = random_instance(engine);
    if (below(engine, 4) == 0) {  // coarse prices, so that they have a common divisor
      const std::int64_t grid = 2 + below(engine, 5);
      for (auto& group : instance.groups) {
        for (auto& option : group.options) option.time_us = (option.time_us + grid - 1) / grid * grid;
      }
    }
    if (refutes_memory(instance)) {
      EXPECT_FALSE(some_placement(instance, kAnyLoad, kAnySplits));
      ++infeasible;
      continue;
    }
    std::int64_t area = 0;
    for (const auto& group : instance.groups) {
      std::int64_t least = kAnyLoad;
      for (const auto& option : group.options) least = std::min(least, option.time_us * option.degree);
      area += least * group.count;
    }
    const std::int64_t area_bound = (area + instance.ranks - 1) / instance.ranks;
    const std::int64_t limit = std::max<std::int64_t>(0, area_bound - 4 + below(engine, 24));
    const bool is_possible = some_placement(instance, limit, kAnySplits);
    if (refutes_load(instance, limit)) {
      EXPECT_FALSE(is_possible) << "limit " << limit;
      ++refuted;
      beyond_area += limit >= area_bound;
    } else {
      ++open;
    }
    const std::int64_t bound = recomputed_load_bound(instance, kAnyLoad);
    EXPECT_GE(bound, area_bound);
    EXPECT_FALSE(some_placement(instance, bound - 1, kAnySplits));
    const std::int64_t fewest = recomputed_split_bound(instance, limit);
    if (fewest > 0) {
      EXPECT_FALSE(some_placement(instance, limit, fewest - 1)) << "limit " << limit << ", splits " << fewest - 1;
      ++splits;
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(refuted, 600);
  EXPECT_GT(open, 300);
  EXPECT_GT(beyond_area, 100);
  EXPECT_GT(splits, 300);
  EXPECT_GT(infeasible, 20);
}

TEST(Refutation, OfTwoSumsRefutesNothingThatAPlacementReaches) {
  int refuted = 0, by_exchange = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    ProofInstance instance = random_instance(engine);
    ProofInstance times = instance;
    proof_instances::add_exchanges(instance, engine);
    if (refutes_memory(instance)) continue;
    const std::int64_t bound = recomputed_load_bound(instance, kAnyLoad);
    EXPECT_FALSE(some_placement(instance, bound - 1, kAnySplits)) << "bound " << bound;
    ++refuted;
    by_exchange += bound > recomputed_load_bound(times, kAnyLoad);
    const std::int64_t limit = bound + below(engine, 10);
    const std::int64_t fewest = recomputed_split_bound(instance, limit);
    if (fewest > 0) {
      EXPECT_FALSE(some_placement(instance, limit, fewest - 1));
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(refuted, 2000);
  EXPECT_GT(by_exchange, 100);
}

TEST(Refutation, TwoPiecesAboveHalfShareNoRank) {
  ProofInstance instance{2, 100, {{3, {{{1, 1, 1}, 1, 10, 1}}}}};
  EXPECT_TRUE(refutes_load(instance, 19));
  EXPECT_FALSE(refutes_load(instance, 20));
  EXPECT_EQ(recomputed_load_bound(instance, 1000), 20);
  EXPECT_EQ(recomputed_load_bound(instance, 15), 15);
}

TEST(Refutation, LoadsAreMultiplesOfThePricesDivisor) {
  // 7 pieces of 6 and one of 9 on 2 ranks: 25.5 on the mean, and a multiple of 3.
  ProofInstance instance{2, 100, {{7, {{{1, 1, 1}, 1, 6, 1}}}, {1, {{{1, 1, 1}, 1, 9, 1}}}}};
  EXPECT_TRUE(refutes_load(instance, 26));
  EXPECT_FALSE(refutes_load(instance, 27));
}

TEST(Refutation, ChoosesOptionsByTheMenu) {
  EXPECT_TRUE(is_chosen(Choice::powers_of_two, 16));
  EXPECT_FALSE(is_chosen(Choice::powers_of_two, 12));
  EXPECT_FALSE(is_chosen(Choice::powers_of_two, 32));
  EXPECT_TRUE(is_chosen(Choice::all, 12));
  EXPECT_FALSE(is_chosen(Choice::all, 17));
  EXPECT_TRUE(is_chosen(Choice::priced, 17));
  const Batch batch = worked_case::batch();
  const Profile profile = worked_case::profile();
  const ProofInstance instance =
      instance_of(batch, profile, match_buckets(batch, profile), {false, true, true}, Choice::powers_of_two, {});
  ASSERT_EQ(instance.groups.size(), 2u);  // in the batch's order
  EXPECT_EQ(instance.groups[0].count, 1);
  EXPECT_EQ(instance.groups[0].options.size(), 2u);
  EXPECT_EQ(instance.groups[1].count, 2);
  EXPECT_EQ(instance.groups[1].options.size(), 1u);
  EXPECT_EQ(instance.memory_cap_bytes, 117'000'000'000);
}

}  // namespace
}  // namespace zellige
