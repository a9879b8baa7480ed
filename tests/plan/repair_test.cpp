// SPDX-License-Identifier: Apache-2.0
#include "plan/repair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "brute_force.h"
#include "instance.h"
#include "zellige/check.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using testing::Instance;
using testing::InstanceShape;

std::string findings_of(const Plan& plan, const Instance& instance) {
  std::string text;
  for (const Finding& finding : check(plan, instance.batch, instance.profile)) text += finding.message + "\n";
  return text;
}

PlanOptions options_of(const char* ortools) {
  PlanOptions options = testing::patient_options();
  options.ortools = ortools;
  return options;
}

Plan plan_of(const Instance& instance, const std::string& method, const PlanOptions& options) {
  return make_planner(method)->plan(instance.batch, instance.profile, options);
}

/// The makespan is the joint optimum's within 0.1%, and there is a plan exactly when there is a placement: brute force
/// over the whole batch.
TEST(Repair, EqualsBruteForceOverTheWholeBatch) {
  int placed = 0, impossible = 0, better_than_two_stage = 0, found_where_two_stage_fails = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    InstanceShape shape;
    shape.ranks = 2 + static_cast<int>(draw_below(engine, 3));
    shape.buckets = 2 + static_cast<int>(draw_below(engine, 3));
    shape.sequences = 1 + static_cast<int>(draw_below(engine, 5));
    shape.configurations_a_degree = 1;
    shape.longest_whole_us = seed % 2 == 0 ? 100'000 : 40;
    shape.memory_over_mean = 0.8 + 1.2 * draw_unit(engine);
    const Instance instance = testing::random_instance(engine, shape);
    const auto optimum =
        testing::brute_force(instance.batch, instance.profile, std::vector<bool>(instance.batch.sequences.size(), true),
                             Menu::powers_of_two, testing::a_thousandth_more);
    const PlanOptions options = options_of("none");
    const Plan plan = plan_of(instance, "zellige", options);
    const Plan paper = plan_of(instance, "two-stage", options);
    EXPECT_EQ(findings_of(plan, instance), "");
    EXPECT_EQ(findings_of(paper, instance), "");
    ASSERT_EQ(plan.has_placement(), optimum.has_value()) << plan.reason;
    if (!optimum) {
      EXPECT_THAT(plan.reason, HasSubstr("memory cap"));
      EXPECT_TRUE(plan.status == PlanStatus::infeasible || plan.status == PlanStatus::unknown);
      ++impossible;
      continue;
    }
    EXPECT_LE(plan.makespan.value, testing::a_thousandth_more(optimum->load_us)) << optimum->load_us;
    EXPECT_GE(plan.makespan.value, optimum->load_us);
    EXPECT_LE(plan.certificate.makespan_bound->value, optimum->load_us);
    ++placed;
    found_where_two_stage_fails += !paper.has_placement();
    better_than_two_stage += paper.has_placement() && plan.makespan < paper.makespan;
    if (paper.has_placement()) {
      EXPECT_LE(plan.makespan.value, paper.makespan.value);
    }
  }
  EXPECT_GT(placed, 250);
  EXPECT_GT(impossible, 20);
  EXPECT_GT(better_than_two_stage, 20);
  EXPECT_GT(found_where_two_stage_fails, 10);
}

/// Larger batches, judged by the joint reference on CP-SAT.
TEST(Repair, IsWithinATenthOfAPercentOfTheJointReference) {
  if (!why_no_cp_sat().empty()) GTEST_SKIP() << why_no_cp_sat();
  int placed = 0, impossible = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    InstanceShape shape;
    shape.ranks = 4 + static_cast<int>(draw_below(engine, 5));
    shape.buckets = 4;
    shape.sequences = 7 + static_cast<int>(draw_below(engine, 6));
    shape.configurations_a_degree = 1;
    shape.longest_whole_us = 100'000;
    shape.memory_over_mean = 0.75 + draw_unit(engine);
    const Instance instance = testing::random_instance(engine, shape);
    PlanOptions work = options_of("");
    work.work_limit = 0.3;
    const Plan joint = plan_of(instance, "joint", work);
    const Plan plan = plan_of(instance, "zellige", work);
    EXPECT_EQ(findings_of(plan, instance), "");
    if (joint.has_placement()) {
      ASSERT_TRUE(plan.has_placement()) << plan.reason;
      EXPECT_LE(plan.makespan.value, testing::a_thousandth_more(joint.certificate.anchor_load->value));
      if (joint.certificate.anchor_status == SolveStatus::optimal) {
        EXPECT_GE(plan.makespan.value, joint.certificate.anchor_load->value);
      }
      ++placed;
    } else if (joint.status == PlanStatus::infeasible) {
      EXPECT_EQ(plan.status, PlanStatus::infeasible);
      EXPECT_THAT(plan.reason, HasSubstr("It would fit"));
      ++impossible;
    }
  }
  EXPECT_GT(placed, 15);
  EXPECT_GT(impossible, 1);
}

