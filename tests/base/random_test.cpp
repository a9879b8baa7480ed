// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace zellige {
namespace {

// The standard fixes the 10000th draw of a default-seeded mt19937_64.
TEST(Random, EngineIsTheStandardOne) {
  RandomEngine engine;
  engine.discard(9999);
  EXPECT_EQ(engine(), 9981545732273789042ULL);
}

TEST(Random, BoundedDrawsAreUniformAndWithinTheBound) {
  RandomEngine engine(1);
  std::vector<int> seen(7);
  for (int i = 0; i < 70'000; ++i) ++seen.at(draw_below(engine, 7));
  for (int count : seen) EXPECT_NEAR(count, 10'000, 500);  // 5 standard deviations
}

TEST(Random, TheIncompleteIntervalIsRejected) {
  // bound = 2^63 + 1: almost half of all values fall in the incomplete interval; without rejection small results would
  // be twice as frequent as large ones.
  RandomEngine engine(2);
  const std::uint64_t bound = (std::uint64_t{1} << 63) + 1;
  int low = 0;
  for (int i = 0; i < 10'000; ++i) low += draw_below(engine, bound) < bound / 2;
  EXPECT_NEAR(low, 5'000, 250);
}

TEST(Random, UnitDrawsLieInTheHalfOpenInterval) {
  RandomEngine engine(3);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double value = draw_unit(engine);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.015);
}

TEST(Random, ShufflePermutesAndReachesEveryOrder) {
  RandomEngine engine(4);
  std::vector<std::vector<int>> orders;
  for (int i = 0; i < 1000; ++i) {
    std::vector<int> items(3);
    std::iota(items.begin(), items.end(), 0);
    shuffle(items, engine);
    std::vector<int> sorted = items;
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(sorted, (std::vector<int>{0, 1, 2}));
    if (std::find(orders.begin(), orders.end(), items) == orders.end()) orders.push_back(items);
  }
  EXPECT_EQ(orders.size(), 6U);
}

}  // namespace
}  // namespace zellige
