// SPDX-License-Identifier: Apache-2.0
#include "plan/count_solution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "base/random.h"
#include "zellige/error.h"

namespace zellige {
namespace {

using ::testing::ElementsAre;

Problem one_group(int ranks, int members, std::vector<int> degrees) {
  Problem problem{ranks, 1'000'000, {{0, {}, {}}}};
  for (int i = 0; i < members; ++i) problem.groups[0].members.push_back(i);
  for (const int degree : degrees) problem.groups[0].options.push_back({{1, 1, degree}, degree, 100 / degree, 10});
  return problem;
}

/// What decoding must keep: every member once, `degree` distinct ascending ranks each, the same counts a rank.
void expect_decodes(const Problem& problem, const CountSolution& solution) {
  const auto placed = decode(problem, solution);
  ASSERT_EQ(placed.size(), problem.groups.size());
  CountSolution counted(problem);
  for (std::size_t g = 0; g < placed.size(); ++g) {
    ASSERT_EQ(placed[g].size(), problem.groups[g].members.size());
    for (std::size_t m = 0; m < placed[g].size(); ++m) {
      const auto& [option, ranks] = placed[g][m];
      EXPECT_GE(option, placed[g][m == 0 ? 0 : m - 1].option);
      ASSERT_EQ(ranks.size(), static_cast<std::size_t>(problem.groups[g].options[option].degree));
      EXPECT_TRUE(std::is_sorted(ranks.begin(), ranks.end()));
      EXPECT_EQ(std::adjacent_find(ranks.begin(), ranks.end()), ranks.end());
      ++counted.z[g][option];
      for (const Rank r : ranks) ++counted.x[g][option].at(r);
    }
  }
  EXPECT_EQ(counted.z, solution.z);
  EXPECT_EQ(counted.x, solution.x);
}

/// All counts on ranks with 0 <= x <= z and the sum degree * z.
void for_each_count(int ranks, int z, int degree, const std::function<void(const std::vector<std::int64_t>&)>& visit) {
  std::vector<std::int64_t> counts(ranks);
  const std::function<void(int, int)> fill = [&](int rank, int left) {
    if (rank == ranks) {
      if (left == 0) visit(counts);
      return;
    }
    for (int here = 0; here <= std::min(z, left); ++here) {
      counts[rank] = here;
      fill(rank + 1, left - here);
    }
  };
  fill(0, degree * z);
}

TEST(Decode, WorksForEveryCountOfSmallCases) {
  int cases = 0;
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (int degree = 1; degree <= ranks; ++degree) {
      for (int z = 0; z <= (ranks == 5 ? 3 : 4); ++z) {
        const Problem problem = one_group(ranks, z, {degree});
        for_each_count(ranks, z, degree, [&](const std::vector<std::int64_t>& counts) {
          CountSolution solution(problem);
          solution.z[0][0] = z;
          solution.x[0][0] = counts;
          expect_decodes(problem, solution);
          ++cases;
        });
      }
    }
  }
  EXPECT_GT(cases, 800);
}

std::vector<std::vector<Rank>> sets_of(int ranks, int z, int degree, std::vector<std::int64_t> counts) {
  const Problem problem = one_group(ranks, z, {degree});
  CountSolution solution(problem);
  solution.z[0][0] = z;
  solution.x[0][0] = std::move(counts);
  std::vector<std::vector<Rank>> sets;
  const auto placed = decode(problem, solution);
  for (const MemberPlacement& member : placed[0]) sets.push_back(member.ranks);
  return sets;
}

TEST(Decode, PrefersAlignedRunsOfRanks) {
  EXPECT_THAT(sets_of(8, 2, 4, {1, 1, 1, 1, 1, 1, 1, 1}),
              ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
  EXPECT_THAT(sets_of(6, 3, 2, {1, 1, 1, 1, 1, 1}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5)));
  EXPECT_THAT(sets_of(4, 1, 2, {0, 1, 1, 0}), ElementsAre(ElementsAre(1, 2)));
}

TEST(Decode, WrapsAroundWhereNoRunFits) {
  EXPECT_THAT(sets_of(4, 1, 2, {1, 0, 1, 0}), ElementsAre(ElementsAre(0, 2)));
  EXPECT_THAT(sets_of(3, 2, 2, {1, 2, 1}), ElementsAre(ElementsAre(0, 1), ElementsAre(1, 2)));
  // Rank 0 and 3 are in both sets.
  EXPECT_THAT(sets_of(4, 2, 3, {2, 1, 1, 2}), ElementsAre(ElementsAre(0, 1, 3), ElementsAre(0, 2, 3)));
}

TEST(Decode, RefusesCountsThatAreNoPlacement) {
  EXPECT_THROW(sets_of(3, 1, 2, {2, 0, 0}), Error);   // a rank twice
  EXPECT_THROW(sets_of(3, 1, 2, {1, 0, 0}), Error);   // a slot short
  EXPECT_THROW(sets_of(3, 1, 1, {-1, 1, 1}), Error);  // no count
  const Problem problem = one_group(2, 2, {1});
  CountSolution half(problem);
  half.z[0][0] = 1;
  half.x[0][0] = {1, 0};
  EXPECT_THROW(decode(problem, half), Error);
}

/// A random valid solution: list the members, give each an option and ranks, count.
CountSolution random_solution(const Problem& problem, RandomEngine& engine) {
  CountSolution solution(problem);
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    for (std::size_t m = 0; m < problem.groups[g].members.size(); ++m) {
      const std::size_t j = draw_below(engine, problem.groups[g].options.size());
      std::vector<Rank> ranks(problem.ranks);
      std::iota(ranks.begin(), ranks.end(), 0);
      shuffle(ranks, engine);
      ++solution.z[g][j];
      for (int i = 0; i < problem.groups[g].options[j].degree; ++i) ++solution.x[g][j][ranks[i]];
    }
  }
  return solution;
}

