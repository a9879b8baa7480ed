// SPDX-License-Identifier: Apache-2.0
// Theorem 1 by arithmetic alone: Eq. 2 solved by trying every assignment, in fractions, for any group sizes and any
// work; and the exact disjoint-group planner on the same instances.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/random.h"
#include "baseline_cases.h"
#include "plan/baselines.h"
#include "plan/group_layout.h"

namespace zellige {
namespace {

/// numerator / denominator, denominator > 0; compared without dividing.
struct Fraction {
  std::int64_t numerator = 0, denominator = 1;
  std::strong_ordering operator<=>(const Fraction& other) const {
    return numerator * other.denominator <=> other.numerator * denominator;
  }
  bool operator==(const Fraction& other) const { return (*this <=> other) == 0; }
};

struct Optimum {
  Fraction makespan;          // T*_disj(G; w), Eq. 2
  bool proportional = false;  // some assignment gives every group g_j W / N
};

Optimum by_every_assignment(const std::vector<std::int64_t>& work, const std::vector<int>& sizes) {
  const std::int64_t total = std::accumulate(work.begin(), work.end(), std::int64_t{0});
  const int ranks = std::accumulate(sizes.begin(), sizes.end(), 0);
  Optimum best{{total, 1}};  // all on one group of one rank, if there were one
  std::vector<std::size_t> group_of(work.size(), 0);
  while (true) {
    std::vector<std::int64_t> sum(sizes.size(), 0);
    for (std::size_t s = 0; s < work.size(); ++s) sum[group_of[s]] += work[s];
    Fraction makespan;
    bool proportional = true;
    for (std::size_t j = 0; j < sizes.size(); ++j) {
      makespan = std::max(makespan, Fraction{sum[j], sizes[j]});
      proportional = proportional && sum[j] * ranks == total * sizes[j];
    }
    best.makespan = std::min(best.makespan, makespan);
    best.proportional = best.proportional || proportional;
    std::size_t digit = 0;
    while (digit < work.size() && ++group_of[digit] == sizes.size()) group_of[digit++] = 0;
    if (digit == work.size()) return best;
  }
}

/// Gamma = N T / W.
Fraction gamma_of(const std::vector<std::int64_t>& work, const std::vector<int>& sizes) {
  const Fraction makespan = by_every_assignment(work, sizes).makespan;
  const std::int64_t total = std::accumulate(work.begin(), work.end(), std::int64_t{0});
  const int ranks = std::accumulate(sizes.begin(), sizes.end(), 0);
  return {ranks * makespan.numerator, total * makespan.denominator};
}

/// Group sizes that sum to `ranks`, in rising order.
std::vector<int> random_sizes(RandomEngine& engine, int ranks, int largest) {
  std::vector<int> sizes;
  for (int left = ranks; left > 0; left -= sizes.back()) {
    sizes.push_back(1 + static_cast<int>(draw_below(engine, std::min(left, largest))));
  }
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

/// Works of very different kinds: all alike, small whole numbers (so that they pack), or a giant among dwarfs.
std::vector<std::int64_t> random_work(RandomEngine& engine) {
  std::vector<std::int64_t> work(1 + draw_below(engine, 6));
  const std::uint64_t kind = draw_below(engine, 3);
  const std::uint64_t range = kind == 0 ? 1 : kind == 1 ? 6 : 1000;
  for (std::int64_t& w : work) w = 1 + static_cast<std::int64_t>(draw_below(engine, range));
  if (kind == 2) work.front() = 10'000;
  return work;
}

TEST(Theorem1, BoundsHoldForAnyLayoutAndAnyWork) {
  int lower_is_met = 0, upper_is_met = 0, between = 0, perfect = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const int ranks = 2 + static_cast<int>(draw_below(engine, 11));
    const std::vector<int> sizes = random_sizes(engine, ranks, ranks);
    if (sizes.size() > 5) continue;  // 5^6 assignments at most
    const std::vector<std::int64_t> work = random_work(engine);
    const std::int64_t total = std::accumulate(work.begin(), work.end(), std::int64_t{0});
    const int largest = sizes.back();
    const Fraction gamma = gamma_of(work, sizes);
    const Fraction lower = std::max(
        Fraction{1, 1}, Fraction{ranks * *std::max_element(work.begin(), work.end()), largest * total});  // N phi/g_max
    const Fraction upper{ranks, largest};
    EXPECT_GE(gamma, lower);
    EXPECT_LE(gamma, upper);
    EXPECT_EQ(gamma == (Fraction{1, 1}), by_every_assignment(work, sizes).proportional);
    // The exact worst case of this layout: any one sequence.
    EXPECT_EQ(gamma_of({work.front()}, sizes), upper);
    lower_is_met += gamma == lower;
    upper_is_met += gamma == upper;
    between += gamma > lower && gamma < upper;
    perfect += gamma == (Fraction{1, 1});
    // Only one group of all ranks is perfect for every batch.
    EXPECT_EQ(gamma_of({work.front()}, sizes) == (Fraction{1, 1}), largest == ranks);
  }
  for (const int cases : {lower_is_met, upper_is_met, between, perfect}) EXPECT_GT(cases, 50);
}

TEST(Theorem1, EndpointsAreTheWorstAndTheBestLayout) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const int ranks = 2 + static_cast<int>(draw_below(engine, 4));
    const std::vector<std::int64_t> work = random_work(engine);
    const std::int64_t total = std::accumulate(work.begin(), work.end(), std::int64_t{0});
    const std::vector<int> data_parallel(ranks, 1), context_parallel{ranks};
    const Fraction dp = gamma_of(work, data_parallel);
    EXPECT_GE(dp, (Fraction{ranks * *std::max_element(work.begin(), work.end()), total}));  // N phi: g_max = 1
    EXPECT_LE(dp, (Fraction{ranks, 1}));
    EXPECT_EQ(gamma_of({work.front()}, data_parallel), (Fraction{ranks, 1}));
    EXPECT_EQ(gamma_of(work, context_parallel), (Fraction{1, 1}));
  }
}

