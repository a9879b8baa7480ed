// SPDX-License-Identifier: Apache-2.0
// Sections III-B to III-D on action spaces: X_DP and X_CP inside X_disj inside X_joint, as sets of placements listed
// one by one; and Theorem 2's instance by the planners of both spaces.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <set>

#include "baseline_cases.h"
#include "plan/baselines.h"
#include "zellige/check.h"

namespace zellige {
namespace {

/// An option c = (theta_c, R_c) of one sequence, the ranks as bits; a placement is one for every sequence.
using Option = std::pair<Configuration, unsigned>;
using Space = std::set<std::vector<Option>>;

std::vector<Configuration> legal_of_degree(const ModelGeometry& model, int degree) {
  std::vector<Configuration> result;
  for (const Configuration config : menu(model, Tokens{1000}, degree, Menu::all)) {
    if (config.degree() == degree) result.push_back(config);
  }
  return result;
}

/// Every way to give one of `options` to each sequence.
void add_products(const std::vector<Option>& options, std::size_t sequences, Space& space) {
  std::vector<std::size_t> chosen(sequences, 0);
  while (true) {
    std::vector<Option> placement;
    for (const std::size_t c : chosen) placement.push_back(options[c]);
    space.insert(placement);
    std::size_t digit = 0;
    while (digit < sequences && ++chosen[digit] == options.size()) chosen[digit++] = 0;
    if (digit == sequences) return;
  }
}

/// X_joint: any configuration on any set of as many ranks.
Space joint_space(const ModelGeometry& model, int ranks, std::size_t sequences) {
  std::vector<Option> options;
  for (unsigned set = 1; set < 1u << ranks; ++set) {
    for (const Configuration config : legal_of_degree(model, std::popcount(set))) options.push_back({config, set});
  }
  Space space;
  add_products(options, sequences, space);
  return space;
}

/// X_disj: the union over all partitions of the ranks into groups (any ranks, not only neighbours) and all
/// configurations of the groups.
Space disjoint_space(const ModelGeometry& model, int ranks, std::size_t sequences) {
  Space space;
  std::vector<Option> groups;
  const std::function<void(unsigned)> partition = [&](unsigned left) {
    if (left == 0) {
      add_products(groups, sequences, space);
      return;
    }
    const unsigned lowest = left & (~left + 1);
    for (unsigned set = left; set != 0; set = (set - 1) & left) {
      if ((set & lowest) == 0) continue;
      for (const Configuration config : legal_of_degree(model, std::popcount(set))) {
        groups.push_back({config, set});
        partition(left & ~set);
        groups.pop_back();
      }
    }
  };
  partition((1u << ranks) - 1);
  return space;
}

Space data_parallel_space(int ranks, std::size_t sequences) {
  std::vector<Option> options;
  for (int rank = 0; rank < ranks; ++rank) options.push_back({{1, 1, 1}, 1u << rank});
  Space space;
  add_products(options, sequences, space);
  return space;
}

Space context_parallel_space(const ModelGeometry& model, int ranks, std::size_t sequences) {
  Space space;
  for (const Configuration config : legal_of_degree(model, ranks)) {
    space.insert(std::vector<Option>(sequences, {config, (1u << ranks) - 1}));
  }
  return space;
}

bool contains(const Space& outer, const Space& inner) {
  return std::includes(outer.begin(), outer.end(), inner.begin(), inner.end());
}

Placement placement_of(const std::vector<Option>& options, int ranks) {
  Placement placement;
  placement.ranks = ranks;
  for (const auto& [config, set] : options) {
    PlacedSequence sequence;
    sequence.config = config;
    for (Rank rank = 0; rank < ranks; ++rank) {
      if ((set >> rank & 1u) != 0) sequence.ranks.push_back(rank);
    }
    placement.sequences.push_back(sequence);
  }
  return placement;
}

TEST(ActionSpaces, DataAndContextParallelismAreEndpointsOfDisjointGroups) {
  const ModelGeometry model = model_preset("wan2.1-t2v-1.3b");
  for (const auto& [ranks, sequences] : {std::pair(2, 3), std::pair(3, 3), std::pair(4, 2)}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(sequences) + " sequences");
    const Space disjoint = disjoint_space(model, ranks, sequences);
    const Space data = data_parallel_space(ranks, sequences), context = context_parallel_space(model, ranks, sequences);
    EXPECT_TRUE(contains(disjoint, data));
    EXPECT_TRUE(contains(disjoint, context));
    EXPECT_FALSE(contains(data, disjoint));
    EXPECT_FALSE(contains(context, disjoint));
    const Space joint = joint_space(model, ranks, sequences);
    EXPECT_TRUE(contains(joint, disjoint));
    EXPECT_GT(joint.size(), disjoint.size()) << "strictly";
    // The tests' judge of disjoint placements knows the same set.
    for (const auto& options : joint) {
      EXPECT_EQ(testing::why_not_disjoint(placement_of(options, ranks)).empty(), disjoint.contains(options));
    }
  }
}

/// A giant of work N u and m = N p fillers of work delta, u > (N - 1) p delta, in the ideal model; works are multiples
/// of every degree, so that equal shares are whole numbers.
struct TheoremTwo {
  Profile profile;
  Batch batch;
  std::int64_t floor = 0;  // F
};

TheoremTwo theorem_two(int ranks, int p) {
  const std::int64_t unit = 840;  // divided by 1 .. 8
  const std::int64_t u = ((ranks - 1) * p + 1) * unit;
  TheoremTwo instance{testing::ruled_profile(
                          {unit, ranks * u}, ranks,
                          [](std::int64_t tokens, Configuration c) {
                            return std::optional(testing::Cost{tokens / c.degree(), 1});
                          },
                          1'000'000),
                      {},
                      u + p * unit};
  std::vector<int> buckets(ranks * p, 0);
  buckets.push_back(1);
  instance.batch = testing::batch_of(instance.profile, buckets, ranks);
  return instance;
}

TEST(Theorem2, BothPlannersReachTheFloorAndDisjointGroupsSplitAll) {
  for (const auto& [ranks, p] :
       {std::pair(2, 1), std::pair(2, 5), std::pair(3, 2), std::pair(4, 1), std::pair(4, 6), std::pair(8, 3)}) {
    SCOPED_TRACE("N = " + std::to_string(ranks) + ", p = " + std::to_string(p));
    const TheoremTwo instance = theorem_two(ranks, p);
    const int fillers = ranks * p;
    PlanOptions options;
    options.menu = Menu::all;
    options.epsilon = 0;
    const Plan disjoint = make_disjoint()->plan(instance.batch, instance.profile, options);
    testing::expect_good_plan(disjoint, instance.batch, instance.profile);
    EXPECT_EQ(disjoint.makespan.value, instance.floor);
    EXPECT_EQ(disjoint.split_count, fillers + 1);
    EXPECT_EQ(testing::why_not_disjoint(disjoint.placement), "");

    options.ortools = "none";  // the own solver alone
    const Plan zellige = make_planner("zellige")->plan(instance.batch, instance.profile, options);
    for (const Finding& finding : check(zellige, instance.batch, instance.profile)) ADD_FAILURE() << finding.message;
    EXPECT_EQ(zellige.makespan.value, instance.floor);
    EXPECT_EQ(zellige.split_count, 1);
    EXPECT_TRUE(zellige.certified);
    EXPECT_NE(testing::why_not_disjoint(zellige.placement), "") << "one split and the floor need overlapping rank sets";
  }
}

TEST(Theorem2, RedundancyGrowsWithoutBoundWhileJointStaysAtOne) {
  int before = 0;
  for (const int p : {1, 10, 100, 1000}) {
    const TheoremTwo instance = theorem_two(4, p);
    PlanOptions options;
    options.menu = Menu::all;
    options.layout = "g4n1";  // what every optimum of disjoint groups is, by the theorem
    const Plan disjoint = make_disjoint()->plan(instance.batch, instance.profile, options);
    EXPECT_EQ(disjoint.makespan.value, instance.floor);
    options.layout.clear();
    options.ortools = "none";
    options.epsilon = 0;
    const Plan zellige = make_planner("zellige")->plan(instance.batch, instance.profile, options);
    EXPECT_EQ(zellige.makespan.value, instance.floor);
    EXPECT_EQ(disjoint.split_count - zellige.split_count, 4 * p);  // m
    EXPECT_GT(disjoint.split_count, before);
    before = disjoint.split_count;
  }
}

}  // namespace
}  // namespace zellige
