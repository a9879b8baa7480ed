// SPDX-License-Identifier: Apache-2.0
#include "plan/cp_sat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/random.h"
#include "zellige/error.h"
#include "zellige/planner.h"

namespace zellige::cp {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Solver> solver() {
  std::string why_not;
  return Solver::find("", why_not);
}

#define REQUIRE_SOLVER() \
  if (!why_no_cp_sat().empty()) GTEST_SKIP() << why_no_cp_sat()

TEST(CpSat, SwitchedOffIsNotThere) {
  std::string why_not;
  EXPECT_EQ(Solver::find("none", why_not), nullptr);
  EXPECT_THAT(why_not, HasSubstr("switched off"));
  EXPECT_THAT(why_no_cp_sat("none"), HasSubstr("switched off"));
}

TEST(CpSat, AMissingOrWrongLibraryIsNamed) {
  std::string why_not;
  EXPECT_EQ(Solver::find("/nowhere/libortools.so.9", why_not), nullptr);
  EXPECT_THAT(why_not, HasSubstr("/nowhere/libortools.so.9"));
  EXPECT_EQ(Solver::find("libm.so.6", why_not), nullptr);
  EXPECT_THAT(why_not, HasSubstr("lacks CP-SAT's C interface"));
}

TEST(CpSat, IsLoadedOnce) {
  REQUIRE_SOLVER();
  EXPECT_EQ(solver(), solver());
  std::string why_not;
  EXPECT_NE(Solver::find(solver()->path(), why_not), nullptr) << why_not;
}

/// max 3a + 2b (as a minimum) with a + b <= 4, a + 3b <= 6, a <= 3: a = 3, b = 1.
Model small_program() {
  Model model;
  const Variable a = model.add_variable(0, 3);
  const Variable b = model.add_variable(0, 10);
  const Term sum[] = {{a, 1}, {b, 1}};
  const Term skewed[] = {{a, 1}, {b, 3}};
  const Term objective[] = {{a, -3}, {b, -2}};
  model.add_linear(sum, kNoLowerLimit, 4);
  model.add_linear(skewed, kNoLowerLimit, 6);
  model.minimize(objective);
  return model;
}

TEST(CpSat, SolvesToOptimality) {
  REQUIRE_SOLVER();
  const Response response = solver()->solve(small_program(), {});
  EXPECT_EQ(response.outcome, Outcome::optimal);
  EXPECT_EQ(response.solution, (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(response.objective, -11);
  EXPECT_EQ(response.bound, -11);
}

TEST(CpSat, ProvesInfeasibility) {
  REQUIRE_SOLVER();
  Model model;
  const Variable a = model.add_variable(0, 5);
  const Term twice[] = {{a, 2}};
  model.add_linear(twice, 3, 3);
  const Response response = solver()->solve(model, {});
  EXPECT_EQ(response.outcome, Outcome::infeasible);
  EXPECT_TRUE(response.solution.empty());
}

TEST(CpSat, CallsAModelInvalidThatIs) {
  REQUIRE_SOLVER();
  Model model;
  model.add_variable(5, 3);
  try {
    solver()->solve(model, {});
    FAIL() << "an empty domain was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::solver);
    EXPECT_THAT(error.what(), HasSubstr("invalid"));
  }
}

/// Balance random numbers on eight ranks: far too hard to prove in the time of a test.
Model hard_program(std::uint64_t seed) {
  RandomEngine engine(seed);
  Model model;
  constexpr int kRanks = 8, kItems = 60;
  const Variable largest = model.add_variable(0, std::int64_t{1} << 40);
  std::vector<std::vector<Term>> loads(kRanks, {{largest, -1}});
  for (int i = 0; i < kItems; ++i) {
    std::vector<Term> choice;
    const auto size = static_cast<std::int64_t>(1'000'000 + draw_below(engine, 9'000'000));
    for (int r = 0; r < kRanks; ++r) {
      const Variable here = model.add_variable(0, 1);
      choice.push_back({here, 1});
      loads[r].push_back({here, size});
    }
    model.add_linear(choice, 1, 1);
  }
  for (const auto& load : loads) model.add_linear(load, kNoLowerLimit, 0);
  const Term objective[] = {{largest, 1}};
  model.minimize(objective);
  return model;
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(CpSat, StopsAtItsWallLimitWithWhatItHas) {
  REQUIRE_SOLVER();
  Parameters parameters;
  parameters.wall_limit_s = 0.5;
  Response response;
  const double spent = seconds_of([&] { response = solver()->solve(hard_program(1), parameters); });
  EXPECT_EQ(response.outcome, Outcome::feasible);
  EXPECT_LE(static_cast<double>(response.bound), response.objective);
  EXPECT_LT(spent, 20);
}

TEST(CpSat, IsCancelledThroughAStopToken) {
  REQUIRE_SOLVER();
  Parameters parameters;
  parameters.wall_limit_s = 300;
  std::stop_source source;
  Response response;
  const double spent = seconds_of([&] {
    std::jthread canceller([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      source.request_stop();
    });
    response = solver()->solve(hard_program(2), parameters, source.get_token());
  });
  EXPECT_NE(response.outcome, Outcome::optimal);
  EXPECT_LT(spent, 60);
  // A token that is stopped already.
  const double at_once =
      seconds_of([&] { response = solver()->solve(hard_program(3), parameters, source.get_token()); });
  EXPECT_NE(response.outcome, Outcome::optimal);
  EXPECT_LT(at_once, 60);
}

TEST(CpSat, ADeterministicLimitGivesTheSameAnswerAgain) {
  REQUIRE_SOLVER();
  Parameters parameters;
  parameters.work_limit = 0.2;
  parameters.seed = 5;
  const Response first = solver()->solve(hard_program(4), parameters);
  const Response second = solver()->solve(hard_program(4), parameters);
  EXPECT_EQ(first.outcome, Outcome::feasible);
  EXPECT_EQ(first.solution, second.solution);
  EXPECT_EQ(first.bound, second.bound);
}

TEST(CpSat, TakesAHint) {
  REQUIRE_SOLVER();
  Model model = hard_program(6);
  Parameters parameters;
  parameters.work_limit = 0.5;
  const Response found = solver()->solve(model, parameters);
  ASSERT_TRUE(found.has_solution());
  for (std::size_t v = 0; v < found.solution.size(); ++v) model.hint(static_cast<Variable>(v), found.solution[v]);
  parameters.work_limit = 0.05;
  const Response again = solver()->solve(model, parameters);
  ASSERT_TRUE(again.has_solution());
  EXPECT_LE(again.objective, found.objective);
}

TEST(CpSat, SolvesInSeveralThreadsAtOnce) {
  REQUIRE_SOLVER();
  std::vector<Response> responses(3);
  {
    std::vector<std::jthread> threads;
    for (Response& response : responses) {
      threads.emplace_back([&response] { response = solver()->solve(small_program(), {}); });
    }
  }
  for (const Response& response : responses) EXPECT_EQ(response.objective, -11);
}

}  // namespace
}  // namespace zellige::cp