TEST(Canonical, IsTheSameForAnyNamesOfRanksAndKeepsWhatTheyHold) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    Problem problem = one_group(2 + static_cast<int>(draw_below(engine, 8)), 4, {1, 2});
    problem.groups.push_back(problem.groups[0]);
    problem.groups[1].options.push_back({{2, 1, 1}, 2, 37, 11});
    const CountSolution solution = random_solution(problem, engine);
    std::vector<Rank> names(problem.ranks);
    std::iota(names.begin(), names.end(), 0);
    shuffle(names, engine);
    CountSolution renamed = solution;
    for (std::size_t g = 0; g < 2; ++g) {
      for (std::size_t j = 0; j < renamed.x[g].size(); ++j) {
        for (int r = 0; r < problem.ranks; ++r) renamed.x[g][j][names[r]] = solution.x[g][j][r];
      }
    }
    const CountSolution first = canonical(problem, solution);
    const CountSolution second = canonical(problem, renamed);
    EXPECT_EQ(first.x, second.x);
    EXPECT_EQ(first.z, solution.z);
    expect_decodes(problem, first);
    std::multiset<std::pair<std::int64_t, std::int64_t>> before, after;
    const auto pairs = [&](const CountSolution& of, auto& into) {
      const auto loads = rank_loads(problem, of);
      const auto memory = rank_memory(problem, of);
      for (int r = 0; r < problem.ranks; ++r) into.emplace(loads[r], memory[r]);
    };
    pairs(solution, before);
    pairs(first, after);
    EXPECT_EQ(before, after);
    EXPECT_EQ(num_split(problem, first), num_split(problem, solution));
    EXPECT_EQ(largest_load(problem, first), largest_load(problem, solution));
  }
}

TEST(CountSolution, SumsWhatRanksHold) {
  const Problem problem = one_group(3, 3, {1, 2});
  CountSolution solution(problem);
  solution.z[0] = {1, 2};
  solution.x[0] = {{0, 0, 1}, {2, 1, 1}};
  EXPECT_EQ(rank_loads(problem, solution), (std::vector<std::int64_t>{100, 50, 150}));
  EXPECT_EQ(rank_memory(problem, solution), (std::vector<std::int64_t>{20, 10, 20}));
  EXPECT_EQ(num_split(problem, solution), 2);
  EXPECT_EQ(largest_load(problem, solution), 150);
}

}  // namespace
}  // namespace zellige
