// SPDX-License-Identifier: Apache-2.0
#include "plan/anchor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "brute_force.h"
#include "instance.h"
#include "zellige/error.h"

namespace zellige {
namespace {

using testing::brute_force;
using ::testing::HasSubstr;
using testing::Instance;
using testing::InstanceShape;
using testing::patient_options;
using testing::random_instance;

#define REQUIRE_SOLVER() \
  if (!why_no_cp_sat().empty()) GTEST_SKIP() << why_no_cp_sat()

std::shared_ptr<const cp::Solver> solver() {
  std::string why_not;
  return cp::Solver::find("", why_not);
}

Problem whole_problem(const Instance& instance, Menu menu = Menu::all) {
  return make_problem(instance.batch, instance.profile, match_buckets(instance.batch, instance.profile),
                      std::vector<bool>(instance.profile.catalog.buckets.size(), true), menu);
}

AnchorResult solve(const Problem& problem, Form form, bool order_ranks = false, double epsilon = 1e-3) {
  AnchorSettings settings;
  settings.form = form;
  settings.order_ranks = order_ranks;
  settings.fall_back = false;
  PlanOptions options = patient_options();
  options.epsilon = epsilon;
  return place_anchors(problem, solver().get(), settings, options, Deadline(options.time_limit_s, {}));
}

std::string shown(Form form) {
  return form == Form::rank_counts ? "rank_counts" : form == Form::rank_sets ? "rank_sets" : "sequences";
}

/// Every form, with and without the reductions and the order of ranks, against the oracle.
void expect_optimum(const Instance& instance) {
  const std::vector<bool> all(instance.batch.sequences.size(), true);
  const auto optimum = brute_force(instance.batch, instance.profile, all, Menu::all, testing::a_thousandth_more);
  const Problem unreduced = whole_problem(instance);
  if (!why_never_fits(unreduced, instance.batch, instance.profile).empty()) {
    EXPECT_FALSE(optimum);
    return;
  }
  for (const bool is_reduced : {true, false}) {
    for (const Form form : {Form::rank_counts, Form::rank_sets, Form::sequences}) {
      for (const bool order_ranks : {false, true}) {
        SCOPED_TRACE(shown(form) + (is_reduced ? ", reduced" : "") + (order_ranks ? ", ranks ordered" : ""));
        const Problem problem = is_reduced ? reduced(unreduced) : unreduced;
        const AnchorResult result = solve(problem, form, order_ranks);
        if (!optimum) {
          EXPECT_EQ(result.status, AnchorResult::Status::infeasible);
          EXPECT_EQ(result.certificate.anchor_status, SolveStatus::infeasible);
          EXPECT_FALSE(result.reason.empty());
          continue;
        }
        ASSERT_EQ(result.status, AnchorResult::Status::solved) << result.reason;
        EXPECT_TRUE(result.is_certified());
        EXPECT_FALSE(result.is_greedy);
        EXPECT_EQ(result.certificate.anchor_load, Microseconds{optimum->load_us});
        EXPECT_EQ(result.certificate.anchor_bound, Microseconds{optimum->load_us});
        EXPECT_EQ(result.certificate.split_count, optimum->splits);
        EXPECT_EQ(result.certificate.split_bound, optimum->splits);
        // The solution is what the certificate says.
        EXPECT_LE(largest_load(problem, result.solution), optimum->limit_us);
        EXPECT_EQ(num_split(problem, result.solution), optimum->splits);
        for (const std::int64_t memory : rank_memory(problem, result.solution)) {
          EXPECT_LE(memory, problem.memory_cap_bytes);
        }
        EXPECT_NO_THROW(decode(problem, result.solution));
      }
    }
  }
}

TEST(AnchorPlacement, EqualsBruteForceWithTheFullMenu) {
  REQUIRE_SOLVER();
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    InstanceShape shape;
    shape.ranks = 1 + static_cast<int>(draw_below(engine, 4));
    shape.buckets = 2;
    shape.sequences = 1 + static_cast<int>(draw_below(engine, 3));
    shape.configurations_a_degree = 6;
    shape.longest_whole_us = draw_below(engine, 2) ? 30 : 100'000;
    shape.memory_over_mean = 0.9 + 1.5 * draw_unit(engine);
    expect_optimum(random_instance(engine, shape));
  }
}

TEST(AnchorPlacement, EqualsBruteForceWithSixSequences) {
  REQUIRE_SOLVER();
  for (std::uint64_t seed = 100; seed < 112; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    InstanceShape shape;
    shape.ranks = 2 + static_cast<int>(draw_below(engine, 3));
    shape.sequences = shape.ranks == 4 ? 5 : 6;
    shape.largest_degree = shape.ranks;
    shape.configurations_a_degree = 1;
    shape.memory_over_mean = 0.9 + 0.6 * draw_unit(engine);
    expect_optimum(random_instance(engine, shape));
  }
}

TEST(AnchorPlacement, PutsNoTwoShardsOfASequenceOnARank) {
  REQUIRE_SOLVER();
  // Were a rank allowed two shards of one sequence, loads of 4 us would do.
  Problem problem{4, 29, {}};
  problem.groups.push_back({0, {0}, {{{1, 3, 1}, 3, 3, 27}, {{1, 4, 1}, 4, 3, 18}}});
  problem.groups.push_back({1, {1, 2}, {{{1, 1, 1}, 1, 5, 8}, {{1, 2, 1}, 2, 2, 4}, {{1, 3, 1}, 3, 1, 2}}});
  for (const Form form : {Form::rank_counts, Form::rank_sets, Form::sequences}) {
    const AnchorResult result = solve(problem, form);
    EXPECT_EQ(result.certificate.anchor_load, Microseconds{5}) << shown(form);
    EXPECT_EQ(result.certificate.split_count, 2) << shown(form);
  }
}

/// Many tiny ones with cheap shards: about one in 250 has a better optimum if a rank may hold a sequence twice.
TEST(AnchorPlacement, EqualsBruteForceOnManySmallInstances) {
  REQUIRE_SOLVER();
  int infeasible = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    InstanceShape shape;
    shape.ranks = 3 + static_cast<int>(draw_below(engine, 2));
    shape.buckets = 1 + static_cast<int>(draw_below(engine, 2));
    shape.sequences = 2 + static_cast<int>(draw_below(engine, 3));
    shape.largest_degree = shape.ranks;
    shape.configurations_a_degree = 1;
    shape.longest_whole_us = 12;
    shape.memory_over_mean = 0.8 + draw_unit(engine);
    const Instance instance = random_instance(engine, shape);
    const std::vector<bool> all(instance.batch.sequences.size(), true);
    const auto optimum = brute_force(instance.batch, instance.profile, all, Menu::all, testing::a_thousandth_more);
    const Problem problem = reduced(whole_problem(instance));
    if (!why_never_fits(whole_problem(instance), instance.batch, instance.profile).empty()) continue;
    const AnchorResult result = solve(problem, Form::rank_counts);
    ASSERT_EQ(result.status == AnchorResult::Status::infeasible, !optimum);
    infeasible += !optimum;
    if (!optimum) continue;
    EXPECT_TRUE(result.is_certified());
    EXPECT_EQ(result.certificate.anchor_load, Microseconds{optimum->load_us});
    EXPECT_EQ(result.certificate.split_count, optimum->splits);
    EXPECT_NO_THROW(decode(problem, result.solution));
  }
  EXPECT_GT(infeasible, 20);
}

