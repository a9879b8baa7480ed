// SPDX-License-Identifier: Apache-2.0
// What all baselines promise alike, on random instances.
#include "plan/baselines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "baseline_cases.h"
#include "instance.h"
#include "zellige/check.h"
#include "zellige/error.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;

using Maker = std::unique_ptr<Planner> (*)();

struct Method {
  const char* name;
  Maker make;
  bool keeps_to_disjoint_groups;
};

class EveryBaseline : public ::testing::TestWithParam<Method> {
 protected:
  void SetUp() override {
    if (GetParam().make != make_flexsp) return;
    if (const std::string why = why_no_cp_sat(); !why.empty()) GTEST_SKIP() << "needs OR-Tools: " << why;
  }
  std::unique_ptr<Planner> planner() const { return GetParam().make(); }
};

INSTANTIATE_TEST_SUITE_P(Methods, EveryBaseline,
                         ::testing::Values(Method{"naive", make_naive, true},
                                           Method{"adaptiveload", make_adaptiveload, true},
                                           Method{"usp", make_usp, true}, Method{"knapformer", make_knapformer, true},
                                           Method{"flexsp", make_flexsp, true},
                                           Method{"megatron", make_megatron, false},
                                           Method{"disjoint", make_disjoint, true}),
                         [](const auto& method) { return std::string(method.param.name); });

/// Everything but the time that it took.
std::string without_solve_time(Plan plan) {
  plan.solve_time = {};
  return plan_json(plan);
}

TEST_P(EveryBaseline, PlansPassTheCheckerAndComeOutTheSameTwice) {
  std::map<PlanStatus, int> seen;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    testing::InstanceShape shape;
    shape.ranks = 1 + static_cast<int>(draw_below(engine, 8));
    shape.buckets = 1 + static_cast<int>(draw_below(engine, 4));
    shape.sequences = 1 + static_cast<int>(draw_below(engine, 12));
    shape.largest_degree = shape.ranks;
    shape.configurations_a_degree = 100;  // all: methods differ in the ones they use
    shape.memory_over_mean = 0.9 + 0.1 * static_cast<double>(draw_below(engine, 30));
    const testing::Instance instance = testing::random_instance(engine, shape);
    PlanOptions options = testing::patient_options();
    options.menu = draw_below(engine, 2) == 0 ? Menu::powers_of_two : Menu::all;
    options.exec.waves = 2;
    const Plan plan = planner()->plan(instance.batch, instance.profile, options);
    EXPECT_EQ(plan.method, GetParam().name);
    ++seen[plan.status];
    if (plan.has_placement()) {
      testing::expect_good_plan(plan, instance.batch, instance.profile);
      EXPECT_EQ(plan.placement.exec, options.exec);
      const std::string why_not = testing::why_not_disjoint(plan.placement);
      EXPECT_TRUE(why_not.empty() || !GetParam().keeps_to_disjoint_groups) << why_not;
    } else {
      testing::expect_no_plan(plan, instance.batch, instance.profile, "");
    }
    EXPECT_EQ(without_solve_time(plan), without_solve_time(planner()->plan(instance.batch, instance.profile, options)));
  }
  EXPECT_GT(seen[PlanStatus::optimal] + seen[PlanStatus::feasible], 40);
  EXPECT_GT(seen[PlanStatus::infeasible] + seen[PlanStatus::unknown], 0);
  EXPECT_EQ(seen[PlanStatus::timeout], 0);
}

TEST_P(EveryBaseline, InfeasibleIsSaidOnlyWhereNothingFits) {
  int proved = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    testing::InstanceShape shape;
    shape.ranks = shape.largest_degree = 2;
    shape.buckets = 2;
    shape.memory_over_mean = 0.95;
    const testing::Instance instance = testing::random_instance(engine, shape);
    const Plan plan = planner()->plan(instance.batch, instance.profile, testing::patient_options());
    if (plan.status != PlanStatus::infeasible) continue;
    ++proved;
    EXPECT_TRUE(plan.reason.starts_with("OOM")) << plan.reason;
    // On two ranks a sequence is on rank 0, on rank 1, or on both, leanest configuration: try all.
    std::vector<int> where(instance.batch.sequences.size(), 0);
    while (true) {
      std::int64_t memory[2] = {0, 0};
      for (std::size_t s = 0; s < where.size(); ++s) {
        const BucketIndex bucket = instance.batch.sequences[s].bucket;
        std::int64_t split = INT64_MAX / 100;
        for (const Price& price : instance.profile.menu(bucket)) {
          if (price.config.degree() == 2) split = std::min(split, price.memory.value);
        }
        for (int rank = 0; rank < 2; ++rank) {
          if (where[s] == 2) memory[rank] += split;
          if (where[s] == rank) memory[rank] += instance.profile.whole(bucket).memory.value;
        }
      }
      EXPECT_GT(std::max(memory[0], memory[1]), instance.profile.memory_cap().value);
      std::size_t digit = 0;
      while (digit < where.size() && ++where[digit] == 3) where[digit++] = 0;
      if (digit == where.size()) break;
    }
  }
  EXPECT_GT(proved, 0);
}

TEST_P(EveryBaseline, AWishToStopIsHeard) {
  RandomEngine engine(1);
  const testing::Instance instance = testing::random_instance(engine, {});
  std::stop_source source;
  source.request_stop();
  const Plan stopped = planner()->plan(instance.batch, instance.profile, {}, source.get_token());
  EXPECT_EQ(stopped.status, PlanStatus::timeout);
  testing::expect_no_plan(stopped, instance.batch, instance.profile, "cancelled");
  PlanOptions options;
  options.time_limit_s = 0;
  const Plan late = planner()->plan(instance.batch, instance.profile, options);
  EXPECT_EQ(late.status, PlanStatus::timeout);
  testing::expect_no_plan(late, instance.batch, instance.profile, "out of time");
}

TEST_P(EveryBaseline, ABatchOfNothing) {
  RandomEngine engine(1);
  testing::Instance instance = testing::random_instance(engine, {});
  instance.batch.sequences.clear();
  const Plan plan = planner()->plan(instance.batch, instance.profile, {});
  testing::expect_good_plan(plan, instance.batch, instance.profile);
  EXPECT_EQ(plan.status, PlanStatus::optimal);
  EXPECT_EQ(plan.makespan.value, 0);
}

TEST_P(EveryBaseline, NonsenseIsRefused) {
  RandomEngine engine(1);
  const testing::Instance instance = testing::random_instance(engine, {});
  const auto error_with = [&](const PlanOptions& options, const Batch& batch) {
    return testing::input_error_of([&] { planner()->plan(batch, instance.profile, options); });
  };
  PlanOptions options;
  options.time_limit_s = -1;
  EXPECT_THAT(error_with(options, instance.batch), HasSubstr("time_limit_s is -1"));
  options = {};
  options.layout = "what?";
  EXPECT_THAT(error_with(options, instance.batch), HasSubstr("layout 'what?'"));
  Batch other = instance.batch;
  other.catalog.buckets.at(other.sequences.at(0).bucket).tokens = {77'777};
  EXPECT_THAT(error_with({}, other), HasSubstr("77777"));
  Batch nobody = instance.batch;
  nobody.ranks = 0;
  EXPECT_THAT(error_with({}, nobody), HasSubstr("0 ranks"));
}

}  // namespace
}  // namespace zellige
