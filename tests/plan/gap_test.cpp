// SPDX-License-Identifier: Apache-2.0
#include "plan/gap.h"

#include <gtest/gtest.h>

#include <limits>

#include "brute_force.h"
#include "instance.h"
#include "plan/bounds.h"

namespace zellige {
namespace {

TEST(Sand, LevelsRanksAndStopsWhereMemoryIsFull) {
  Group group;
  group.members = {0};
  group.options = {{{1, 1, 1}, 1, 10, 8}};
  const Problem problem{2, 10, {group}};
  CountSolution solution(problem);
  solution.z = {{1}};
  solution.x = {{{1, 0}}};
  EXPECT_EQ(sand_level(problem, solution, {0, 0}), 10);
  EXPECT_EQ(sand_level(problem, solution, {6, 0}), 10);   // below the highest
  EXPECT_EQ(sand_level(problem, solution, {20, 0}), 15);  // (10 + 20) / 2
  EXPECT_EQ(sand_level(problem, solution, {21, 0}), 16);  // rounded up
  // 20 us in 10 bytes: rank 0 has room for 2 bytes, so 4 us; 16 go to rank 1.
  EXPECT_EQ(sand_level(problem, solution, {20, 10}), 16);
  // 40 us in 10 bytes: 8 us make 18, 32 go to rank 1.
  EXPECT_EQ(sand_level(problem, solution, {40, 10}), 32);
}

/// The bound of the relaxation never exceeds the optimum of the whole batch, and is often more than what stands alone.
TEST(Gap, BoundHoldsForTheWholeBatch) {
  std::string why_not;
  const auto solver = cp::Solver::find("", why_not);
  if (!solver) GTEST_SKIP() << why_not;
  int compared = 0, raised = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    testing::InstanceShape shape;
    shape.ranks = 2 + static_cast<int>(draw_below(engine, 3));
    shape.buckets = 4;
    shape.sequences = 2 + static_cast<int>(draw_below(engine, 4));
    shape.configurations_a_degree = 1;
    shape.longest_whole_us = 50'000;
    shape.memory_over_mean = 1 + draw_unit(engine);
    const testing::Instance instance = testing::random_instance(engine, shape);
    const auto optimum =
        testing::brute_force(instance.batch, instance.profile, std::vector<bool>(instance.batch.sequences.size(), true),
                             Menu::powers_of_two, testing::a_thousandth_more);
    if (!optimum) continue;
    const auto buckets = match_buckets(instance.batch, instance.profile);
    const std::vector<bool> cut = anchor_buckets(instance.profile);
    const Problem whole = reduced(make_problem(instance.batch, instance.profile, buckets,
                                               std::vector<bool>(cut.size(), true), Menu::powers_of_two));
    const Problem anchors = reduced(make_problem(instance.batch, instance.profile, buckets, cut, Menu::powers_of_two));
    if (anchors.groups.empty()) continue;
    std::vector<bool> is_anchor;
    for (const Group& group : whole.groups) is_anchor.push_back(cut[group.bucket]);
    const std::int64_t upper = optimum->load_us + static_cast<std::int64_t>(draw_below(engine, 1000));
    const std::int64_t least = load_lower_bound(whole, upper);
    const GapResult gap = close_gap(anchors, least_sand(whole, is_anchor, upper), nullptr, least, upper, *solver,
                                    testing::patient_options(), Deadline(60, {}));
    EXPECT_LE(gap.bound_us, optimum->load_us);
    EXPECT_GE(gap.bound_us, least);
    ++compared;
    raised += gap.bound_us > least;
  }
  EXPECT_GT(compared, 80);
  EXPECT_GT(raised, 15);
}

}  // namespace
}  // namespace zellige