/// Beyond what can be enumerated the forms can still be held against each other.
TEST(AnchorPlacement, FormsAgreeOnLargerInstances) {
  REQUIRE_SOLVER();
  int compared = 0;
  for (std::uint64_t seed = 300; seed < 312; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    InstanceShape shape;
    shape.ranks = 6 + static_cast<int>(draw_below(engine, 3));
    shape.buckets = 2;
    shape.sequences = 5;
    shape.configurations_a_degree = 2;
    shape.longest_whole_us = 200;
    shape.memory_over_mean = 1.1 + draw_unit(engine);
    const Instance instance = random_instance(engine, shape);
    const Problem problem = reduced(whole_problem(instance, Menu::powers_of_two));
    PlanOptions options = patient_options();
    options.work_limit = 1;
    std::optional<Certificate> first;
    for (const Form form : {Form::rank_counts, Form::rank_sets, Form::sequences}) {
      AnchorSettings settings;
      settings.form = form;
      const AnchorResult result =
          place_anchors(problem, solver().get(), settings, options, Deadline(options.time_limit_s, {}));
      if (!result.is_certified()) continue;
      compared += first.has_value();
      if (!first) first = result.certificate;
      EXPECT_EQ(result.certificate, *first) << shown(form);
    }
  }
  EXPECT_GT(compared, 12);
}

