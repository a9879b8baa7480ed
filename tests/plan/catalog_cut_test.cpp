// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "instance.h"

namespace zellige {
namespace {

using testing::whole_profile;

std::vector<bool> cut(const std::vector<std::int64_t>& whole_us) {
  return anchor_buckets(whole_profile(whole_us, std::vector<std::int64_t>(whole_us.size(), 1), 10));
}

TEST(CatalogCut, SeparatesTheLogarithmsOfTheWholePrices) {
  // log10: 0 1 | 4 5. Dispersions of k = 1, 2, 3: 0 + 8.67, .5 + .5, 8.67 + 0.
  EXPECT_EQ(cut({1, 10, 10000, 100000}), (std::vector<bool>{false, false, true, true}));
  // Linear distances would cut before the last one; logarithms (0 1 2 3 | ...) in the middle.
  EXPECT_EQ(cut({1, 10, 100, 1000}), (std::vector<bool>{false, false, true, true}));
}

TEST(CatalogCut, DoesNotDependOnTheOrderOfTheFile) {
  EXPECT_EQ(cut({100000, 1, 10000, 10}), (std::vector<bool>{true, false, true, false}));
}

TEST(CatalogCut, IsInvariantToTheUnitOfPrices) { EXPECT_EQ(cut({3, 8, 90, 200}), cut({3000, 8000, 90000, 200000})); }

TEST(CatalogCut, OfTiesTakesTheSmallestCut) {
  // log: 0 a 2a. Cutting after the first or after the second leaves a^2 / 2 either way.
  EXPECT_EQ(cut({1, 7, 49}), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(cut({1, 3, 9}), (std::vector<bool>{false, true, true}));
  // All equal: every cut leaves nothing; only the first bucket (by name) is a filler's.
  EXPECT_EQ(cut({5, 5, 5}), (std::vector<bool>{false, true, true}));
}

TEST(CatalogCut, OrdersEqualPricesByTokensThenName) {
  Profile profile = whole_profile({5, 5, 5}, {1, 1, 1}, 10);
  profile.catalog.buckets[0].tokens = {900};
  profile.catalog.buckets[1].tokens = {300};
  profile.catalog.buckets[2].tokens = {300};
  profile.catalog.buckets[1].name = "z";
  profile.catalog.buckets[2].name = "a";
  EXPECT_EQ(anchor_buckets(profile), (std::vector<bool>{true, true, false}));
}

TEST(CatalogCut, OneBucketIsAnAnchors) { EXPECT_EQ(cut({5}), (std::vector<bool>{true})); }

TEST(CatalogCut, TwoBucketsAreAFillersAndAnAnchors) {
  EXPECT_EQ(cut({5, 6}), (std::vector<bool>{false, true}));
  EXPECT_EQ(cut({6, 5}), (std::vector<bool>{true, false}));
}

/// Eq. 4 by another formula: sum of squares less the square of the sum over the count, in extended precision.
TEST(CatalogCut, AgreesWithANaiveReading) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    std::vector<std::int64_t> whole_us(2 + draw_below(engine, 9));
    for (auto& price : whole_us) price = 1 + static_cast<std::int64_t>(std::exp(16 * draw_unit(engine)));
    std::vector<std::int64_t> sorted = whole_us;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) continue;

    std::size_t best = 0;
    long double least = 0;
    for (std::size_t k = 1; k < sorted.size(); ++k) {
      long double total = 0;
      for (const auto& [first, last] : {std::pair(std::size_t{0}, k), std::pair(k, sorted.size())}) {
        long double sum = 0, squares = 0;
        for (std::size_t i = first; i < last; ++i) {
          const long double score = std::log(static_cast<long double>(sorted[i]));
          sum += score;
          squares += score * score;
        }
        total += squares - sum * sum / static_cast<long double>(last - first);
      }
      if (best == 0 || total < least * (1 - 1e-12L)) {
        best = k;
        least = total;
      }
    }
    std::vector<bool> expected;
    for (const std::int64_t price : whole_us) expected.push_back(price >= sorted[best]);
    EXPECT_EQ(cut(whole_us), expected);
  }
}

}  // namespace
}  // namespace zellige
