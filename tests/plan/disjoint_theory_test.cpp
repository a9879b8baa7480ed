// SPDX-License-Identifier: Apache-2.0
// Section III's statements on disjoint groups, in its ideal model: no communication cost, memory does not bind, every
// sequence splits evenly over any group.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/random.h"
#include "baseline_cases.h"
#include "plan/baselines.h"
#include "plan/group_layout.h"

namespace zellige {
namespace {

using testing::batch_of;
using testing::Cost;
using testing::expect_good_plan;
using testing::ruled_profile;

constexpr std::int64_t kMeasure = 12;  // divided by every degree up to 4, so that ideal prices are whole numbers

/// Work of a sequence is its length; every rank of its group does an equal share.
std::optional<Cost> ideal(std::int64_t tokens, Configuration c) { return Cost{tokens / c.degree(), 1}; }

/// An ideal instance: a bucket for every sequence, so that equal work is no special case.
struct Ideal {
  Profile profile;
  Batch batch;
};
Ideal ideal_instance(const std::vector<std::int64_t>& work, int ranks) {
  Ideal instance{ruled_profile(work, ranks, ideal, 1'000'000), {}};
  std::vector<int> buckets(work.size());
  for (std::size_t s = 0; s < work.size(); ++s) buckets[s] = static_cast<int>(s);
  instance.batch = batch_of(instance.profile, buckets, ranks);
  return instance;
}

/// T*_disj(G; w) of Eq. 2 times the product of all group sizes' common multiple, by trying every assignment.
std::int64_t best_assignment_by_hand(const std::vector<std::int64_t>& work, const std::vector<int>& group_sizes,
                                     bool& proportional) {
  std::int64_t total = 0;
  int ranks = 0;
  for (const std::int64_t w : work) total += w;
  for (const int size : group_sizes) ranks += size;
  proportional = false;
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  std::vector<std::size_t> group_of(work.size(), 0);
  while (true) {
    std::vector<std::int64_t> sum(group_sizes.size(), 0);
    for (std::size_t s = 0; s < work.size(); ++s) sum[group_of[s]] += work[s];
    std::int64_t makespan = 0;
    bool exact = true;
    for (std::size_t j = 0; j < group_sizes.size(); ++j) {
      makespan = std::max(makespan, sum[j] / group_sizes[j]);  // works are multiples of every size
      exact = exact && sum[j] * ranks == total * group_sizes[j];
    }
    best = std::min(best, makespan);
    proportional = proportional || exact;
    std::size_t digit = 0;
    while (digit < work.size() && ++group_of[digit] == group_sizes.size()) group_of[digit++] = 0;
    if (digit == work.size()) return best;
  }
}

TEST(Theorem1, GammaLiesBetweenItsBoundsAndIsOneIffPackingIsProportional) {
  int at_one = 0, above_one = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    GroupLayout layout;
    while (layout.num_ranks() < 2) {
      layout.groups.clear();
      for (int size = 1; size <= 4; ++size) {
        if (draw_below(engine, 3) == 0) layout.groups.push_back({size, 1 + static_cast<int>(draw_below(engine, 2))});
      }
    }
    const int ranks = layout.num_ranks();
    const int largest = layout.groups.back().size;
    std::vector<int> sizes;
    for (const RankGroup& group : rank_groups(layout)) sizes.push_back(group.size);
    std::vector<std::int64_t> work(1 + draw_below(engine, 5));
    std::int64_t total = 0;
    for (std::int64_t& w : work) {
      w = kMeasure * (1 + static_cast<std::int64_t>(draw_below(engine, 4)));
      total += w;
    }
    const std::int64_t w_max = *std::max_element(work.begin(), work.end());

    Ideal instance = ideal_instance(work, ranks);
    PlanOptions options;
    options.menu = Menu::all;
    options.layout = text(layout);
    const Plan plan = make_disjoint()->plan(instance.batch, instance.profile, options);
    expect_good_plan(plan, instance.batch, instance.profile);
    bool proportional = false;
    const std::int64_t best = best_assignment_by_hand(work, sizes, proportional);
    EXPECT_EQ(plan.makespan.value, best);
    // Gamma = N T / W, compared without dividing: max(1, N phi / g_max) <= Gamma <= N / g_max, phi = w_max / W.
    EXPECT_GE(ranks * best, total);
    EXPECT_GE(best * largest, w_max);
    EXPECT_LE(best * largest, total);
    EXPECT_EQ(ranks * best == total, proportional);
    (proportional ? at_one : above_one) += 1;

    // One sequence attains N / g_max: T = W / g_max.
    Ideal alone = ideal_instance({w_max}, ranks);
    EXPECT_EQ(make_disjoint()->plan(alone.batch, alone.profile, options).makespan.value, w_max / largest);
  }
  EXPECT_GT(at_one, 5);
  EXPECT_GT(above_one, 5);
}

TEST(Theorem1, HoldsForItsEndpointsPureDpAndPureCp) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const int ranks = 2 + static_cast<int>(draw_below(engine, 3));
    std::vector<std::int64_t> work(1 + draw_below(engine, 6));
    std::int64_t total = 0;
    for (std::int64_t& w : work) total += w = kMeasure * (1 + static_cast<std::int64_t>(draw_below(engine, 6)));
    const Ideal instance = ideal_instance(work, ranks);
    PlanOptions options;
    options.menu = Menu::all;
    options.layout = "g1n" + std::to_string(ranks);
    const Plan dp = make_disjoint()->plan(instance.batch, instance.profile, options);
    EXPECT_GE(dp.makespan.value, *std::max_element(work.begin(), work.end()));  // N phi, with g_max = 1
    EXPECT_LE(dp.makespan.value, total);
    options.layout = "g" + std::to_string(ranks) + "n1";
    const Plan cp = make_disjoint()->plan(instance.batch, instance.profile, options);
    EXPECT_EQ(cp.makespan.value * ranks, total) << "Gamma = 1 for every batch";
    // X_DP and X_CP are in X_disj: the complete disjoint optimum is no worse than either, nor than any baseline in it.
    options.layout.clear();
    const Plan disjoint = make_disjoint()->plan(instance.batch, instance.profile, options);
    EXPECT_LE(disjoint.makespan, std::min(dp.makespan, cp.makespan));
    for (const auto& baseline : {make_naive(), make_adaptiveload(), make_usp(), make_knapformer()}) {
      const Plan plan = baseline->plan(instance.batch, instance.profile, {});
      expect_good_plan(plan, instance.batch, instance.profile);
      EXPECT_EQ(testing::why_not_disjoint(plan.placement), "") << plan.solver;
      EXPECT_LE(disjoint.makespan, plan.makespan) << plan.solver;
    }
  }
}

