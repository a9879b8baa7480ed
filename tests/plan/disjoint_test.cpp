// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/random.h"
#include "baseline_cases.h"
#include "plan/baselines.h"
#include "plan/disjoint_search.h"

namespace zellige {
namespace {

using testing::batch_of;
using testing::Cost;
using testing::expect_good_plan;
using testing::expect_no_plan;
using ::testing::HasSubstr;
using testing::quadratic_cost;
using testing::ruled_profile;

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

/// Smallest makespan of all disjoint-group placements (section III-B), by enumeration without any reduction: group
/// sizes that sum to N, any legal configuration for each group, any group for each sequence.
std::int64_t best_by_hand(const Batch& batch, const Profile& profile, std::vector<Configuration>& groups,
                          int ranks_left) {
  std::int64_t best = kNone;
  if (ranks_left > 0) {
    for (const Configuration config : menu(profile.catalog.model, Tokens{1'000'000}, ranks_left, Menu::all)) {
      if (!groups.empty() && config.degree() > groups.back().degree()) continue;
      groups.push_back(config);
      best = std::min(best, best_by_hand(batch, profile, groups, ranks_left - config.degree()));
      groups.pop_back();
    }
    return best;
  }
  std::vector<std::size_t> group_of(batch.sequences.size(), 0);
  while (true) {
    std::vector<std::int64_t> time(groups.size(), 0), memory(groups.size(), 0);
    bool fits = true;
    for (std::size_t s = 0; s < group_of.size() && fits; ++s) {
      const Price* price = profile.find(batch.sequences[s].bucket, groups[group_of[s]]);
      fits = price != nullptr;
      if (!fits) break;
      time[group_of[s]] += price->time.value;
      memory[group_of[s]] += price->memory.value;
    }
    if (fits && *std::max_element(memory.begin(), memory.end()) <= profile.memory_cap().value) {
      best = std::min(best, *std::max_element(time.begin(), time.end()));
    }
    std::size_t digit = 0;
    while (digit < group_of.size() && ++group_of[digit] == groups.size()) group_of[digit++] = 0;
    if (digit == group_of.size()) return best;
  }
}

TEST(Disjoint, IsTheOptimumOfEveryLayoutAndAssignment) {
  int planned = 0, split = 0, without = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const int ranks = 1 + static_cast<int>(draw_below(engine, 4));
    std::vector<std::int64_t> lengths;
    for (int b = 0; b < 3; ++b) lengths.push_back(1 + static_cast<std::int64_t>(draw_below(engine, 3 + 200 * b)));
    std::vector<int> buckets;
    std::int64_t tokens = 0;
    for (std::size_t i = 1 + draw_below(engine, 5); i > 0; --i) {
      buckets.push_back(static_cast<int>(draw_below(engine, 3)));
      tokens += lengths[buckets.back()];
    }
    const std::int64_t cap = tokens * static_cast<std::int64_t>(105 + draw_below(engine, 200)) / 100 / ranks + 1;
    const Profile profile = ruled_profile(lengths, ranks, testing::random_cost_rule(seed), cap);
    const Batch batch = batch_of(profile, buckets, ranks);
    PlanOptions options;
    options.menu = Menu::all;
    const Plan plan = make_disjoint()->plan(batch, profile, options);
    std::vector<Configuration> groups;
    const std::int64_t best = best_by_hand(batch, profile, groups, ranks);
    if (best == kNone) {
      ++without;
      expect_no_plan(plan, batch, profile, "OOM");
      continue;
    }
    ++planned;
    split += plan.split_count > 0 ? 1 : 0;
    expect_good_plan(plan, batch, profile);
    EXPECT_EQ(plan.makespan.value, best);
    EXPECT_EQ(testing::why_not_disjoint(plan.placement), "");
  }
  EXPECT_GT(planned, 100);
  EXPECT_GT(split, 20);
  EXPECT_GT(without, 0);
}

TEST(Disjoint, SearchEqualsEnumerationOfCountsWithinOneLayout) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    GroupInstance instance;
    const std::size_t num_lots = 1 + draw_below(engine, 3), num_kinds = 1 + draw_below(engine, 2);
    for (std::size_t lot = 0; lot < num_lots; ++lot) {
      instance.counts.push_back(static_cast<std::int64_t>(draw_below(engine, 6)));
    }
    for (std::size_t kind = 0; kind < num_kinds; ++kind) {
      GroupCosts costs{static_cast<int>(kind) + 1, {}, {}};
      for (std::size_t lot = 0; lot < num_lots; ++lot) {
        costs.time_us.push_back(draw_below(engine, 8) == 0 ? kCannotRun
                                                           : 1 + static_cast<std::int64_t>(draw_below(engine, 20)));
        costs.memory_bytes.push_back(static_cast<std::int64_t>(draw_below(engine, 10)));
      }
      instance.kinds.push_back(costs);
      instance.groups.insert(instance.groups.end(), 1 + draw_below(engine, 2), kind);
    }
    instance.cap_bytes = 5 + static_cast<std::int64_t>(draw_below(engine, 40));

