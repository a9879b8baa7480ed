// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/random.h"
#include "baseline_cases.h"
#include "plan/baselines.h"
#include "plan/fitted_work.h"
#include "plan/knapformer_routing.h"

namespace zellige {
namespace {

using testing::batch_of;
using testing::Cost;
using testing::expect_good_plan;
using testing::expect_no_plan;
using ::testing::HasSubstr;
using testing::input_error_of;
using testing::quadratic_cost;
using testing::ruled_profile;

Plan plan_with(const Batch& batch, const Profile& profile, const std::string& layout) {
  PlanOptions options;
  options.layout = layout;
  return make_knapformer()->plan(batch, profile, options);
}

TEST(Knapformer, SequencesGoWhereTheRoutingSendsThem) {
  // The golden batch on our engine: same bags, ours to price. gamma comes from the profile, so take prices that fit it.
  const auto golden_prices = [](std::int64_t l, Configuration c) -> std::optional<Cost> {
    const double work = (24.0 * l * 1536 * 1536 + 0.4 * 4 * l * l * 1536) * 1e-4;
    return Cost{static_cast<std::int64_t>(work) / c.degree() + 1, l / c.degree() + 1};
  };
  const Profile profile = ruled_profile({512, 1024, 256}, 4, golden_prices, 100'000);
  const Batch batch = batch_of(profile, {0, 0, 0, 1, 2, 2, 2, 2}, 4);
  const double gamma = fit_gamma(whole_prices(profile), 1536);
  EXPECT_NEAR(gamma, 0.4, 1e-3);
  for (const char* notation : {"g1n4", "g2n2", "g3n1+g1n1"}) {
    SCOPED_TRACE(notation);
    const Plan plan = plan_with(batch, profile, notation);
    expect_good_plan(plan, batch, profile);
    EXPECT_EQ(plan.solver, "knapformer " + std::string(notation));
    EXPECT_EQ(testing::why_not_disjoint(plan.placement), "");
    const GroupLayout layout = parse_group_layout(notation, 4, "test");
    const std::vector<RankGroup> bags = rank_groups(layout);
    const Routing routing = route(routing_order({512, 512, 512, 1024, 256, 256, 256, 256}, 1536, gamma), layout);
    for (std::size_t s = 0; s < routing.bag_of.size(); ++s) {
      const RankGroup& bag = bags[routing.bag_of[s]];
      EXPECT_EQ(plan.placement.sequences[s].config, (Configuration{1, bag.size, 1}));
      EXPECT_EQ(plan.placement.sequences[s].ranks.front(), bag.first_rank);
    }
  }
}

/// All ways to write `ranks` as a sum of sizes, each at most the one before.
void partitions(int ranks, int largest, std::vector<int>& sizes, std::vector<std::vector<int>>& found) {
  if (ranks == 0) found.push_back(sizes);
  for (int size = std::min(ranks, largest); size >= 1; --size) {
    sizes.push_back(size);
    partitions(ranks - size, size, sizes, found);
    sizes.pop_back();
  }
}

TEST(Knapformer, TheBestLayoutIsTheBestOfAllPartitionsOfAllRanksOrOfFewerRepeated) {
  int planned = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const int ranks = 1 + static_cast<int>(draw_below(engine, 8));
    std::vector<std::int64_t> lengths;
    for (int b = 0; b < 4; ++b) lengths.push_back(2 + static_cast<std::int64_t>(draw_below(engine, 1 << (4 + 3 * b))));
    std::vector<int> buckets;
    std::int64_t tokens = 0;
    for (int i = 0; i < 25; ++i) {
      buckets.push_back(static_cast<int>(draw_below(engine, 4)));
      tokens += lengths[buckets.back()];
    }
    const std::int64_t cap = tokens * static_cast<std::int64_t>(100 + draw_below(engine, 50)) / 100 / ranks + 30;
    const Profile profile = ruled_profile(lengths, ranks, testing::random_cost_rule(seed), cap);
    const Batch batch = batch_of(profile, buckets, ranks);
    const Plan plan = make_knapformer()->plan(batch, profile, {});

    // Every partition as a layout of its own, those with a group of 5, 7 or 8 ranks (12 heads) too: they are refused.
    std::vector<std::vector<int>> all;
    std::vector<int> sizes;
    for (int covered = 1; covered <= ranks; ++covered) {
      if (ranks % covered == 0) partitions(covered, covered, sizes, all);
    }
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (const std::vector<int>& partition : all) {
      std::string notation;
      for (int size = 1; size <= ranks; ++size) {
        const auto count = std::count(partition.begin(), partition.end(), size);
        if (count > 0) notation += (notation.empty() ? "g" : "+g") + std::to_string(size) + "n" + std::to_string(count);
      }
      const Plan fixed = plan_with(batch, profile, notation);
      if (std::any_of(partition.begin(), partition.end(), [](int size) { return 12 % size != 0; })) {
        expect_no_plan(fixed, batch, profile,
                       fixed.status == PlanStatus::infeasible ? "OOM" : "is not legal: head split");
        continue;
      }
      if (!fixed.has_placement()) continue;
      expect_good_plan(fixed, batch, profile);
      best = std::min(best, fixed.makespan.value);
    }
    if (best == std::numeric_limits<std::int64_t>::max()) {
      EXPECT_FALSE(plan.has_placement());
      continue;
    }
    ++planned;
    expect_good_plan(plan, batch, profile);
    EXPECT_EQ(plan.makespan.value, best);
    EXPECT_EQ(testing::why_not_disjoint(plan.placement), "");
  }
  EXPECT_GT(planned, 30);
}

TEST(Knapformer, ARepeatedLayoutWinsWhereGreedyFillingIsWorse) {
  const auto no_gain = [](std::int64_t tokens, Configuration) -> std::optional<Cost> { return Cost{tokens, 1}; };
  const Profile profile = ruled_profile({5000, 4000, 3000}, 2, no_gain, 1000);
  // Longest first, emptiest bag: 5 + 3 and 4 + 3 + 3. Dealt in turn: 3 + 3 + 3 and 5 + 4.
  const Batch batch = batch_of(profile, {2, 0, 2, 1, 2}, 2);
  EXPECT_EQ(plan_with(batch, profile, "g1n2").makespan.value, 10'000);
  EXPECT_EQ(plan_with(batch, profile, "g1n1").makespan.value, 9000);
  const Plan best = make_knapformer()->plan(batch, profile, {});
  expect_good_plan(best, batch, profile);
  EXPECT_EQ(best.makespan.value, 9000);
  EXPECT_EQ(best.solver, "knapformer g1n1");
}

TEST(Knapformer, EqualLayoutsGoToTheSmallerBags) {
  const auto free_split = [](std::int64_t tokens, Configuration c) -> std::optional<Cost> {
    return Cost{tokens / c.degree(), 1};
  };
  const Profile profile = ruled_profile({1000}, 2, free_split, 1000);
  const Batch batch = batch_of(profile, {0, 0}, 2);
  EXPECT_EQ(plan_with(batch, profile, "g2n1").makespan.value, 1000);
  EXPECT_EQ(make_knapformer()->plan(batch, profile, {}).solver, "knapformer g1n2");
}

TEST(Knapformer, GroupsThatDoNotDivideTheHeadsAreNotLegal) {
  const Profile profile = ruled_profile({1000}, 8, quadratic_cost, 1'000'000);
  const Batch batch = batch_of(profile, {0, 0}, 8);
  const Plan plan = plan_with(batch, profile, "g5n1+g3n1");
  expect_no_plan(plan, batch, profile, "layout g5n1+g3n1 is not legal: head split 5 does not divide 12 heads");
  EXPECT_EQ(plan.status, PlanStatus::unknown);
}

TEST(Knapformer, TooShortSequencesSpoilALayout) {
  // The only bag has four ranks; three tokens can't be spread over it.
  const Profile profile = ruled_profile({1000, 3}, 4, quadratic_cost, 1'000'000);
  const Batch batch = batch_of(profile, {0, 1}, 4);
  expect_no_plan(plan_with(batch, profile, "g4n1"), batch, profile, "sequence 's1', sent to a group of 4 ranks");
  const Plan plan = make_knapformer()->plan(batch, profile, {});
  expect_good_plan(plan, batch, profile);
}

TEST(Knapformer, LayoutsOverTheMemoryCapAreRejected) {
  const Profile roomy = ruled_profile({1000}, 4, quadratic_cost, 4000);
  const Batch batch = batch_of(roomy, {0, 0, 0}, 4);
  expect_good_plan(plan_with(batch, roomy, "g1n4"), batch, roomy);
  const Profile tight = ruled_profile({1000}, 4, quadratic_cost, 800);
  const Plan whole = plan_with(batch, tight, "g1n4");
  expect_no_plan(whole, batch, tight, "OOM: rank 0 needs 1000 bytes, 200 bytes over the memory cap of 800 bytes");
  EXPECT_EQ(whole.status, PlanStatus::unknown);
  const Plan best = make_knapformer()->plan(batch, tight, {});
  expect_good_plan(best, batch, tight);
  EXPECT_EQ(best.solver, "knapformer g4n1");
  const Profile tighter = ruled_profile({1000}, 4, quadratic_cost, 749);
  expect_no_plan(make_knapformer()->plan(batch, tighter, {}), batch, tighter, "OOM");
}

TEST(Knapformer, ALayoutOverFewerRanksIsRepeated) {
  const Profile profile = ruled_profile({1000, 100}, 4, quadratic_cost, 1'000'000);
  const Batch batch = batch_of(profile, {0, 0, 1, 1}, 4);
  const Plan plan = plan_with(batch, profile, "g2n1");
  expect_good_plan(plan, batch, profile);
  EXPECT_EQ(plan.solver, "knapformer g2n1");
  // Dealt in turn: s0 and s2 to ranks 0-1, s1 and s3 to ranks 2-3.
  for (std::size_t s = 0; s < 4; ++s) {
    EXPECT_EQ(plan.placement.sequences[s].ranks.front(), s % 2 == 0 ? 0 : 2) << s;
  }
}

TEST(Knapformer, WrongLayoutsAreRefused) {
  const Profile profile = ruled_profile({1000}, 4, quadratic_cost, 1'000'000);
  const Batch batch = batch_of(profile, {0}, 4);
  EXPECT_THAT(input_error_of([&] { plan_with(batch, profile, "g3n1"); }),
              HasSubstr("layout 'g3n1' covers 3 ranks, which do not divide the batch's 4"));
  EXPECT_THAT(input_error_of([&] { plan_with(batch, profile, "g2n3"); }), HasSubstr("it takes 6 ranks or more"));
  EXPECT_THAT(input_error_of([&] { plan_with(batch, profile, "u4r1"); }), HasSubstr("'g' is expected at character 1"));
  EXPECT_THAT(input_error_of([&] { plan_with(batch, profile, "g1n4+g1n4"); }), HasSubstr("comes twice"));
}

TEST(Knapformer, MissingPricesMakeGroupsUnavailable) {
  const auto no_groups_of_two = [](std::int64_t tokens, Configuration c) -> std::optional<Cost> {
    if (c.degree() == 2) return std::nullopt;
    return quadratic_cost(tokens, c);
  };
  const Profile profile = ruled_profile({1000}, 4, no_groups_of_two, 1'000'000);
  const Batch batch = batch_of(profile, {0, 0, 0, 0}, 4);
  expect_no_plan(plan_with(batch, profile, "g2n2"), batch, profile, "the profile has no price of q1h2k1");
  expect_good_plan(make_knapformer()->plan(batch, profile, {}), batch, profile);
}

}  // namespace
}  // namespace zellige
