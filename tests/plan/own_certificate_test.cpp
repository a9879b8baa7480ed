// SPDX-License-Identifier: Apache-2.0
// The own solver's certificate in whole plans: what the checker takes from it, and that it takes nothing else.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "instance.h"
#include "testing/findings.h"
#include "zellige/check.h"
#include "zellige/planner.h"

namespace zellige {
namespace {

using testing::Instance;
using testing::InstanceShape;
using testing::shown;

Instance drawn(std::uint64_t seed) {
  RandomEngine engine(seed);
  InstanceShape shape;
  shape.ranks = 2 + static_cast<int>(draw_below(engine, 7));
  shape.buckets = 2 + static_cast<int>(draw_below(engine, 4));
  shape.sequences = 4 + static_cast<int>(draw_below(engine, 12));
  shape.largest_degree = shape.ranks;
  shape.longest_whole_us = 5000;
  shape.memory_over_mean = 1.5 + draw_unit(engine);
  return testing::random_instance(engine, shape);
}

Plan own_plan(const Instance& instance, const char* method) {
  PlanOptions options;
  options.ortools = "none";
  return make_planner(method)->plan(instance.batch, instance.profile, options);
}

using Change = std::pair<const char*, std::function<bool(Plan&)>>;  // false: nothing to change here

const std::vector<Change>& lies() {
  static const std::vector<Change> list = {
      {"a higher anchor bound",
       [](Plan& plan) {
         Certificate& proof = plan.certificate;
         if (proof.anchor_bound == proof.anchor_load) return false;  // then the load says so, too
         proof.anchor_bound->value += 1;
         return true;
       }},
      {"a higher anchor bound and load",
       [](Plan& plan) {
         plan.certificate.anchor_bound->value += 1;
         plan.certificate.anchor_load->value += 1;
         return true;
       }},
      {"a higher split bound",
       [](Plan& plan) {
         Certificate& proof = plan.certificate;
         if (proof.split_bound >= proof.split_count) return false;
         proof.split_bound = *proof.split_bound + 1;
         return true;
       }},
      {"an optimal anchor round",
       [](Plan& plan) {
         if (plan.certificate.anchor_status == SolveStatus::optimal) return false;
         plan.certificate.anchor_bound = plan.certificate.anchor_load;
         plan.certificate.anchor_status = SolveStatus::optimal;
         return true;
       }},
      {"a higher makespan bound",
       [](Plan& plan) {
         if (plan.status == PlanStatus::optimal) return false;
         plan.certificate.makespan_bound = plan.makespan;
         plan.status = PlanStatus::optimal;
         return true;
       }},
      {"proofs about fewer anchors",
       [](Plan& plan) {
         plan.certificate.duals->buckets.pop_back();
         for (auto* tree : {&plan.certificate.duals->load, &plan.certificate.duals->split}) {
           for (auto& node : *tree) {
             if (!node.sequence_values.empty()) node.sequence_values.pop_back();
           }
         }
         return true;
       }},
      {"an unknown menu",
       [](Plan& plan) {
         plan.certificate.duals->menu = static_cast<Menu>(7);
         return true;
       }},
      {"a lower limit of round 2",
       [](Plan& plan) {
         plan.certificate.duals->split_limit = *plan.certificate.anchor_bound - Microseconds{1};
         return true;
       }},
      {"no proof",
       [](Plan& plan) {
         plan.certificate.duals->load.clear();
         return true;
       }},
  };
  return list;
}

TEST(OwnCertificate, IsVerifiedAndNothingBeyondIt) {
  std::vector<int> told(lies().size(), 0);
  int plans = 0, certified = 0;
  // With repair and without: repair leaves few plans whose makespan is above its bound.
  for (std::uint64_t draw = 0; draw < 500; ++draw) {
    const std::uint64_t seed = 1 + draw / 2;
    const char* method = draw % 2 == 0 ? "zellige" : "two-stage";
    SCOPED_TRACE(::testing::Message() << method << ", seed " << seed);
    const Instance instance = drawn(seed);
    const Plan plan = own_plan(instance, method);
    if (!plan.has_placement() || plan.solver != "own" || !plan.certificate.duals) continue;
    ++plans;
    certified += plan.certified;
    const Verdict verdict = judge(plan, instance.batch, instance.profile);
    ASSERT_EQ(shown(verdict.findings), "");
    EXPECT_TRUE(verdict.unverified.empty());
    for (std::size_t i = 0; i < lies().size(); ++i) {
      SCOPED_TRACE(lies()[i].first);
      Plan liar = plan;
      if (!lies()[i].second(liar)) continue;
      ++told[i];
      EXPECT_FALSE(check(liar, instance.batch, instance.profile).empty());
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(plans, 200);
  EXPECT_GT(certified, 160);
  EXPECT_GT(told[1], 200);
  EXPECT_GT(told[4], 30);
  EXPECT_GT(told[5], 200);
}

/// CP-SAT's bounds are proved by the own solver's where those reach them, and else shown as CP-SAT's.
TEST(OwnCertificate, ProvesWhatCpSatStates) {
  if (std::string why = why_no_cp_sat(); !why.empty()) GTEST_SKIP() << why;
  int plans = 0, proved = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Instance instance = drawn(seed);
    PlanOptions options = testing::patient_options();
    options.work_limit = 0.1;
    const Plan plan = make_planner("joint")->plan(instance.batch, instance.profile, options);
    if (!plan.has_placement()) continue;
    ++plans;
    const Verdict verdict = judge(plan, instance.batch, instance.profile);
    ASSERT_EQ(shown(verdict.findings), "");
    if (!plan.certificate.duals) continue;
    ++proved;
    EXPECT_TRUE(verdict.unverified.empty()) << verdict.unverified.front().message;
    Plan liar = plan;
    liar.certificate.anchor_bound->value += 1;
    liar.certificate.anchor_load->value += 1;
    EXPECT_FALSE(check(liar, instance.batch, instance.profile).empty());
  }
  EXPECT_GT(plans, 25);
  EXPECT_GT(proved, 20);
}

}  // namespace
}  // namespace zellige
