// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "baseline_cases.h"
#include "plan/baselines.h"

namespace zellige {
namespace {

using testing::batch_of;
using testing::expect_good_plan;
using testing::expect_no_plan;
using ::testing::HasSubstr;
using testing::quadratic_cost;
using testing::ruled_profile;

std::vector<Rank> ranks_of(const Plan& plan) {
  std::vector<Rank> ranks;
  for (const PlacedSequence& sequence : plan.placement.sequences) ranks.push_back(sequence.ranks.at(0));
  return ranks;
}

TEST(Naive, BalancesTokensLongestFirst) {
  const Profile profile = ruled_profile({100, 500, 300}, 1, quadratic_cost, 100'000);
  // 500 -> 0, 500 -> 1, 300 -> 2, 100 -> 2 (300 < 500), 100 -> 2 (400), 100 -> 0 (all 500).
  const Batch batch = batch_of(profile, {0, 1, 0, 2, 1, 0}, 3);
  const Plan plan = make_naive()->plan(batch, profile, {});
  expect_good_plan(plan, batch, profile);
  EXPECT_EQ(ranks_of(plan), (std::vector<Rank>{2, 0, 2, 2, 1, 0}));
  EXPECT_EQ(plan.solver, "naive");
  EXPECT_EQ(plan.split_count, 0);
}

TEST(Naive, KarmarkarKarpBalancesComputeInstead) {
  // Work of l tokens at width 1,536 is 9,216 l + l^2. Tokens say {90,000} against the rest; compute says that the long
  // one alone outweighs it.
  const Profile profile = ruled_profile({90'000, 30'000}, 1, quadratic_cost, 1'000'000);
  const Batch batch = batch_of(profile, {0, 1, 1, 1, 1, 1}, 2);
  PlanOptions options;
  options.layout = "karmarkar-karp";
  const Plan differencing = make_naive()->plan(batch, profile, options);
  expect_good_plan(differencing, batch, profile);
  EXPECT_EQ(differencing.solver, "naive karmarkar-karp");
  EXPECT_EQ(ranks_of(differencing), (std::vector<Rank>{0, 1, 1, 1, 1, 1}));
  const Plan tokens = make_naive()->plan(batch, profile, {});
  EXPECT_EQ(ranks_of(tokens), (std::vector<Rank>{0, 1, 1, 1, 0, 1}));
  EXPECT_LT(differencing.makespan, tokens.makespan);
}

TEST(Naive, OverTheMemoryCapThereIsNoPlan) {
  const Profile profile = ruled_profile({100, 60}, 2, quadratic_cost, 159);
  const Batch batch = batch_of(profile, {0, 0, 1, 1}, 2);
  // Both ranks need 160: more than 159 each, so nothing else can fit either.
  const Plan plan = make_naive()->plan(batch, profile, {});
  expect_no_plan(plan, batch, profile, "OOM");
  EXPECT_EQ(plan.status, PlanStatus::infeasible);
  // Splitting would help here, so it is only this method that fails.
  const Profile roomier = ruled_profile({100, 60}, 2, quadratic_cost, 150);
  const Batch lopsided = batch_of(roomier, {0, 0, 1}, 2);
  const Plan over = make_naive()->plan(lopsided, roomier, {});
  expect_no_plan(over, lopsided, roomier, "OOM: rank 0 needs 160 bytes, 10 bytes over the memory cap of 150 bytes");
  EXPECT_EQ(over.status, PlanStatus::unknown);
}

TEST(Naive, AnotherLayoutIsRefused) {
  const Profile profile = ruled_profile({100}, 1, quadratic_cost, 1000);
  PlanOptions options;
  options.layout = "kk";
  EXPECT_THAT(testing::input_error_of([&] { make_naive()->plan(batch_of(profile, {0}, 1), profile, options); }),
              HasSubstr("layout 'kk': leave it empty (token balance) or write karmarkar-karp"));
}

TEST(Naive, MoreRanksThanSequences) {
  const Profile profile = ruled_profile({100}, 1, quadratic_cost, 1000);
  const Batch batch = batch_of(profile, {0, 0}, 5);
  const Plan plan = make_naive()->plan(batch, profile, {});
  expect_good_plan(plan, batch, profile);
  EXPECT_EQ(plan.load.at(4).value, 0);
  EXPECT_EQ(plan.status, PlanStatus::optimal);
}

}  // namespace
}  // namespace zellige
