// SPDX-License-Identifier: Apache-2.0
#include "plan/own/own_solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "brute_force.h"
#include "instance.h"
#include "placement/anchor_certificate.h"
#include "plan/anchor.h"
#include "plan/own_anchor.h"

namespace zellige {
namespace {

using own::AnchorProblem;
using own::AnchorSolution;
using own::SolverStatus;
using testing::brute_force;
using testing::Instance;
using testing::InstanceShape;
using testing::random_instance;

/// No gap allowed, and more work than small instances need.
own::SolverLimits exact_limits() {
  own::SolverLimits limits;
  limits.gap = 0;
  limits.load_work = limits.split_work = 200'000'000;
  limits.exact_work = 0;
  return limits;
}

Problem whole_problem(const Instance& instance) {
  return make_problem(instance.batch, instance.profile, match_buckets(instance.batch, instance.profile),
                      std::vector<bool>(instance.profile.catalog.buckets.size(), true), Menu::all);
}

/// What a proof is verified against, read from the instance.
ProofInstance proof_instance(const Problem& problem) {
  ProofInstance result;
  result.ranks = problem.ranks;
  result.memory_cap_bytes = problem.memory_cap_bytes;
  for (const Group& group : problem.groups) {
    std::vector<ProofInstance::Option> options;
    for (const Option& option : group.options) {
      options.push_back({option.config, option.degree, option.time_us, option.memory_bytes});
    }
    result.groups.push_back({group.count(), needed_options(options, problem.memory_cap_bytes)});
  }
  return result;
}

/// The placement must be what it claims, and both bounds must be proved; proofs of more than an optimum are refused.
void expect_sound(const Problem& problem, const Profile& profile, const AnchorSolution& solution) {
  ASSERT_EQ(solution.status, SolverStatus::solved);
  const CountSolution counts = counted(problem, solution.model, solution.packing);
  decode(problem, counts);  // throws unless every sequence gets its degree of distinct ranks
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    EXPECT_EQ(std::accumulate(counts.z[g].begin(), counts.z[g].end(), std::int64_t{0}), problem.groups[g].count());
  }
  EXPECT_LE(largest_load(problem, counts), solution.load_limit_us);
  for (const std::int64_t bytes : rank_memory(problem, counts)) EXPECT_LE(bytes, problem.memory_cap_bytes);
  EXPECT_EQ(num_split(problem, counts), solution.split_count);
  const CountSolution balanced = counted(problem, solution.model, solution.balanced);
  decode(problem, balanced);
  EXPECT_EQ(largest_load(problem, balanced), solution.least_load_us);
  EXPECT_LE(solution.load_bound_us, solution.least_load_us);
  EXPECT_LE(solution.split_bound, solution.split_count);