TEST(AnchorPlacement, EpsilonWidensTheSecondRound) {
  REQUIRE_SOLVER();
  int fewer = 0;
  for (std::uint64_t seed = 200; seed < 220; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    InstanceShape shape;
    shape.sequences = 4;
    shape.configurations_a_degree = 1;
    shape.memory_over_mean = 4;
    const Instance instance = random_instance(engine, shape);
    const std::vector<bool> all(instance.batch.sequences.size(), true);
    std::optional<int> previous;
    for (const auto& [epsilon, percent] : {std::pair(0.0, 100), std::pair(0.1, 110), std::pair(0.5, 150)}) {
      const auto optimum = brute_force(instance.batch, instance.profile, all, Menu::all,
                                       [percent](std::int64_t load) { return load * percent / 100; });
      ASSERT_TRUE(optimum);
      const AnchorResult result = solve(reduced(whole_problem(instance)), Form::rank_counts, false, epsilon);
      EXPECT_EQ(result.certificate.split_count, optimum->splits);
      if (previous) fewer += optimum->splits < *previous;
      previous = optimum->splits;
    }
  }
  EXPECT_GT(fewer, 3);
}

// ---- ECF exactness: the same set of (loads, memory, K) as the placements of single sequences.

using Vectors = std::set<testing::Outcome>;

Vectors outcomes_of_sequences(const Instance& instance) {
  Vectors outcomes;
  testing::for_each_placement(instance.batch, instance.profile,
                              std::vector<bool>(instance.batch.sequences.size(), true), Menu::all,
                              [&](const testing::Outcome& outcome) { outcomes.insert(outcome); });
  return outcomes;
}

/// All x with 0 <= x <= z, sum_r x = degree * z, sum_j z = n: no rank set in sight.
Vectors outcomes_of_counts(const Problem& problem) {
  Vectors outcomes;
  CountSolution solution(problem);
  const std::function<void(std::size_t)> visit_group = [&](std::size_t g) {
    if (g == problem.groups.size()) {
      const auto memory = rank_memory(problem, solution);
      for (const std::int64_t bytes : memory) {
        if (bytes > problem.memory_cap_bytes) return;
      }
      outcomes.insert({rank_loads(problem, solution), memory, static_cast<int>(num_split(problem, solution))});
      return;
    }
    const std::function<void(std::size_t, std::int64_t)> visit_option = [&](std::size_t j, std::int64_t members) {
      if (j == problem.groups[g].options.size()) {
        if (members == 0) visit_group(g + 1);
        return;
      }
      for (std::int64_t z = 0; z <= members; ++z) {
        solution.z[g][j] = z;
        auto& x = solution.x[g][j];
        const std::function<void(int, std::int64_t)> visit_rank = [&](int rank, std::int64_t slots) {
          if (rank == problem.ranks) {
            if (slots == 0) visit_option(j + 1, members - z);
            return;
          }
          for (std::int64_t here = 0; here <= std::min(z, slots); ++here) {
            x[rank] = here;
            visit_rank(rank + 1, slots - here);
          }
          x[rank] = 0;
        };
        visit_rank(0, z * problem.groups[g].options[j].degree);
      }
      solution.z[g][j] = 0;
    };
    visit_option(0, problem.groups[g].count());
  };
  visit_group(0);
  return outcomes;
}

TEST(ExactCompactFormulation, HasTheOutcomesOfSingleSequences) {
  std::size_t largest = 0;
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    InstanceShape shape;
    shape.ranks = 2 + static_cast<int>(draw_below(engine, 2));
    shape.buckets = 2;
    shape.sequences = 3;
    shape.largest_degree = shape.ranks;
    shape.configurations_a_degree = 2;
    shape.memory_over_mean = 0.9 + draw_unit(engine);
    const Instance instance = random_instance(engine, shape);
    const Vectors expected = outcomes_of_sequences(instance);
    EXPECT_EQ(outcomes_of_counts(whole_problem(instance)), expected);
    largest = std::max(largest, expected.size());
  }
  EXPECT_GT(largest, 100u);
}

// ---- How a round ends

