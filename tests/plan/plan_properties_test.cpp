// SPDX-License-Identifier: Apache-2.0
// What must hold for every plan of every method.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "instance.h"
#include "plan/two_stage.h"
#include "zellige/check.h"
#include "zellige/error.h"
#include "zellige/planner.h"
#include "zellige/score.h"

namespace zellige {
namespace {

using testing::Instance;
using testing::InstanceShape;
using testing::random_instance;

#define REQUIRE_SOLVER() \
  if (!why_no_cp_sat().empty()) GTEST_SKIP() << why_no_cp_sat()

/// A solve that is not proved by then ends feasible, at the same place on every machine.
PlanOptions limited_options(double work_limit = 0.1) {
  PlanOptions options = testing::patient_options();
  options.work_limit = work_limit;
  return options;
}

Instance small_instance(std::uint64_t seed) {
  RandomEngine engine(seed);
  return random_instance(engine, testing::any_small_shape(engine));
}

void expect_good(const Plan& plan, const Instance& instance) {
  for (const Finding& finding : check(plan, instance.batch, instance.profile)) {
    ADD_FAILURE() << name(finding.what) << ": " << finding.message;
  }
  if (!plan.has_placement()) {
    EXPECT_FALSE(plan.reason.empty());
    return;
  }
  const Score scored = score(plan.placement, instance.profile);
  EXPECT_EQ(scored.makespan, plan.makespan);
  ASSERT_TRUE(plan.certificate.makespan_bound.has_value());
  EXPECT_LE(*plan.certificate.makespan_bound, plan.makespan);
  EXPECT_EQ(plan.status == PlanStatus::optimal, *plan.certificate.makespan_bound == plan.makespan);
}

TEST(EveryPlan, PassesTheCheckerOnSmallBatches) {
  std::map<std::string, int> plans;
  for (std::uint64_t seed = 0; seed < 220; ++seed) {
    const Instance instance = small_instance(seed);
    for (const std::string& method : planner_names()) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", method " + method);
      try {
        const Plan plan = make_planner(method)->plan(instance.batch, instance.profile, limited_options());
        EXPECT_EQ(plan.method, method);
        expect_good(plan, instance);
        plans[method] += plan.has_placement();
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == Code::solver && !why_no_cp_sat().empty()) << error.what();
      }
    }
  }
  EXPECT_GT(plans["zellige"], 150);
  // The safety net, or without OR-Tools list scheduling: what "zellige" does when the own solver finds nothing.
  const auto second = make_two_stage({"zellige", Form::rank_counts, false, false});
  for (std::uint64_t seed = 0; seed < 220; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", without the own solver");
    const Instance instance = small_instance(seed);
    expect_good(second->plan(instance.batch, instance.profile, limited_options()), instance);
    PlanOptions alone = limited_options();
    alone.ortools = "none";
    const Plan greedy = second->plan(instance.batch, instance.profile, alone);
    expect_good(greedy, instance);
    EXPECT_EQ(greedy.solver, "greedy");
  }
  EXPECT_GT(plans["naive"], 100);
  if (why_no_cp_sat().empty()) {
    EXPECT_GE(plans["joint"], plans["zellige"]);
    EXPECT_EQ(plans["joint"], plans["joint-no-ecf"]);
  }
}

TEST(EveryPlan, PassesTheCheckerOnTheSuites) {
  for (const char* workload : {"high:V35", "low:V60", "a800x16:V45", "a6000x32:V40"}) {
    Instance instance;
    instance.batch = make_workload(workload);
    instance.profile = built_in_profile("h200", instance.batch.catalog);
    for (const char* method : {"zellige", "joint", "zellige-no-ecf"}) {
      SCOPED_TRACE(std::string(workload) + ", method " + method);
      if (std::string(method) != "zellige" && !why_no_cp_sat().empty()) continue;
      PlanOptions options;
      options.time_limit_s = 2;
      const Plan plan = make_planner(method)->plan(instance.batch, instance.profile, options);
      expect_good(plan, instance);
      EXPECT_TRUE(plan.has_placement() || std::string(method) != "zellige") << plan.reason;
    }
    PlanOptions options;
    options.ortools = "none";
    const Plan plan = make_planner("zellige")->plan(instance.batch, instance.profile, options);
    expect_good(plan, instance);
    EXPECT_TRUE(plan.has_placement());
    EXPECT_EQ(plan.solver, "own");
  }
}

TEST(EveryPlan, IsTheSameAgain) {
  for (std::uint64_t seed = 500; seed < 512; ++seed) {
    const Instance instance = small_instance(seed);
    for (const char* method : {"zellige", "joint", "joint-no-ecf", "zellige-no-ecf"}) {
      if (std::string(method) != "zellige" && !why_no_cp_sat().empty()) continue;
      SCOPED_TRACE("seed " + std::to_string(seed) + ", method " + method);
      const auto planner = make_planner(method);
      const Plan first = planner->plan(instance.batch, instance.profile, limited_options());
      const Plan second = planner->plan(instance.batch, instance.profile, limited_options());
      EXPECT_EQ(first.status, second.status);
      EXPECT_EQ(digest(first.placement), digest(second.placement));
      EXPECT_EQ(first.certificate, second.certificate);
    }
  }
}