  const ProofInstance instance = proof_instance(problem);
  const AnchorProof proof = anchor_proof(problem, solution, profile, Menu::all);
  std::int64_t work = 100'000'000;
  EXPECT_EQ(why_not_proved(instance, proof.load, solution.load_bound_us - 1, {}, work), "");
  EXPECT_NE(why_not_proved(instance, proof.load, solution.least_load_us, {}, work), "");
  if (solution.split_bound > 0) {
    EXPECT_EQ(why_not_proved(instance, proof.split, solution.load_limit_us, solution.split_bound - 1, work), "");
    EXPECT_NE(why_not_proved(instance, proof.split, solution.load_limit_us, solution.split_count, work), "");
  }
  EXPECT_GT(work, 0);
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

TEST(OwnSolver, AgreesWithBruteForceAndProvesIt) {
  int solved = 0, impossible = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const Instance instance = random_instance(engine, small_shape(engine));
    const Problem problem = whole_problem(instance);
    const std::vector<bool> all(instance.batch.sequences.size(), true);
    const auto optimum = brute_force(instance.batch, instance.profile, all, Menu::all, testing::a_thousandth_more);
    const AnchorSolution solution = solve_anchors(own_problem(problem), exact_limits());
    if (!optimum) {
      EXPECT_NE(solution.status, SolverStatus::solved);
      ++impossible;
      continue;
    }
    expect_sound(problem, instance.profile, solution);
    EXPECT_LE(solution.load_bound_us, optimum->load_us);
    EXPECT_EQ(solution.least_load_us, optimum->load_us);
    EXPECT_EQ(solution.load_bound_us, optimum->load_us);
    EXPECT_EQ(solution.load_limit_us, optimum->limit_us);
    EXPECT_EQ(solution.split_count, optimum->splits);
    EXPECT_EQ(solution.split_bound, optimum->splits);
    ++solved;
    if (HasFailure()) break;
  }
  EXPECT_GT(solved, 200);
  EXPECT_GT(impossible, 10);
}

TEST(OwnSolver, AgreesWithCpSatOnLargerInstances) {
  std::string why_not;
  const auto solver = cp::Solver::find("", why_not);
  if (!solver) GTEST_SKIP() << why_not;
  int compared = 0, proved = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const Instance instance = random_instance(engine, testing::middle_shape(engine, 1.2));
    const Problem problem = reduced(whole_problem(instance));
    if (!why_never_fits(problem, instance.batch, instance.profile).empty()) continue;
    PlanOptions options = testing::patient_options();
    options.work_limit = 0.05;
    const AnchorResult reference = place_anchors(problem, solver.get(), {}, options, Deadline(60, {}));
    own::SolverLimits limits;
    limits.gap = 0;
    const AnchorSolution solution = solve_anchors(own_problem(problem), limits);
    if (reference.status == AnchorResult::Status::infeasible) {
      EXPECT_NE(solution.status, SolverStatus::solved);
      continue;
    }
    if (reference.status != AnchorResult::Status::solved) continue;
    ++compared;
    if (solution.status != SolverStatus::solved) {
      EXPECT_EQ(solution.status, SolverStatus::unknown);  // never a proof against a placement that exists
      continue;
    }
    expect_sound(problem, instance.profile, solution);
    const Certificate& certificate = reference.certificate;
    EXPECT_LE(solution.load_bound_us, certificate.anchor_load->value);
    EXPECT_LE(certificate.anchor_bound->value, solution.least_load_us);
    if (solution.load_bound_us == solution.least_load_us) ++proved;
    if (certificate.anchor_status == SolveStatus::optimal && solution.load_bound_us == solution.least_load_us) {
      EXPECT_EQ(solution.least_load_us, certificate.anchor_load->value);
      if (certificate.split_status == SolveStatus::optimal) {
        EXPECT_LE(solution.split_bound, *certificate.split_count);
        EXPECT_GE(solution.split_count, *certificate.split_count);
      }
    }
    if (HasFailure()) break;
  }
  EXPECT_GE(compared, 120);
  EXPECT_GE(proved * 10, compared * 8);
}

TEST(OwnSolver, IsDeterministic) {
  RandomEngine engine(7);
  InstanceShape shape;
  shape.ranks = 8;
  shape.sequences = 9;
  shape.largest_degree = 8;
  const Problem problem = whole_problem(random_instance(engine, shape));
  const AnchorSolution first = solve_anchors(own_problem(problem), {});
  const AnchorSolution second = solve_anchors(own_problem(problem), {});
  ASSERT_EQ(first.status, SolverStatus::solved);
  EXPECT_EQ(counted(problem, first.model, first.packing).x, counted(problem, second.model, second.packing).x);
  EXPECT_EQ(first.load_work, second.load_work);
}

AnchorProblem equal_sequences(int ranks, std::int64_t count, std::vector<own::OptionCost> options) {
  return {ranks, 100, {{count, std::move(options)}}};
}

