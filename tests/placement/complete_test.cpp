// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "placement/random_plan.h"
#include "placement/worked_case.h"
#include "zellige/error.h"
#include "zellige/placement.h"

namespace zellige {
namespace {

/// Only what a planner decides.
Plan bare(const Plan& plan) {
  Plan decided = plan;
  for (PlacedSequence& sequence : decided.placement.sequences) {
    sequence.time = {-1};
    sequence.memory = {-1};
  }
  decided.load = {{7}};
  decided.memory.clear();
  decided.makespan = decided.floor = {-1};
  decided.split_count = -1;
  decided.profile_digest = "";
  return decided;
}

TEST(Complete, FillsInTheWorkedCase) {
  Plan plan = bare(worked_case::plan());
  complete(plan, worked_case::batch(), worked_case::profile());
  EXPECT_EQ(plan_json(plan), plan_json(worked_case::plan()));
}

TEST(Complete, FillsInRandomPlans) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const auto [batch, profile, right] = random_plan::draw(engine);
    Plan plan = bare(right);
    complete(plan, batch, profile);
    EXPECT_EQ(plan_json(plan), plan_json(right));
  }
}

TEST(Complete, WithoutAPlacementCountsTheWholeBatchInTheFloor) {
  Plan plan = bare(worked_case::plan());
  plan.status = PlanStatus::timeout;
  plan.reason = "60 s are over";
  complete(plan, worked_case::batch(), worked_case::profile());
  EXPECT_TRUE(plan.placement.sequences.empty());
  EXPECT_TRUE(plan.load.empty());
  EXPECT_TRUE(plan.memory.empty());
  EXPECT_EQ(plan.makespan, Microseconds{0});
  EXPECT_EQ(plan.split_count, 0);
  EXPECT_EQ(plan.floor, Microseconds{3'510'751});
  EXPECT_EQ(plan.profile_digest, worked_case::kProfileDigest);
}

TEST(Complete, RefusesWhatHasNoPrice) {
  Plan plan = worked_case::plan();
  plan.placement.sequences[0].config = {2, 1, 1};
  EXPECT_THROW(complete(plan, worked_case::batch(), worked_case::profile()), Error);
  plan = worked_case::plan();
  plan.placement.sequences[0].ranks = {0, 2};
  EXPECT_THROW(complete(plan, worked_case::batch(), worked_case::profile()), Error);
  Batch other = worked_case::batch();
  other.catalog.model.layers = 40;
  plan = worked_case::plan();
  EXPECT_THROW(complete(plan, other, worked_case::profile()), Error);
}

}  // namespace
}  // namespace zellige
