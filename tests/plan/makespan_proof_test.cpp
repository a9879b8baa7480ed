// SPDX-License-Identifier: Apache-2.0
#include "plan/makespan_proof.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brute_force.h"
#include "instance.h"
#include "plan/bounds.h"
#include "testing/findings.h"
#include "zellige/check.h"
#include "zellige/planner.h"

namespace zellige {
namespace {

using testing::Instance;
using testing::InstanceShape;
using testing::shown;

Problem whole_problem(const Instance& instance, Menu menu) {
  const auto buckets = match_buckets(instance.batch, instance.profile);
  const std::vector<bool> all(instance.profile.catalog.buckets.size(), true);
  return reduced(make_problem(instance.batch, instance.profile, buckets, all, menu));
}

ProofInstance proof_instance(const Problem& problem) {
  ProofInstance result{problem.ranks, problem.memory_cap_bytes, {}};
  for (const Group& group : problem.groups) {
    std::vector<ProofInstance::Option> options;
    for (const Option& option : group.options) {
      options.push_back({option.config, option.degree, option.time_us, option.memory_bytes, option.exchange_us});
    }
    result.groups.push_back({group.count(), needed_options(options, problem.memory_cap_bytes)});
  }
  return result;
}

constexpr std::int64_t kMuchWork = 20'000'000;

/// Bounds never exceed the optimum, whatever is sand; and reach it more often than those that stand alone.
TEST(MakespanProof, BoundsHoldForEveryPlacement) {
  int compared = 0, raised = 0, tight = 0, with_sand = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    InstanceShape shape;
    shape.ranks = 2 + static_cast<int>(draw_below(engine, 3));
    shape.buckets = 2 + static_cast<int>(draw_below(engine, 3));
    shape.sequences = 2 + static_cast<int>(draw_below(engine, 4));
    shape.configurations_a_degree = 1 + static_cast<int>(draw_below(engine, 2));
    shape.longest_whole_us = seed % 2 == 0 ? 200 : 50'000;
    shape.memory_over_mean = 1 + draw_unit(engine);
    const Instance instance = testing::random_instance(engine, shape);
    const auto optimum =
        testing::brute_force(instance.batch, instance.profile, std::vector<bool>(instance.batch.sequences.size(), true),
                             Menu::powers_of_two, testing::a_thousandth_more);
    if (!optimum) continue;
    const Problem whole = whole_problem(instance, Menu::powers_of_two);
    const std::int64_t simple = load_lower_bound(whole, optimum->load_us);
    // The larger the makespan that it is said to be about, the more groups are sand.
    for (const std::int64_t times : {1, 8, 40, 1000}) {
      SCOPED_TRACE("times " + std::to_string(times));
      const Deadline deadline(60, {});
      MakespanProver prover(whole, optimum->load_us * times, deadline);
      prover.raise(0, optimum->load_us + 100, kMuchWork);
      ASSERT_LE(prover.bound_us(), optimum->load_us);
      ++compared;
      with_sand += prover.counted() < whole.groups.size();
      raised += prover.bound_us() > simple;
      tight += prover.bound_us() == optimum->load_us;
      if (prover.bound_us() > 0) {
        const AnchorProof proof = prover.proof(instance.profile, Menu::powers_of_two);
        // What the checker verifies: true of the bound, never of one above the optimum.
        const auto why = [&](std::int64_t limit_us) {
          std::int64_t work = kMuchWork;
          return why_not_proved(proof_instance(whole), proof.load, limit_us, {}, work, prover.counted());
        };
        EXPECT_EQ(why(prover.bound_us() - 1), "");
        EXPECT_NE(why(optimum->load_us), "");
      }
      EXPECT_FALSE(prover.prove(optimum->load_us + 1, kMuchWork));
    }
  }
  EXPECT_GT(compared, 1500);
  EXPECT_GT(with_sand, 500);
  EXPECT_GT(raised, 300);
  EXPECT_GT(tight, 300);
}

using Lie = std::pair<const char*, std::function<bool(Plan&)>>;  // false: nothing to change here

const std::vector<Lie>& lies() {
  static const std::vector<Lie> list = {
      {"free sand",
       [](Plan& plan) {
         auto& proof = *plan.certificate.makespan_duals;
         if (!proof.counted) return false;
         bool is_worth = false;
         for (auto& node : proof.load) {
           node.prices = {{0, 0}};
           for (std::size_t b = *proof.counted; b < node.sequence_values.size(); ++b) {
             is_worth |= node.sequence_values[b] > 0;
           }
         }
         return is_worth;
       }},
      {"a negative price",
       [](Plan& plan) {
         for (auto& node : plan.certificate.makespan_duals->load) {
           for (auto& price : node.prices) price.per_byte = -1;
         }
         return plan.certificate.makespan_duals->counted.has_value();
       }},
      {"no tree",
       [](Plan& plan) {
         plan.certificate.makespan_duals->load.clear();
         return true;
       }},
      {"half of the tree",
       [](Plan& plan) {
         auto& tree = plan.certificate.makespan_duals->load;
         if (tree.size() < 2) return false;
         tree.resize(tree.size() / 2);
         return true;
       }},
      {"one bucket less",
       [](Plan& plan) {
         auto& proof = *plan.certificate.makespan_duals;
         proof.buckets.pop_back();
         if (proof.counted) proof.counted = std::min(*proof.counted, static_cast<int>(proof.buckets.size()));
         for (auto& node : proof.load) {
           if (!node.sequence_values.empty()) node.sequence_values.pop_back();
         }
         return true;
       }},
      {"more counted than there is",
       [](Plan& plan) {
         plan.certificate.makespan_duals->counted = 1000;
         return true;
       }},
      {"an unknown menu",
       [](Plan& plan) {
         plan.certificate.makespan_duals->menu = static_cast<Menu>(9);
         return true;
       }},
      {"a proof of no bound",
       [](Plan& plan) {
         if (plan.status == PlanStatus::optimal) return false;
         plan.certificate.makespan_bound.reset();
         return true;
       }},
  };
  return list;
}

/// The plans that carry such a proof, and what the checker says to changed ones.
TEST(MakespanProof, OfAPlanIsVerifiedAndNothingBeyondIt) {
  std::vector<int> told(lies().size(), 0);
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= 800; ++seed) {
    RandomEngine engine(seed);
    InstanceShape shape;
    shape.ranks = 2 + static_cast<int>(draw_below(engine, 7));
    shape.buckets = 3 + static_cast<int>(draw_below(engine, 4));
    shape.sequences = 8 + static_cast<int>(draw_below(engine, 60));
    shape.largest_degree = shape.ranks;
    shape.longest_whole_us = 100'000;
    shape.memory_over_mean = 1.1 + draw_unit(engine);
    const Instance instance = testing::random_instance(engine, shape);
    PlanOptions options;
    options.ortools = "none";
    const char* method = seed % 2 == 0 ? "zellige" : "two-stage";
    SCOPED_TRACE(::testing::Message() << method << ", seed " << seed);
    const Plan plan = make_planner(method)->plan(instance.batch, instance.profile, options);
    if (!plan.has_placement()) continue;
    ASSERT_TRUE(plan.certificate.makespan_bound);
    const Verdict verdict = judge(plan, instance.batch, instance.profile);
    ASSERT_EQ(shown(verdict.findings), "");
    EXPECT_TRUE(verdict.unverified.empty());
    if (!plan.certificate.makespan_duals) continue;
    ++plans;
    for (std::size_t i = 0; i < lies().size(); ++i) {
      SCOPED_TRACE(lies()[i].first);
      Plan liar = plan;
      if (!lies()[i].second(liar)) continue;
      ++told[i];
      EXPECT_FALSE(check(liar, instance.batch, instance.profile).empty());
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(plans, 25);
  for (std::size_t i = 0; i < lies().size(); ++i) EXPECT_GT(told[i], 0) << lies()[i].first;
}

/// What CP-SAT proves of all sequences at once never contradicts a bound.
TEST(MakespanProof, AgreesWithCpSat) {
  if (std::string why = why_no_cp_sat(); !why.empty()) GTEST_SKIP() << why;
  int compared = 0, raised = 0, with_branches = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    InstanceShape shape;
    shape.ranks = 2 + static_cast<int>(draw_below(engine, 5));
    shape.buckets = 3 + static_cast<int>(draw_below(engine, 2));
    shape.sequences = 6 + static_cast<int>(draw_below(engine, 10));
    shape.configurations_a_degree = 1;
    shape.longest_whole_us = 100'000;
    shape.memory_over_mean = 1 + draw_unit(engine);
    const Instance instance = testing::random_instance(engine, shape);
    PlanOptions options = testing::patient_options();
    options.work_limit = 0.2;
    const Plan joint = make_planner("joint")->plan(instance.batch, instance.profile, options);
    if (!joint.has_placement() || !joint.certificate.anchor_load) continue;
    const Problem whole = whole_problem(instance, Menu::powers_of_two);
    const std::int64_t reached = joint.certificate.anchor_load->value;
    const Deadline deadline(60, {});
    for (const std::int64_t times : {1, 30}) {
      MakespanProver prover(whole, reached * times, deadline);
      prover.raise(0, reached + 100, kMuchWork);
      ASSERT_LE(prover.bound_us(), reached);
      ++compared;
      raised += prover.bound_us() > load_lower_bound(whole, reached);
      if (prover.bound_us() == 0) continue;
      with_branches += prover.proof(instance.profile, Menu::powers_of_two).load.size() > 1;
    }
  }
  EXPECT_GT(compared, 150);
  EXPECT_GT(raised, 50);
  EXPECT_GT(with_branches, 1);
}

TEST(MakespanProof, EnoughIsTheSmallestBoundThatIsClose) {
  EXPECT_EQ(bound_enough_for(1001), 1000);
  EXPECT_EQ(bound_enough_for(1000), 1000);
  EXPECT_EQ(bound_enough_for(1), 1);
  EXPECT_EQ(bound_enough_for(2002), 2000);
  EXPECT_EQ(bound_enough_for(2003), 2001);
  EXPECT_EQ(bound_enough_for(1'001'000'001), 1'000'000'000 + 1);
}

}  // namespace
}  // namespace zellige
