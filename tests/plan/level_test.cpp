// SPDX-License-Identifier: Apache-2.0
#include "plan/level.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace zellige {
namespace {

Group group_of(std::int64_t count, std::vector<Option> options) {
  Group group;
  for (std::int64_t i = 0; i < count; ++i) group.members.push_back(static_cast<SequenceIndex>(i));
  group.options = std::move(options);
  return group;
}

Option whole(std::int64_t time_us, std::int64_t memory_bytes) { return {{1, 1, 1}, 1, time_us, memory_bytes}; }

std::int64_t largest(const std::vector<std::int64_t>& values) {
  return *std::max_element(values.begin(), values.end());
}

TEST(Leveller, MovesAndSwapsUntilLevel) {
  // 5 + 5 + 4 against 3 + 3 + 2 + 2: no single move helps (a 4 would make 14), a swap of 5 for 3 does.
  Problem problem{
      2,
      100,
      {group_of(2, {whole(5, 1)}), group_of(1, {whole(4, 1)}), group_of(2, {whole(3, 1)}), group_of(2, {whole(2, 1)})}};
  CountSolution solution(problem);
  solution.z = {{2}, {1}, {2}, {2}};
  solution.x = {{{2, 0}}, {{1, 0}}, {{0, 2}}, {{0, 2}}};
  EXPECT_EQ(Leveller(problem, solution).level_load(0, 10'000), 12);
  EXPECT_EQ(largest(rank_loads(problem, solution)), 12);
}

TEST(Leveller, LeavesAloneWhatIsCloseEnough) {
  Problem problem{2, 100, {group_of(3, {whole(5, 1)})}};
  CountSolution solution(problem);
  solution.z = {{3}};
  solution.x = {{{3, 0}}};
  EXPECT_EQ(Leveller(problem, solution).level_load(15, 10'000), 15);
  EXPECT_EQ(solution.x[0][0], (std::vector<std::int64_t>{3, 0}));
  EXPECT_EQ(Leveller(problem, solution).level_load(14, 10'000), 10);
}

TEST(Leveller, TradesTimeForBytesWhereMemoryIsFull) {
  // Rank 0: four of 10 us, 4 bytes each. Rank 1: sixteen of 1 us, 1 byte. Both are full: one goes for four.
  Problem problem{2, 16, {group_of(4, {whole(10, 4)}), group_of(16, {whole(1, 1)})}};
  CountSolution solution(problem);
  solution.z = {{4}, {16}};
  solution.x = {{{4, 0}}, {{0, 16}}};
  EXPECT_EQ(Leveller(problem, solution).level_load(0, 10'000), 28);
  EXPECT_EQ(largest(rank_memory(problem, solution)), 16);
}

TEST(Leveller, ShedsMemoryBySwapsAlone) {
  // 7 + 5 against 4 + 3 under a cap of 10: nothing can move, but 5 against 3 can.
  Problem problem{
      2,
      10,
      {group_of(1, {whole(1, 7)}), group_of(1, {whole(1, 5)}), group_of(1, {whole(1, 4)}), group_of(1, {whole(1, 3)})}};
  CountSolution solution(problem);
  solution.z = {{1}, {1}, {1}, {1}};
  solution.x = {{{1, 0}}, {{1, 0}}, {{0, 1}}, {{0, 1}}};
  EXPECT_TRUE(Leveller(problem, solution).shed_memory(10'000));
  EXPECT_LE(largest(rank_memory(problem, solution)), 10);
  problem.memory_cap_bytes = 8;  // 19 bytes on 16
  EXPECT_FALSE(Leveller(problem, solution).shed_memory(10'000));
}

TEST(Leveller, KeepsCountsAndCapAndNeverRaisesTheLoad) {
  int lowered = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    Problem problem;
    problem.ranks = 1 + static_cast<int>(draw_below(engine, 20));
    const int groups = 1 + static_cast<int>(draw_below(engine, 5));
    for (int g = 0; g < groups; ++g) {
      const auto time = 1 + static_cast<std::int64_t>(draw_below(engine, 50));
      problem.groups.push_back(
          group_of(static_cast<std::int64_t>(draw_below(engine, 30)),
                   {whole(time, static_cast<std::int64_t>(draw_below(engine, 9))), {{2, 1, 1}, 2, time / 2 + 1, 1}}));
    }
    CountSolution solution(problem);
    for (int g = 0; g < groups; ++g) {
      solution.z[g][0] = problem.groups[g].count();
      for (std::int64_t i = 0; i < problem.groups[g].count(); ++i) {
        ++solution.x[g][0][draw_below(engine, std::min(problem.ranks, 3))];
      }
    }
    const CountSolution before = solution;
    const std::vector<std::int64_t> memory = rank_memory(problem, solution);
    problem.memory_cap_bytes = largest(memory) + static_cast<std::int64_t>(draw_below(engine, 5));
    const std::int64_t load = largest_load(problem, solution);
    const std::int64_t after = Leveller(problem, solution).level_load(0, 100'000);
    EXPECT_LE(after, load);
    EXPECT_EQ(after, largest_load(problem, solution));
    EXPECT_LE(largest(rank_memory(problem, solution)), problem.memory_cap_bytes);
    EXPECT_EQ(solution.z, before.z);
    for (int g = 0; g < groups; ++g) {
      std::int64_t placed = 0;
      for (const std::int64_t count : solution.x[g][0]) {
        EXPECT_GE(count, 0);
        placed += count;
      }
      EXPECT_EQ(placed, problem.groups[g].count());
      EXPECT_EQ(solution.x[g][1], before.x[g][1]);
    }
    lowered += after < load;
  }
  EXPECT_GT(lowered, 200);
}

}  // namespace
}  // namespace zellige
