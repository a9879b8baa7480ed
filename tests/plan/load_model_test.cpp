// SPDX-License-Identifier: Apache-2.0
// The overlapped load model through all that plans: against enumeration, against CP-SAT, and against additive loads
// where nothing is exchanged.
#include <gtest/gtest.h>

#include <numeric>

#include "brute_force.h"
#include "instance.h"
#include "placement/anchor_certificate.h"
#include "placement/refutation.h"
#include "plan/anchor.h"
#include "plan/bounds.h"
#include "plan/gap.h"
#include "plan/own_anchor.h"
#include "zellige/check.h"
#include "zellige/error.h"
#include "zellige/score.h"

namespace zellige {
namespace {

using testing::brute_force;
using testing::Instance;
using testing::InstanceShape;

LoadModel overlapped(int hidden_per_mille) { return {LoadModel::Kind::overlapped, hidden_per_mille}; }

/// A model that the seed decides: hides nothing, all, the default part, or a part with many digits.
LoadModel model_of(std::uint64_t seed) {
  constexpr int kParts[] = {800, 1000, 0, 377};
  return overlapped(kParts[seed % 4]);
}

Instance exchanging_instance(RandomEngine& engine, const InstanceShape& shape) {
  Instance instance = testing::random_instance(engine, shape);
  add_exchanges(instance, engine);
  return instance;
}

InstanceShape small_shape(RandomEngine& engine) {
  InstanceShape shape;
  shape.ranks = 1 + static_cast<int>(draw_below(engine, 4));
  shape.buckets = 1 + static_cast<int>(draw_below(engine, 3));
  shape.largest_degree = shape.ranks;
  shape.configurations_a_degree = 1 + static_cast<int>(draw_below(engine, 3));
  shape.sequences = 1 + static_cast<int>(draw_below(engine, shape.configurations_a_degree > 1 ? 3 : 5));
  shape.longest_whole_us = draw_below(engine, 2) == 0 ? 30 : 100'000;
  shape.memory_over_mean = 0.9 + 1.5 * draw_unit(engine);
  return shape;
}

Problem problem_of(const Instance& instance, const LoadModel& model) {
  return make_problem(instance.batch, instance.profile, match_buckets(instance.batch, instance.profile),
                      std::vector<bool>(instance.profile.catalog.buckets.size(), true), Menu::all, model);
}

/// As the checker reads it.
ProofInstance proof_instance(const Instance& instance, const LoadModel& model) {
  return instance_of(instance.batch, instance.profile, match_buckets(instance.batch, instance.profile),
                     std::vector<bool>(instance.profile.catalog.buckets.size(), true), Choice::all, model);
}

own::SolverLimits exact_limits() {
  own::SolverLimits limits;
  limits.gap = 0;
  limits.load_work = limits.split_work = 200'000'000;
  limits.exact_work = 0;
  return limits;
}

/// Whether a load of the placement is its exchange.
bool exchange_decides(const Problem& problem, const CountSolution& solution) {
  const auto times = rank_times(problem, solution), exchanges = rank_exchanges(problem, solution);
  const auto largest = *std::max_element(times.begin(), times.end());
  return *std::max_element(exchanges.begin(), exchanges.end()) > largest;
}

TEST(OverlappedLoads, OwnSolverAgreesWithBruteForceAndProvesIt) {
  int solved = 0, impossible = 0, decided_by_exchange = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const Instance instance = exchanging_instance(engine, small_shape(engine));
    const LoadModel model = model_of(seed);
    const Problem problem = problem_of(instance, model);
    const std::vector<bool> all(instance.batch.sequences.size(), true);
    const auto optimum =
        brute_force(instance.batch, instance.profile, all, Menu::all, testing::a_thousandth_more, model);
    const own::AnchorSolution solution = solve_anchors(own_problem(problem), exact_limits());
    if (!optimum) {
      EXPECT_NE(solution.status, own::SolverStatus::solved);
      ++impossible;
      continue;
    }
    ++solved;
    ASSERT_EQ(solution.status, own::SolverStatus::solved);
    EXPECT_EQ(solution.least_load_us, optimum->load_us);
    EXPECT_EQ(solution.load_bound_us, optimum->load_us);
    EXPECT_EQ(solution.load_limit_us, optimum->limit_us);
    EXPECT_EQ(solution.split_count, optimum->splits);
    EXPECT_EQ(solution.split_bound, optimum->splits);
    const CountSolution counts = counted(problem, solution.model, solution.packing);
    decode(problem, counts);  // throws unless every sequence gets its degree of distinct ranks
    EXPECT_LE(largest_load(problem, counts), solution.load_limit_us);
    const CountSolution balanced = counted(problem, solution.model, solution.balanced);
    EXPECT_EQ(largest_load(problem, balanced), optimum->load_us);
    decided_by_exchange += exchange_decides(problem, balanced);

    // The checker's knapsack verifies both bounds, and nothing above them.
    const ProofInstance read = proof_instance(instance, model);
    ProofInstance in_order{read.ranks, read.memory_cap_bytes, {}};  // of groups as the proof names them
    for (const Group& group : problem.groups) {
      std::vector<ProofInstance::Option> options;
      for (const Option& o : group.options) {
        options.push_back({o.config, o.degree, o.time_us, o.memory_bytes, o.exchange_us});
      }
      in_order.groups.push_back({group.count(), needed_options(options, problem.memory_cap_bytes)});
    }
    const AnchorProof proof = anchor_proof(problem, solution, instance.profile, Menu::all);
    std::int64_t work = 100'000'000;
    EXPECT_EQ(why_not_proved(in_order, proof.load, optimum->load_us - 1, {}, work), "");
    EXPECT_NE(why_not_proved(in_order, proof.load, optimum->load_us, {}, work), "");
    if (solution.split_bound > 0) {
      EXPECT_EQ(why_not_proved(in_order, proof.split, optimum->limit_us, optimum->splits - 1, work), "");
      EXPECT_NE(why_not_proved(in_order, proof.split, optimum->limit_us, optimum->splits, work), "");
    }
    // Bounds that stand alone, the planner's and the checker's.
    EXPECT_LE(load_lower_bound(problem, kNoLoadLimit), optimum->load_us);
    EXPECT_LE(load_lower_bound(reduced(problem), optimum->load_us), optimum->load_us);
    EXPECT_LE(split_lower_bound(problem, optimum->limit_us), optimum->splits);
    EXPECT_FALSE(refutes_load(read, optimum->load_us));
    EXPECT_GE(recomputed_load_bound(read, optimum->load_us), load_lower_bound(reduced(problem), optimum->load_us));
    EXPECT_LE(recomputed_split_bound(read, optimum->limit_us), optimum->splits);
    if (HasFailure()) break;
  }
  EXPECT_GT(solved, 100);
  EXPECT_GE(impossible, 3);
  EXPECT_GT(decided_by_exchange, 10);
}

TEST(OverlappedLoads, CpSatAgreesWithBruteForceInEveryForm) {
  std::string why_not;
  const auto solver = cp::Solver::find("", why_not);
  if (!solver) GTEST_SKIP() << why_not;
  const Deadline deadline(300, {});
  int compared = 0;
  for (std::uint64_t seed = 1000; seed < 1024; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const Instance instance = exchanging_instance(engine, small_shape(engine));
    const LoadModel model = model_of(seed);
    const Problem problem = reduced(problem_of(instance, model));
    const std::vector<bool> all(instance.batch.sequences.size(), true);
    const auto optimum =
        brute_force(instance.batch, instance.profile, all, Menu::all, testing::a_thousandth_more, model);
    if (!optimum) continue;
    for (const Form form : {Form::rank_counts, Form::rank_sets, Form::sequences}) {
      const AnchorResult result =
          place_anchors(problem, solver.get(), {.form = form}, testing::patient_options(), deadline);
      ASSERT_EQ(result.status, AnchorResult::Status::solved) << result.reason;
      EXPECT_EQ(result.certificate.anchor_load, Microseconds{optimum->load_us});
      EXPECT_EQ(result.certificate.anchor_bound, Microseconds{optimum->load_us});
      EXPECT_EQ(result.certificate.split_bound, optimum->splits);
      EXPECT_LE(largest_load(problem, result.solution), optimum->limit_us);
      ++compared;
    }
    // Half of the groups as sand: a relaxation, so its bound is one of the whole.
    std::vector<bool> is_anchor(problem.groups.size(), false);
    Problem anchors{problem.ranks, problem.memory_cap_bytes, {}};
    for (std::size_t g = 0; g < problem.groups.size(); g += 2) {
      is_anchor[g] = true;
      anchors.groups.push_back(problem.groups[g]);
    }
    const Sand sand = least_sand(problem, is_anchor, optimum->load_us);
    const GapResult gap =
        close_gap(anchors, sand, nullptr, 0, optimum->load_us, *solver, testing::patient_options(), deadline);
    EXPECT_LE(gap.bound_us, optimum->load_us);
  }
  EXPECT_GT(compared, 40);
}

TEST(OverlappedLoads, OwnSolverAgreesWithCpSatOnLargerInstances) {
  std::string why_not;
  const auto solver = cp::Solver::find("", why_not);
  if (!solver) GTEST_SKIP() << why_not;
  PlanOptions options = testing::patient_options();
  options.work_limit = 2;
  const Deadline deadline(300, {});
  int equal = 0, decided_by_exchange = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const Instance instance = exchanging_instance(engine, testing::middle_shape(engine, 1.1));
    const Problem problem = reduced(problem_of(instance, model_of(seed)));
    own::SolverLimits limits = exact_limits();
    limits.load_work = limits.split_work = 20'000'000;
    const own::AnchorSolution mine = solve_anchors(own_problem(problem), limits);
    const AnchorResult theirs = place_anchors(problem, solver.get(), {}, options, deadline);
    if (mine.status != own::SolverStatus::solved || theirs.status != AnchorResult::Status::solved) {
      EXPECT_NE(mine.status == own::SolverStatus::infeasible, theirs.status == AnchorResult::Status::solved);
      EXPECT_NE(mine.status == own::SolverStatus::solved, theirs.status == AnchorResult::Status::infeasible);
      continue;
    }
    // Neither bound may exceed what the other one reached.
    EXPECT_LE(mine.load_bound_us, theirs.certificate.anchor_load->value);
    EXPECT_LE(theirs.certificate.anchor_bound->value, mine.least_load_us);
    if (mine.load_bound_us == mine.least_load_us && theirs.certificate.anchor_status == SolveStatus::optimal) {
      EXPECT_EQ(mine.least_load_us, theirs.certificate.anchor_load->value);
      ++equal;
    }
    decided_by_exchange += exchange_decides(problem, counted(problem, mine.model, mine.balanced));
  }
  EXPECT_GT(equal, 20);
  EXPECT_GT(decided_by_exchange, 2);
}