TEST(AnchorPlacement, OfNoAnchorsIsTrivial) {
  const AnchorResult result = place_anchors(Problem{4, 100, {}}, nullptr, {}, {}, Deadline(1, {}));
  EXPECT_EQ(result.status, AnchorResult::Status::solved);
  EXPECT_TRUE(result.is_certified());
  EXPECT_EQ(result.certificate.anchor_load, Microseconds{0});
  EXPECT_EQ(result.certificate.split_count, 0);
}

TEST(AnchorPlacement, RefusesFormsThatWouldListTooManyRankSets) {
  REQUIRE_SOLVER();
  Problem problem{32, 1000, {{0, {0, 1}, {{{1, 1, 1}, 1, 160, 1}, {{1, 1, 16}, 16, 11, 1}}}}};
  for (const Form form : {Form::rank_sets, Form::sequences}) {
    const AnchorResult result = solve(problem, form);
    EXPECT_EQ(result.status, AnchorResult::Status::too_large);
    EXPECT_EQ(result.plan_status(), PlanStatus::unknown);
    EXPECT_THAT(result.reason, HasSubstr(form == Form::rank_sets ? "601080422 variables" : "1202160844 variables"));
  }
  EXPECT_EQ(solve(problem, Form::rank_counts).certificate.anchor_load, Microseconds{11});
}

/// Many unlike anchors on eight ranks: the first round cannot be proved in a moment.
Problem hard_problem() {
  Problem problem{8, std::int64_t{1} << 40, {}};
  for (int g = 0; g < 9; ++g) {
    const std::int64_t whole = 10'000'000 + 1'234'567 * g * g;
    Group group{g, {}, {{{1, 1, 1}, 1, whole, 5}}};
    for (const int degree : {2, 4, 8}) {
      group.options.push_back({{1, degree, 1}, degree, whole * (100 + 3 * degree + g) / (100 * degree), 3});
    }
    for (int m = 0; m < 3; ++m) group.members.push_back(3 * g + m);
    problem.groups.push_back(group);
  }
  return problem;
}

TEST(AnchorPlacement, AtTheLimitReturnsTheIncumbentAndAHonestBound) {
  REQUIRE_SOLVER();
  const Problem problem = hard_problem();
  PlanOptions options;
  options.work_limit = 0.01;
  const AnchorResult result = place_anchors(problem, solver().get(), {}, options, Deadline(options.time_limit_s, {}));
  ASSERT_EQ(result.status, AnchorResult::Status::solved);
  EXPECT_FALSE(result.is_certified());
  EXPECT_EQ(result.certificate.anchor_status, SolveStatus::feasible);
  EXPECT_LT(result.certificate.anchor_bound->value, result.certificate.anchor_load->value);
  EXPECT_LE(*result.certificate.split_bound, *result.certificate.split_count);
  EXPECT_EQ(num_split(problem, result.solution), *result.certificate.split_count);
  // The same work gives the same placement.
  const AnchorResult again = place_anchors(problem, solver().get(), {}, options, Deadline(options.time_limit_s, {}));
  EXPECT_EQ(again.solution.x, result.solution.x);
  EXPECT_EQ(again.certificate, result.certificate);
}

TEST(AnchorPlacement, BoundsAtALimitHoldForWhatMoreWorkFinds) {
  REQUIRE_SOLVER();
  const Problem problem = hard_problem();
  PlanOptions options;
  options.epsilon = 0.02;
  const auto certificate_at = [&](double work_limit) {
    options.work_limit = work_limit;
    return place_anchors(problem, solver().get(), {}, options, Deadline(300, {})).certificate;
  };
  const Certificate little = certificate_at(0.01);
  const Certificate more = certificate_at(0.5);
  EXPECT_LT(*more.split_count, *little.split_count);  // else there is nothing to see
  EXPECT_LE(*little.split_bound, *more.split_count);
  EXPECT_LE(*little.anchor_bound, *more.anchor_load);
}

TEST(AnchorPlacement, CancelledBeforeItBeganIsATimeout) {
  REQUIRE_SOLVER();
  std::stop_source source;
  source.request_stop();
  for (const cp::Solver* each : {solver().get(), static_cast<const cp::Solver*>(nullptr)}) {
    const AnchorResult result = place_anchors(hard_problem(), each, {}, {}, Deadline(60, source.get_token()));
    EXPECT_EQ(result.status, AnchorResult::Status::timeout);
    EXPECT_EQ(result.plan_status(), PlanStatus::timeout);
    EXPECT_THAT(result.reason, HasSubstr("cancelled"));
  }
}

}  // namespace
}  // namespace zellige