/// Least makespan and, among placements that reach it, least split count, over every set of ranks for every sequence.
std::pair<std::int64_t, int> best_joint_by_hand(const std::vector<std::int64_t>& work, int ranks) {
  std::pair<std::int64_t, int> best{std::numeric_limits<std::int64_t>::max(), 0};
  const unsigned sets = (1U << ranks) - 1;
  std::vector<unsigned> set_of(work.size(), 1);
  while (true) {
    std::vector<std::int64_t> load(ranks, 0);
    int splits = 0;
    for (std::size_t s = 0; s < work.size(); ++s) {
      const int degree = __builtin_popcount(set_of[s]);
      splits += degree > 1 ? 1 : 0;
      for (int rank = 0; rank < ranks; ++rank) {
        if ((set_of[s] >> rank & 1U) != 0) load[rank] += work[s] / degree;
      }
    }
    best = std::min(best, {*std::max_element(load.begin(), load.end()), splits});
    std::size_t digit = 0;
    while (digit < work.size() && ++set_of[digit] > sets) set_of[digit++] = 1;
    if (digit == work.size()) return best;
  }
}

TEST(Theorem2, DisjointGroupsSplitEveryFillerWhereOneSplitWouldDo) {
  // One giant of work N u and m = N p fillers of work delta, u > (N - 1) p delta.
  for (const auto& [ranks, p] : {std::pair(2, 1), std::pair(2, 2), std::pair(2, 3), std::pair(3, 1)}) {
    SCOPED_TRACE("N = " + std::to_string(ranks) + ", p = " + std::to_string(p));
    const std::int64_t delta = kMeasure;
    const std::int64_t u = (ranks - 1) * p * delta + kMeasure;
    const int fillers = ranks * p;
    std::vector<std::int64_t> work(fillers, delta);
    work.push_back(ranks * u);
    const std::int64_t floor = u + p * delta;  // F

    const auto [joint, joint_splits] = best_joint_by_hand(work, ranks);
    EXPECT_EQ(joint, floor);
    EXPECT_EQ(joint_splits, 1);

    const Ideal instance = ideal_instance(work, ranks);
    PlanOptions options;
    options.menu = Menu::all;
    const Plan plan = make_disjoint()->plan(instance.batch, instance.profile, options);
    expect_good_plan(plan, instance.batch, instance.profile);
    EXPECT_EQ(plan.makespan.value, floor);
    EXPECT_EQ(plan.status, PlanStatus::optimal);
    EXPECT_EQ(plan.split_count, fillers + 1);
    // No other layout reaches F, so m + 1 is the least under disjoint groups.
    std::vector<int> sizes;
    for (int size = 1; size <= ranks; ++size) sizes.push_back(size);
    for (const GroupLayout& layout : group_layouts(ranks, sizes, 1000).layouts) {
      if (layout.num_groups() == 1) continue;
      options.layout = text(layout);
      EXPECT_GT(make_disjoint()->plan(instance.batch, instance.profile, options).makespan.value, floor)
          << options.layout;
    }
  }
}

}  // namespace
}  // namespace zellige