/// The workload of a suite, twice by limited work: what ranks do that plan for themselves.
TEST(EveryPlan, IsTheSameOnEveryRankUnderAWorkLimit) {
  REQUIRE_SOLVER();
  Instance instance;
  instance.batch = make_workload("a800x16:V60");
  instance.profile = built_in_profile("h200", instance.batch.catalog);
  PlanOptions options;
  options.work_limit = 0.1;
  const auto planner = make_planner("zellige");
  const Plan first = planner->plan(instance.batch, instance.profile, options);
  options.time_limit_s = 0;  // does not count beside a work limit
  const Plan second = planner->plan(instance.batch, instance.profile, options);
  ASSERT_TRUE(first.has_placement());
  EXPECT_EQ(digest(first.placement), digest(second.placement));
}

// ---- How optima move

struct Optima {
  std::int64_t load_us = 0;
  int splits = 0;
  bool operator==(const Optima&) const = default;
};

std::optional<Optima> optima_of(const Instance& instance, const std::string& method) {
  const Plan plan = make_planner(method)->plan(instance.batch, instance.profile, limited_options(0.5));
  if (plan.certificate.anchor_status != SolveStatus::optimal) return std::nullopt;
  return Optima{plan.certificate.anchor_load->value, plan.certificate.split_count.value_or(-1)};
}

Profile with_prices(const Profile& profile, std::int64_t factor) {
  Profile scaled = profile;
  for (std::size_t b = 0; b < profile.catalog.buckets.size(); ++b) {
    std::vector<Price> prices(profile.menu(static_cast<BucketIndex>(b)).begin(),
                              profile.menu(static_cast<BucketIndex>(b)).end());
    for (Price& price : prices) price.time = price.time * factor;
    scaled.set_prices(static_cast<BucketIndex>(b), prices);
  }
  return scaled;
}

TEST(AnchorOptimum, MovesAsItMust) {
  REQUIRE_SOLVER();
  int compared = 0, proved = 0;
  for (std::uint64_t seed = 1000; seed < 1040; ++seed) {
    const Instance instance = small_instance(seed);
    if (instance.batch.sequences.empty()) continue;
    for (const char* method : {"zellige", "joint"}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", method " + method);
      const auto optima = optima_of(instance, method);
      RandomEngine engine(seed);

      Instance permuted = instance;
      shuffle(permuted.batch.sequences, engine);
      const auto of_permuted = optima_of(permuted, method);
      EXPECT_EQ(of_permuted, optima);

      Instance larger = instance;
      larger.profile.memory_usable = larger.profile.memory_usable * 2;
      const auto with_more_room = optima_of(larger, method);
      Instance fewer = instance;
      fewer.batch.sequences.erase(fewer.batch.sequences.begin() +
                                  static_cast<std::ptrdiff_t>(draw_below(engine, fewer.batch.sequences.size())));
      const auto with_one_less = optima_of(fewer, method);
      if (!optima) continue;
      ++compared;
      // K may fall: the second limit of scaled prices is rounded less.
      Instance scaled = instance;
      scaled.profile = with_prices(instance.profile, 7);
      const auto of_scaled = optima_of(scaled, method);
      // A proof may take more work than is allowed on one side only.
      EXPECT_EQ(of_scaled.value_or(Optima{7 * optima->load_us}).load_us, 7 * optima->load_us);
      EXPECT_LE(with_more_room.value_or(Optima{}).load_us, optima->load_us);
      EXPECT_LE(with_one_less.value_or(Optima{}).load_us, optima->load_us);
      proved += of_scaled && with_more_room && with_one_less;
    }
  }
  EXPECT_GT(compared, 40);
  EXPECT_GT(proved, compared * 9 / 10);
}

/// Theorem 2: one giant of work N u, m = N p fillers of d: the joint optimum splits the giant alone.
TEST(JointOptimum, SplitsOneSequenceInTheoremTwosInstance) {
  REQUIRE_SOLVER();
  for (const auto& [ranks, p] : {std::pair(2, 1), std::pair(4, 2), std::pair(8, 3)}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks, p = " + std::to_string(p));
    const std::int64_t d = 10;
    const std::int64_t u = (ranks - 1) * p * d + 50;
    Instance instance;
    instance.profile = testing::whole_profile({d, ranks * u}, {1, 1}, 1'000'000);
    for (const BucketIndex bucket : {0, 1}) {
      const std::int64_t work = instance.profile.whole(bucket).time.value;
      std::vector<Price> prices{instance.profile.whole(bucket)};
      for (int degree = 2; degree <= ranks; degree *= 2) {
        Price price = prices.front();
        price.config = {degree, 1, 1};
        price.time = {(work + degree - 1) / degree};
        prices.push_back(price);
      }
      instance.profile.set_prices(bucket, prices);
    }
    instance.batch = testing::counted_batch(instance.profile, {ranks * p, 1}, ranks);
    for (const char* method : {"joint", "zellige"}) {
      SCOPED_TRACE(method);
      PlanOptions options = limited_options();
      options.epsilon = 0;
      const Plan plan = make_planner(method)->plan(instance.batch, instance.profile, options);
      EXPECT_EQ(plan.makespan, Microseconds{u + p * d});
      EXPECT_EQ(plan.split_count, 1);
      EXPECT_EQ(plan.status, PlanStatus::optimal);
      EXPECT_TRUE(plan.certified);
      expect_good(plan, instance);
    }
  }
}

}  // namespace
}  // namespace zellige