TEST(OwnSolver, TakesNothing) {
  const AnchorSolution solution = solve_anchors({4, 100, {}}, exact_limits());
  EXPECT_EQ(solution.status, SolverStatus::solved);
  EXPECT_EQ(solution.least_load_us, 0);
  EXPECT_EQ(solution.split_count, 0);
  EXPECT_EQ(solution.packing.patterns.size(), 4u);
}

TEST(OwnSolver, TakesOneRank) {
  const AnchorSolution solution = solve_anchors(equal_sequences(1, 5, {{1, 7, 10}}), exact_limits());
  EXPECT_EQ(solution.least_load_us, 35);
  EXPECT_EQ(solution.load_bound_us, 35);
  EXPECT_EQ(solution.split_bound, 0);
}

TEST(OwnSolver, SplitsOneGiant) {
  const AnchorSolution solution =
      solve_anchors(equal_sequences(8, 1, {{1, 800, 10}, {2, 410, 6}, {4, 210, 4}, {8, 110, 3}}), exact_limits());
  EXPECT_EQ(solution.least_load_us, 110);
  EXPECT_EQ(solution.load_bound_us, 110);
  EXPECT_EQ(solution.split_count, 1);
  EXPECT_EQ(solution.split_bound, 1);
}

TEST(OwnSolver, LeavesEqualSequencesWhole) {
  const AnchorSolution solution =
      solve_anchors(equal_sequences(16, 4096, {{1, 1000, 0}, {2, 520, 0}, {16, 70, 0}}), {});
  EXPECT_EQ(solution.least_load_us, 256'000);
  EXPECT_EQ(solution.load_bound_us, 256'000);
  EXPECT_EQ(solution.split_count, 0);
}

TEST(OwnSolver, UsesDegreesThatAreNoPowersOfTwo) {
  // 12 ranks: three at degree 3 and one over the other three would leave loads of 100; degree 6 and 12 cost more.
  const AnchorSolution solution =
      solve_anchors(equal_sequences(12, 4, {{1, 290, 50}, {3, 100, 20}, {6, 55, 10}, {12, 30, 5}}), exact_limits());
  EXPECT_EQ(solution.least_load_us, 100);
  EXPECT_EQ(solution.load_bound_us, 100);
}

TEST(OwnSolver, ProvesThatMemoryIsTooSmall) {
  EXPECT_EQ(solve_anchors(equal_sequences(2, 1, {{1, 5, 101}}), exact_limits()).status, SolverStatus::infeasible);
  // Five pieces of 40 into two ranks of 100.
  EXPECT_EQ(solve_anchors(equal_sequences(2, 5, {{1, 5, 40}}), exact_limits()).status, SolverStatus::infeasible);
  EXPECT_EQ(solve_anchors(equal_sequences(2, 4, {{1, 5, 40}}), exact_limits()).status, SolverStatus::solved);
}

TEST(OwnSolver, TradesTimeForMemoryWhereItMust) {
  // Two configurations of degree 2: the quick one does not fit twice.
  const AnchorSolution solution = solve_anchors(equal_sequences(2, 2, {{2, 10, 60}, {2, 13, 40}}), exact_limits());
  EXPECT_EQ(solution.least_load_us, 23);
  EXPECT_EQ(solution.load_bound_us, 23);
}

TEST(OwnSolver, StopsWhenAsked) {
  RandomEngine engine(11);
  InstanceShape shape;
  shape.ranks = 12;
  shape.sequences = 20;
  shape.buckets = 6;
  shape.largest_degree = 12;
  const Problem problem = whole_problem(random_instance(engine, shape));
  own::SolverLimits limits;
  limits.is_over = [] { return true; };
  const AnchorSolution solution = solve_anchors(own_problem(problem), limits);
  ASSERT_EQ(solution.status, SolverStatus::solved);
  EXPECT_GT(solution.load_bound_us, 0);
  EXPECT_LE(solution.load_bound_us, solution.least_load_us);
}

}  // namespace
}  // namespace zellige