    // Sequence by sequence, each to any group.
    std::vector<std::size_t> lot_of;
    for (std::size_t lot = 0; lot < num_lots; ++lot) lot_of.insert(lot_of.end(), instance.counts[lot], lot);
    std::int64_t best = kNone;
    std::vector<std::int64_t> time(instance.groups.size(), 0), memory(instance.groups.size(), 0);
    const auto enumerate = [&](const auto& self, std::size_t sequence, std::size_t first) -> void {
      if (sequence == lot_of.size()) {
        best = std::min(best, *std::max_element(time.begin(), time.end()));
        return;
      }
      const std::size_t lot = lot_of[sequence];
      for (std::size_t group = first; group < instance.groups.size(); ++group) {
        const GroupCosts& costs = instance.kinds[instance.groups[group]];
        if (costs.time_us[lot] == kCannotRun || memory[group] + costs.memory_bytes[lot] > instance.cap_bytes) continue;
        time[group] += costs.time_us[lot];
        memory[group] += costs.memory_bytes[lot];
        const bool same_lot_next = sequence + 1 < lot_of.size() && lot_of[sequence + 1] == lot;
        self(self, sequence + 1, same_lot_next ? group : 0);
        time[group] -= costs.time_us[lot];
        memory[group] -= costs.memory_bytes[lot];
      }
    };
    enumerate(enumerate, 0, 0);

    SearchBudget budget{1'000'000, [] { return false; }};
    const auto found = best_assignment(instance, kNone, budget);
    EXPECT_FALSE(budget.spent);
    ASSERT_EQ(found.has_value(), best != kNone);
    EXPECT_LE(group_lower_bound(instance), best);
    if (!found) continue;
    EXPECT_EQ(found->makespan_us, best);
    std::vector<std::int64_t> taken(num_lots, 0);
    for (std::size_t group = 0; group < instance.groups.size(); ++group) {
      const GroupCosts& costs = instance.kinds[instance.groups[group]];
      std::int64_t end = 0, need = 0;
      for (std::size_t lot = 0; lot < num_lots; ++lot) {
        taken[lot] += found->taken[group][lot];
        end += found->taken[group][lot] * costs.time_us[lot];
        need += found->taken[group][lot] * costs.memory_bytes[lot];
      }
      EXPECT_LE(end, best);
      EXPECT_LE(need, instance.cap_bytes);
    }
    EXPECT_EQ(taken, instance.counts);
    EXPECT_FALSE(best_assignment(instance, best, budget).has_value()) << "nothing is below the optimum";
    EXPECT_EQ(best_assignment(instance, best + 1, budget)->makespan_us, best);
  }
}

TEST(Disjoint, FollowsTheMenu) {
  // Six ranks, two videos: two groups of three are best, and on no menu of powers of two.
  const auto cost = [](std::int64_t tokens, Configuration c) -> std::optional<Cost> {
    return Cost{tokens / c.degree() + (c.degree() - 1), 1};
  };
  const Profile profile = ruled_profile({3000}, 6, cost, 1000);
  const Batch batch = batch_of(profile, {0, 0}, 6);
  PlanOptions options;
  options.menu = Menu::all;
  const Plan all = make_disjoint()->plan(batch, profile, options);
  expect_good_plan(all, batch, profile);
  EXPECT_EQ(all.solver, "disjoint g3n2");
  EXPECT_EQ(all.makespan.value, 1002);
  options.menu = Menu::powers_of_two;
  const Plan powers = make_disjoint()->plan(batch, profile, options);
  expect_good_plan(powers, batch, profile);
  EXPECT_EQ(powers.makespan.value, 1501);
  // A layout that is asked for may leave the menu.
  options.layout = "g3n2";
  expect_good_plan(make_disjoint()->plan(batch, profile, options), batch, profile);
}

TEST(Disjoint, LayoutsAreChecked) {
  const Profile profile = ruled_profile({3000}, 6, quadratic_cost, 100'000);
  const Batch batch = batch_of(profile, {0, 0}, 6);
  PlanOptions options;
  options.layout = "g2n1";
  EXPECT_THAT(testing::input_error_of([&] { make_disjoint()->plan(batch, profile, options); }),
              HasSubstr("layout 'g2n1' covers 2 of the batch's 6 ranks; it has to cover all"));
  options.layout = "g7n1";
  EXPECT_THAT(testing::input_error_of([&] { make_disjoint()->plan(batch, profile, options); }),
              HasSubstr("group size 7 is not in 1..6"));
}

TEST(Disjoint, WhatItCannotProveItRefuses) {
  // Twelve lots of many sequences on eight ranks, prices without common measure.
  std::vector<std::int64_t> lengths;
  std::vector<int> buckets;
  for (int b = 0; b < 12; ++b) {
    lengths.push_back(1009 + 313 * b * b);
    buckets.insert(buckets.end(), 25, b);
  }
  const Profile profile = ruled_profile(lengths, 8, testing::random_cost_rule(7), 1'000'000'000);
  const Batch batch = batch_of(profile, buckets, 8);
  const Plan plan = make_disjoint()->plan(batch, profile, {});
  expect_no_plan(plan, batch, profile, "too large to solve exactly: not done after 30000000 nodes");
  EXPECT_EQ(plan.status, PlanStatus::unknown);
  EXPECT_THAT(plan.reason, HasSubstr("and none takes less than"));
  // Many ranks: not even the layouts can be listed.
  const Plan many = make_disjoint()->plan(batch_of(profile, {0, 1}, 1000), profile, {});
  EXPECT_EQ(many.status, PlanStatus::unknown);
  EXPECT_THAT(many.reason, HasSubstr("more than 20000 layouts of groups over 1000 ranks"));
  // Out of time is said as such.
  PlanOptions options;
  options.time_limit_s = 0.05;
  const Plan late = make_disjoint()->plan(batch, profile, options);
  expect_no_plan(late, batch, profile, "out of time");
  EXPECT_EQ(late.status, PlanStatus::timeout);
}

}  // namespace
}  // namespace zellige
