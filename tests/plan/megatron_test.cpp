// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "baseline_cases.h"
#include "plan/baselines.h"

namespace zellige {
namespace {

using testing::batch_of;
using testing::Cost;
using testing::expect_good_plan;
using testing::expect_no_plan;
using ::testing::HasSubstr;
using testing::ruled_profile;

/// tokens^2 / degree, all-gather a microsecond dearer than Ulysses, rings two; memory is the chunk's tokens.
std::optional<Cost> square(std::int64_t tokens, Configuration c) {
  return Cost{tokens * tokens / c.degree() + (c.q > 1) + 2 * (c.k > 1) + 1, (tokens + c.degree() - 1) / c.degree()};
}

std::string spots(const Plan& plan) {
  std::string all;
  for (const PlacedSequence& sequence : plan.placement.sequences) {
    all += (all.empty() ? "" : " ") + std::to_string(sequence.ranks.front()) + "+" +
           std::to_string(sequence.config.degree());
  }
  return all;
}

TEST(Megatron, SmallestPowerOfTwoThatFitsMemory) {
  const Profile profile = ruled_profile({1000, 400, 100}, 4, square, 600);
  // 1,000 tokens need two ranks, the others fit one. Work s^2/cp: 500,000 on ranks 0-1; 160,000 -> 2, 160,000 -> 3;
  // 10,000 -> 2.
  const Batch batch = batch_of(profile, {1, 0, 2, 1}, 4);
  const Plan plan = make_megatron()->plan(batch, profile, {});
  expect_good_plan(plan, batch, profile);
  EXPECT_EQ(spots(plan), "2+1 0+2 2+1 3+1");
  EXPECT_EQ(plan.placement.sequences[1].config, (Configuration{1, 2, 1})) << "the cheapest of the degree";
  EXPECT_EQ(plan.solver, "megatron");
}

TEST(Megatron, AlignedGroupsOnly) {
  // The whole sequence is on rank 0; ranks 1-2 would be free, but are no group.
  const Profile two = ruled_profile({1000, 900}, 4, square, 10'000);
  const Batch beside = batch_of(two, {0, 1}, 4);
  PlanOptions options;
  options.layout = "t900";
  EXPECT_EQ(spots(make_megatron()->plan(beside, two, options)), "2+2 0+1");

  const Profile profile = ruled_profile({1000}, 4, square, 600);
  const Batch batch = batch_of(profile, {0, 0, 0}, 7);  // ranks 6 is in no group of two
  const Plan plan = make_megatron()->plan(batch, profile, {});
  expect_good_plan(plan, batch, profile);
  EXPECT_EQ(spots(plan), "0+2 2+2 4+2");
}

TEST(Megatron, MostTokensOfARankCanBeSet) {
  const Profile profile = ruled_profile({1000, 400, 100}, 4, square, 10'000);
  const Batch batch = batch_of(profile, {0, 1, 2}, 4);
  PlanOptions options;
  EXPECT_EQ(spots(make_megatron()->plan(batch, profile, options)), "0+1 1+1 2+1");
  options.layout = "t250";
  const Plan plan = make_megatron()->plan(batch, profile, options);
  expect_good_plan(plan, batch, profile);
  EXPECT_EQ(spots(plan), "0+4 0+2 2+1");
  EXPECT_EQ(plan.solver, "megatron t250");
  options.layout = "t249";
  expect_no_plan(make_megatron()->plan(batch, profile, options), batch, profile,
                 "sequence 's0' (1000 tokens) fits no power of two of the 4 ranks: at most 249 tokens a rank");
}

TEST(Megatron, AFullGroupSendsASequenceToAWiderOne) {
  // Each of three 1,000s fits two ranks alone (500 each), but a rank holds 800: the third is cut in four.
  const Profile profile = ruled_profile({1000}, 4, square, 800);
  const Batch batch = batch_of(profile, {0, 0, 0}, 4);
  const Plan plan = make_megatron()->plan(batch, profile, {});
  expect_good_plan(plan, batch, profile);
  EXPECT_EQ(spots(plan), "0+2 2+2 0+4");
}

TEST(Megatron, WhereMemoryEnds) {
  const Profile profile = ruled_profile({1000}, 4, square, 800);
  const Batch batch = batch_of(profile, {0, 0, 0, 0}, 4);
  const Plan plan = make_megatron()->plan(batch, profile, {});
  expect_no_plan(plan, batch, profile, "OOM");
  const Batch too_long = batch_of(ruled_profile({4000}, 4, square, 800), {0}, 4);
  const Profile small = ruled_profile({4000}, 4, square, 800);
  const Plan none = make_megatron()->plan(too_long, small, {});
  expect_no_plan(none, too_long, small, "OOM");
  EXPECT_EQ(none.status, PlanStatus::infeasible);
}

TEST(Megatron, WrongLayoutIsRefused) {
  const Profile profile = ruled_profile({1000}, 4, square, 10'000);
  for (const char* layout : {"t", "t0", "t-5", "t5x", "65536", "g2n2", "t99999999999999999999"}) {
    PlanOptions options;
    options.layout = layout;
    EXPECT_THAT(testing::input_error_of([&] { make_megatron()->plan(batch_of(profile, {0}, 4), profile, options); }),
                HasSubstr("[plan.megatron] layout '" + std::string(layout) + "'"));
  }
}

}  // namespace
}  // namespace zellige