Instance planned_instance(std::uint64_t seed) {
  RandomEngine engine(seed);
  return exchanging_instance(engine, testing::any_small_shape(engine));
}

PlanOptions limited_options(const LoadModel& model) {
  PlanOptions options = testing::patient_options();
  options.work_limit = 0.1;
  options.load_model = model;
  return options;
}

TEST(OverlappedLoads, PlansOfEveryMethodPassTheChecker) {
  int placed = 0, certified = 0, with_duals = 0, cheaper = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Instance instance = planned_instance(seed);
    const LoadModel model = model_of(seed);
    for (const std::string& method : planner_names()) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", method " + method);
      try {
        const Plan plan = make_planner(method)->plan(instance.batch, instance.profile, limited_options(model));
        EXPECT_EQ(plan.load_model, model);
        for (const Finding& finding : check(plan, instance.batch, instance.profile)) {
          ADD_FAILURE() << name(finding.what) << ": " << finding.message;
        }
        if (!plan.has_placement()) continue;
        ++placed;
        certified += plan.certified;
        with_duals += plan.certificate.duals.has_value();
        EXPECT_EQ(score(plan.placement, instance.profile, model).makespan, plan.makespan);
        EXPECT_LE(plan.makespan, score(plan.placement, instance.profile).makespan);
        cheaper += plan.makespan < score(plan.placement, instance.profile).makespan;
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == Code::solver && !why_no_cp_sat().empty()) << error.what();
      }
    }
  }
  EXPECT_GT(placed, 150);
  EXPECT_GT(certified, 50);
  EXPECT_GT(with_duals, 40);
  EXPECT_GT(cheaper, 50);
}