/// The same by the planner: prices are whole microseconds, so work is a multiple of every group size.
TEST(Theorem1, TheExactDisjointPlannerReachesEquation2AndGammaOneIffProportional) {
  int perfect = 0, imperfect = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const int ranks = 2 + static_cast<int>(draw_below(engine, 7));
    std::vector<int> sizes = random_sizes(engine, ranks, 4);  // 1 to 4 divide the 12 heads of the model
    if (sizes.size() > 5) continue;
    std::vector<std::int64_t> work = random_work(engine);
    for (std::int64_t& w : work) w *= 12;
    const Profile profile = testing::ruled_profile(
        work, 4,
        [](std::int64_t tokens, Configuration c) {
          return std::optional(testing::Cost{tokens / c.degree(), 1});
        },
        1'000'000);
    std::vector<int> buckets(work.size());
    std::iota(buckets.begin(), buckets.end(), 0);
    const Batch batch = testing::batch_of(profile, buckets, ranks);
    GroupLayout layout;
    for (const int size : std::set<int>(sizes.begin(), sizes.end())) {
      layout.groups.push_back({size, static_cast<int>(std::count(sizes.begin(), sizes.end(), size))});
    }
    PlanOptions options;
    options.menu = Menu::all;
    options.layout = text(layout);
    const Plan plan = make_disjoint()->plan(batch, profile, options);
    testing::expect_good_plan(plan, batch, profile);
    const Optimum optimum = by_every_assignment(work, sizes);
    EXPECT_EQ((Fraction{plan.makespan.value, 1}), optimum.makespan) << options.layout;
    const std::int64_t total = std::accumulate(work.begin(), work.end(), std::int64_t{0});
    EXPECT_EQ(plan.makespan.value * ranks == total, optimum.proportional) << options.layout;
    (optimum.proportional ? perfect : imperfect) += 1;
  }
  EXPECT_GT(perfect, 5);
  EXPECT_GT(imperfect, 20);
}

}  // namespace
}  // namespace zellige
