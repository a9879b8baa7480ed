// SPDX-License-Identifier: Apache-2.0
#include "plan/bounds.h"

#include <gtest/gtest.h>

#include "brute_force.h"
#include "instance.h"

namespace zellige {
namespace {

using testing::brute_force;
using testing::counted_batch;
using testing::Instance;
using testing::InstanceShape;
using testing::random_instance;
using testing::whole_profile;

Problem problem_of(const Batch& batch, const Profile& profile) {
  return make_problem(batch, profile, match_buckets(batch, profile),
                      std::vector<bool>(profile.catalog.buckets.size(), true), Menu::all);
}

Problem whole_problem(const std::vector<std::int64_t>& whole_us, const std::vector<int>& counts, int ranks,
                      const std::vector<std::int64_t>& needs = {}, std::int64_t cap = 1'000'000) {
  const Profile profile =
      whole_profile(whole_us, needs.empty() ? std::vector<std::int64_t>(whole_us.size(), 1) : needs, cap);
  return problem_of(counted_batch(profile, counts, ranks), profile);
}

TEST(LoadBound, IsTheAreaRoundedUp) {
  EXPECT_EQ(load_lower_bound(whole_problem({3, 4}, {4, 1}, 3), kNoLoadLimit), 6);  // 16 / 3
}

TEST(LoadBound, IsTheLargestPiece) { EXPECT_EQ(load_lower_bound(whole_problem({50, 1}, {1, 3}, 4), kNoLoadLimit), 50); }

TEST(LoadBound, IsAMultipleOfWhatAllPricesShare) {
  EXPECT_EQ(load_lower_bound(whole_problem({10}, {5}, 4), kNoLoadLimit), 20);        // 12.5 -> two on one rank
  EXPECT_EQ(load_lower_bound(whole_problem({7, 21}, {4, 1}, 3), kNoLoadLimit), 21);  // 16.3
}

TEST(LoadBound, KnowsThatLargePiecesShareNoRank) {
  // Five pieces of 10, four ranks, crumbs of 1: two of the large ones meet, though the area is 51 / 4.
  EXPECT_EQ(load_lower_bound(whole_problem({10, 1}, {5, 1}, 4), kNoLoadLimit), 20);
  // Seven of 10 on three ranks: some rank gets three.
  EXPECT_EQ(load_lower_bound(whole_problem({10, 1}, {7, 1}, 3), kNoLoadLimit), 30);
}

TEST(LoadBound, UsesOptionsNoDearerThanTheKnownPlan) {
  Problem problem = whole_problem({100}, {1}, 2);
  problem.groups[0].options.push_back({{1, 2, 1}, 2, 55, 1});
  EXPECT_EQ(load_lower_bound(problem, kNoLoadLimit), 55);  // largest piece
  problem.groups[0].members.push_back(1);
  // Two sequences: whole 100 each side, or split 110. Below a plan of 109 both are split.
  EXPECT_EQ(load_lower_bound(problem, 100), 100);
  problem.groups[0].options[0].time_us = 112;
  EXPECT_EQ(load_lower_bound(problem, 111), 110);
}

TEST(LoadBound, OfNothingIsNothing) {
  EXPECT_EQ(load_lower_bound(Problem{3, 10, {}}, kNoLoadLimit), 0);
  EXPECT_FALSE(load_is_refuted(Problem{3, 10, {}}, 0));
  EXPECT_EQ(split_lower_bound(Problem{3, 10, {}}, 5), 0);
  EXPECT_FALSE(memory_is_refuted(Problem{3, 10, {}}));
}

TEST(MemoryRefutation, KnowsTotalsAndPieces) {
  EXPECT_FALSE(memory_is_refuted(whole_problem({1}, {4}, 2, {5}, 10)));
  EXPECT_TRUE(memory_is_refuted(whole_problem({1}, {5}, 2, {5}, 10)));  // 25 > 20
  EXPECT_TRUE(memory_is_refuted(whole_problem({1}, {3}, 2, {6}, 10)));  // 18 < 20, but two of 6 share no rank
  EXPECT_FALSE(memory_is_refuted(whole_problem({1, 1}, {2, 2}, 2, {6, 4}, 10)));
  EXPECT_TRUE(memory_is_refuted(whole_problem({1}, {1}, 2, {11}, 10)));
}

TEST(SplitBound, CountsWhatCannotStayWhole) {
  Problem problem = whole_problem({100, 40}, {2, 7}, 3);
  for (Group& group : problem.groups) {
    const std::int64_t half = group.options[0].time_us / 2;
    group.options.push_back({{1, 2, 1}, 2, half, 1});
  }
  EXPECT_EQ(split_lower_bound(problem, 99), 3);  // both of 100; of the nine above 99/3 = 33 at most 3 * 2 stay whole
  EXPECT_EQ(split_lower_bound(problem, 1000), 0);
  EXPECT_EQ(split_lower_bound(problem, 70), 6);  // of nine above 70/2 at most 3 stay whole
  EXPECT_EQ(split_lower_bound(problem, 39), 9);
  problem.memory_cap_bytes = 1;  // one sequence, or one piece, a rank
  EXPECT_EQ(split_lower_bound(problem, 1000), 6);
}

/// Against the oracle: bounds are never above the optimum, refutations never wrong, and not vacuous.
TEST(Bounds, HoldOnEnumeratedInstances) {
  int tight = 0, refuted = 0, split = 0, memory = 0, infeasible = 0, feasible = 0;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    InstanceShape shape;
    shape.ranks = 1 + static_cast<int>(draw_below(engine, 4));
    shape.sequences = 1 + static_cast<int>(draw_below(engine, 4));
    shape.configurations_a_degree = 1;
    shape.longest_whole_us = draw_below(engine, 2) ? 12 : 1000;
    shape.memory_over_mean = 0.8 + 1.5 * draw_unit(engine);
    const Instance instance = random_instance(engine, shape);
    const Problem problem = problem_of(instance.batch, instance.profile);
    const std::vector<bool> all(instance.batch.sequences.size(), true);
    const auto optimum = brute_force(instance.batch, instance.profile, all, Menu::all, testing::a_thousandth_more);
    if (!optimum) {
      ++infeasible;
      memory += memory_is_refuted(problem);
      continue;
    }
    ++feasible;
    EXPECT_FALSE(memory_is_refuted(problem));
    EXPECT_FALSE(load_is_refuted(problem, optimum->load_us));
    EXPECT_LE(load_lower_bound(problem, kNoLoadLimit), optimum->load_us);
    const std::int64_t bound = load_lower_bound(problem, optimum->load_us);
    EXPECT_LE(bound, optimum->load_us);
    EXPECT_LE(load_lower_bound(problem, optimum->load_us + 50), optimum->load_us);
    EXPECT_LE(split_lower_bound(problem, optimum->limit_us), optimum->splits);
    // The reduced problem has the same optimum, so its bounds hold as well, and are no weaker.
    EXPECT_LE(load_lower_bound(reduced(problem), optimum->load_us), optimum->load_us);
    EXPECT_EQ(makespan_lower_bound(instance.batch, instance.profile, {.menu = Menu::all}, {optimum->load_us}).value,
              load_lower_bound(reduced(problem), optimum->load_us));
    tight += bound == optimum->load_us;
    refuted += load_is_refuted(problem, optimum->load_us - 1);
    split += split_lower_bound(problem, optimum->limit_us) == optimum->splits && optimum->splits > 0;
  }
  EXPECT_GT(feasible, 150);
  EXPECT_GT(tight, 50);
  EXPECT_GT(refuted, 50);
  EXPECT_GT(split, 5);
  EXPECT_GT(infeasible, 5);
  EXPECT_GT(memory, 2);
}

}  // namespace
}  // namespace zellige