/// All but the load model and what goes with it.
std::string without_model(Plan plan) {
  plan.load_model = {};
  plan.solve_time = {};
  return plan_json(plan);
}

TEST(OverlappedLoads, WithoutExchangeArePlannedAsAdditiveOnes) {
  int placed = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomEngine engine(seed);
    InstanceShape shape;
    shape.ranks = 1 + static_cast<int>(draw_below(engine, 8));
    shape.sequences = 2 + static_cast<int>(draw_below(engine, 12));
    shape.largest_degree = 8;
    shape.memory_over_mean = 1 + 2 * draw_unit(engine);
    const Instance instance = testing::random_instance(engine, shape);
    for (const std::string& method : planner_names()) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", method " + method);
      const auto planner = make_planner(method);
      const auto plan_by = [&](const LoadModel& model) {
        return planner->plan(instance.batch, instance.profile, limited_options(model));
      };
      try {
        const Plan additive = plan_by({});
        placed += additive.has_placement();
        EXPECT_EQ(without_model(plan_by(model_of(seed))), without_model(additive));
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == Code::solver && !why_no_cp_sat().empty()) << error.what();
      }
    }
  }
  EXPECT_GT(placed, 150);
}

TEST(OverlappedLoads, BaselinesKeepToTheirOwnPolicies) {
  int compared = 0;
  for (std::uint64_t seed = 200; seed < 230; ++seed) {
    const Instance instance = planned_instance(seed);
    for (const char* method : {"naive", "adaptiveload", "usp", "knapformer", "megatron", "disjoint"}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", method " + method);
      const auto planner = make_planner(method);
      const Plan additive = planner->plan(instance.batch, instance.profile, limited_options({}));
      const Plan other = planner->plan(instance.batch, instance.profile, limited_options(overlapped(800)));
      EXPECT_EQ(digest(other.placement), digest(additive.placement));
      compared += other.has_placement();
    }
  }
  EXPECT_GT(compared, 60);
}

TEST(OverlappedLoads, HiddenPartThatIsNoneIsRefused) {
  const Instance instance = planned_instance(1);
  for (const int hidden : {-1, 1001}) {
    for (const char* method : {"zellige", "naive"}) {
      try {
        make_planner(method)->plan(instance.batch, instance.profile, limited_options(overlapped(hidden)));
        ADD_FAILURE() << hidden << " thousandths are taken";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::input);
        EXPECT_NE(std::string(error.what()).find(std::to_string(hidden) + " thousandths"), std::string::npos);
      }
    }
  }
}

}  // namespace
}  // namespace zellige
