// SPDX-License-Identifier: Apache-2.0
#include "plan/differencing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/random.h"

namespace zellige {
namespace {

std::vector<std::int64_t> sums(const std::vector<std::int64_t>& work, const std::vector<int>& part, int num_parts) {
  std::vector<std::int64_t> sum(num_parts, 0);
  for (std::size_t i = 0; i < work.size(); ++i) sum.at(part[i]) += work[i];
  return sum;
}

TEST(LargestDifferencing, TextbookCase) {
  // 8-7 -> 1, 6-5 -> 1, 4-1 -> 3, 3-1 -> 2: sums 14 and 16 (the best would be 15 and 15).
  const std::vector<std::int64_t> work = {4, 5, 6, 7, 8};
  std::vector<std::int64_t> sum = sums(work, largest_differencing(work, 2), 2);
  std::sort(sum.begin(), sum.end());
  EXPECT_EQ(sum, (std::vector<std::int64_t>{14, 16}));
}

TEST(LargestDifferencing, ThreePartsByHand) {
  // (8,0,0) and (7,0,0) join to (8,7,0), spread 8; with (6,0,0), spread 6: (8,7,6), spread 2. (5,0,0) and (4,0,0) join
  // to (5,4,0), spread 5; with (8,7,6), fullest to emptiest: (5+6, 4+7, 0+8).
  const std::vector<std::int64_t> work = {4, 5, 6, 7, 8};
  std::vector<std::int64_t> sum = sums(work, largest_differencing(work, 3), 3);
  std::sort(sum.begin(), sum.end());
  EXPECT_EQ(sum, (std::vector<std::int64_t>{8, 11, 11}));
}

TEST(LargestDifferencing, TwoPartsDifferByTheClassicalRecurrence) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    std::vector<std::int64_t> work(1 + draw_below(engine, 40));
    for (std::int64_t& w : work) w = static_cast<std::int64_t>(draw_below(engine, seed % 2 == 0 ? 10 : 1'000'000));
    // Independent of partitions: two numbers are replaced by their difference until one is left.
    std::multiset<std::int64_t> left(work.begin(), work.end());
    while (left.size() > 1) {
      const std::int64_t a = *left.rbegin();
      left.erase(std::prev(left.end()));
      const std::int64_t b = *left.rbegin();
      left.erase(std::prev(left.end()));
      left.insert(a - b);
    }
    const std::vector<std::int64_t> sum = sums(work, largest_differencing(work, 2), 2);
    EXPECT_EQ(std::abs(sum[0] - sum[1]), *left.begin());
  }
}

TEST(LargestDifferencing, PartsAreNumberedByTheirFirstItem) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const int num_parts = 1 + static_cast<int>(draw_below(engine, 9));
    std::vector<std::int64_t> work(draw_below(engine, 60));
    for (std::int64_t& w : work) w = static_cast<std::int64_t>(draw_below(engine, 1000));
    const std::vector<int> part = largest_differencing(work, num_parts);
    ASSERT_EQ(part.size(), work.size());
    int next = 0;
    for (const int p : part) {
      EXPECT_LE(p, next);
      if (p == next) ++next;
    }
    EXPECT_LE(next, num_parts);
    const std::vector<std::int64_t> sum = sums(work, part, num_parts);
    const std::int64_t largest = work.empty() ? 0 : *std::max_element(work.begin(), work.end());
    EXPECT_LE(*std::max_element(sum.begin(), sum.end()) - *std::min_element(sum.begin(), sum.end()), largest);
  }
}

}  // namespace
}  // namespace zellige