TEST(Repair, LeavesAPlanThatIsCloseAsItIs) {
  Instance instance;
  instance.batch = make_workload("low:V35");
  instance.profile = built_in_profile("h200", instance.batch.catalog);
  const Plan paper = plan_of(instance, "two-stage", options_of("none"));
  ASSERT_LE(paper.makespan.value, testing::a_thousandth_more(paper.certificate.makespan_bound->value));
  const Plan plan = plan_of(instance, "zellige", options_of("none"));
  EXPECT_EQ(plan.placement, paper.placement);
  EXPECT_EQ(plan.certificate, paper.certificate);
}

TEST(Repair, ChoosesAnchorsByTheLevelThatFillersComeTo) {
  // Alone the anchors are balanced best in halves (6 + 6); with the fillers on top whole ones waste less.
  Instance instance;
  instance.batch = make_workload("a800x16:V35");
  instance.profile = built_in_profile("h200", instance.batch.catalog, true, 16);
  const Plan paper = plan_of(instance, "two-stage", options_of("none"));
  const Plan plan = plan_of(instance, "zellige", options_of("none"));
  EXPECT_GT(paper.makespan.value, testing::a_thousandth_more(paper.certificate.makespan_bound->value));
  EXPECT_LE(plan.makespan.value, testing::a_thousandth_more(plan.certificate.makespan_bound->value));
  for (const PlacedSequence& sequence : plan.placement.sequences) {
    EXPECT_TRUE(sequence.kind == MediaKind::video || sequence.config.is_whole()) << sequence.id;
  }
  EXPECT_EQ(findings_of(plan, instance), "");
}

/// Hundreds of short clips above the catalog's cut: as fillers they cost nothing, and Anchor Placement has a few long
/// ones to look at.
TEST(Repair, CutsByTheBatchWhereThatKeepsTheMakespan) {
  Instance instance;
  instance.profile = testing::whole_profile({1, 40'000, 90'000, 2'000'000}, {1, 1, 1, 1}, 1'000'000);
  ASSERT_EQ(anchor_buckets(instance.profile), (std::vector<bool>{false, true, true, true}));
  instance.batch = testing::counted_batch(instance.profile, {50, 300, 200, 6}, 4);
  const Plan plan = plan_of(instance, "zellige", options_of("none"));
  EXPECT_EQ(findings_of(plan, instance), "");
  EXPECT_LE(plan.makespan.value, testing::a_thousandth_more(plan.certificate.makespan_bound->value));
  EXPECT_EQ(plan.certificate.anchor_load, Microseconds{4'000'000});  // the six long ones alone
  // The paper's cut stays the paper's.
  EXPECT_GT(plan_of(instance, "two-stage", options_of("none")).certificate.anchor_load, Microseconds{10'000'000});
}

TEST(Repair, SplitsAFillerWhenNoWholePlacementCanBalance) {
  // Bucket 0's sequences are fillers: three of 10 us on two ranks make 20 whole; one of them split makes 15.
  Instance instance;
  instance.profile = testing::whole_profile({10, 1000}, {1, 1}, 100);
  std::vector<Price> prices(instance.profile.menu(0).begin(), instance.profile.menu(0).end());
  Price half = prices.front();
  half.config = {2, 1, 1};
  half.time = {5};
  prices.push_back(half);
  instance.profile.set_prices(0, prices);
  instance.batch = testing::counted_batch(instance.profile, {3, 0}, 2);
  EXPECT_EQ(plan_of(instance, "two-stage", options_of("none")).makespan, Microseconds{20});
  const Plan plan = plan_of(instance, "zellige", options_of("none"));
  EXPECT_EQ(plan.makespan, Microseconds{15});
  EXPECT_EQ(plan.split_count, 1);
  EXPECT_EQ(findings_of(plan, instance), "");
  // Two on two ranks balance whole: then none is split.
  instance.batch = testing::counted_batch(instance.profile, {2, 0}, 2);
  EXPECT_EQ(plan_of(instance, "zellige", options_of("none")).split_count, 0);
}

}  // namespace
}  // namespace zellige
