// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "baseline_cases.h"
#include "plan/baselines.h"
#include "plan/fitted_work.h"

namespace zellige {
namespace {

using testing::batch_of;
using testing::Cost;
using testing::expect_good_plan;
using testing::expect_no_plan;
using ::testing::HasSubstr;
using testing::ruled_profile;

/// tokens^2, exactly what the method's model can say.
std::optional<Cost> square(std::int64_t tokens, Configuration c) {
  return Cost{std::max<std::int64_t>(1, tokens * tokens / c.degree()), (tokens + c.degree() - 1) / c.degree()};
}

TEST(AdaptiveLoad, BalancesFittedWorkInsteadOfTokens) {
  // One video weighs as much as 100 images. Token balance would give each rank 10 images more or less evenly.
  const Profile profile = ruled_profile({1000, 100}, 1, square, 1'000'000);
  std::vector<int> buckets = {0};
  buckets.insert(buckets.end(), 100, 1);
  const Batch batch = batch_of(profile, buckets, 2);
  const Plan plan = make_adaptiveload()->plan(batch, profile, {});
  expect_good_plan(plan, batch, profile);
  EXPECT_EQ(plan.load, (std::vector<Microseconds>{{1'000'000}, {1'000'000}}));
  EXPECT_EQ(plan.status, PlanStatus::optimal);
  EXPECT_EQ(plan.split_count, 0);
}

TEST(AdaptiveLoad, TheMemoryLimitHoldsImagesBack) {
  // As above, but a rank holds 6,000 tokens: 60 images on one, 40 beside the video.
  const Profile profile = ruled_profile({1000, 100}, 1, square, 6000);
  std::vector<int> buckets = {0};
  buckets.insert(buckets.end(), 100, 1);
  const Batch batch = batch_of(profile, buckets, 2);
  const Plan plan = make_adaptiveload()->plan(batch, profile, {});
  expect_good_plan(plan, batch, profile);
  EXPECT_EQ(plan.memory, (std::vector<Bytes>{{5000}, {6000}}));
  EXPECT_EQ(plan.load, (std::vector<Microseconds>{{1'400'000}, {600'000}}));
}

TEST(AdaptiveLoad, ExchangesRepairWhatLongestFirstLeaves) {
  // Work 16, 16, 9, 9, 9 on two ranks: longest first ends at 16 + 9 + 9 | 16 + 9, the best is 16 + 16 | 9 + 9 + 9.
  const auto small_square = [](std::int64_t tokens, Configuration) -> std::optional<Cost> {
    return Cost{tokens * tokens, 1};
  };
  const Profile profile = ruled_profile({4, 3}, 1, small_square, 100);
  const Batch batch = batch_of(profile, {0, 0, 1, 1, 1}, 2);
  const Plan plan = make_adaptiveload()->plan(batch, profile, {});
  expect_good_plan(plan, batch, profile);
  EXPECT_EQ(plan.makespan.value, 32);
}

TEST(AdaptiveLoad, TightMemoryIsPackedAnotherWay) {
  // Longest first: 6 | 5, then 4 beside 5 and 4 beside 6, and 3 finds no room. All fits only as 6 + 5 | 4 + 4 + 3.
  const Profile profile = ruled_profile({6, 5, 4, 3}, 1, square, 11);
  const Batch batch = batch_of(profile, {0, 1, 2, 2, 3}, 2);
  const Plan plan = make_adaptiveload()->plan(batch, profile, {});
  expect_good_plan(plan, batch, profile);
  EXPECT_EQ(plan.memory, (std::vector<Bytes>{{11}, {11}}));
}

TEST(AdaptiveLoad, AVideoThatFitsNoRankWhole) {
  const Profile profile = ruled_profile({1000, 100}, 2, square, 900);
  const Batch batch = batch_of(profile, {1, 0}, 2);
  const Plan plan = make_adaptiveload()->plan(batch, profile, {});
  expect_no_plan(plan, batch, profile, "OOM: sequence 's1' kept whole needs 1000 bytes, over the memory cap of 900");
  EXPECT_EQ(plan.status, PlanStatus::unknown) << "split in two it would fit";
}

TEST(AdaptiveLoad, TakesNoLayout) {
  const Profile profile = ruled_profile({100}, 1, square, 1000);
  PlanOptions options;
  options.layout = "g1n1";
  EXPECT_THAT(testing::input_error_of([&] { make_adaptiveload()->plan(batch_of(profile, {0}, 1), profile, options); }),
              HasSubstr("[plan.adaptiveload] layout 'g1n1': this method takes none"));
}

TEST(AdaptiveLoad, NoSingleMoveOrExchangeIsLeft) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    std::vector<std::int64_t> lengths;
    for (int b = 0; b < 3; ++b) lengths.push_back(10 + static_cast<std::int64_t>(draw_below(engine, 90)));
    const Profile profile = ruled_profile(lengths, 1, square, 400);
    std::vector<int> buckets;
    for (std::size_t i = 2 + draw_below(engine, 12); i > 0; --i)
      buckets.push_back(static_cast<int>(draw_below(engine, 3)));
    const Batch batch = batch_of(profile, buckets, 3);
    const Plan plan = make_adaptiveload()->plan(batch, profile, {});
    if (!plan.has_placement()) continue;
    expect_good_plan(plan, batch, profile);
    const PowerLaw model = fit_power_law(whole_prices(profile));
    std::vector<double> work(3, 0);
    for (const PlacedSequence& s : plan.placement.sequences)
      work[s.ranks[0]] += model(static_cast<double>(s.tokens.value));
    const auto busiest = static_cast<Rank>(std::max_element(work.begin(), work.end()) - work.begin());
    const auto expect_no_gain = [&](Rank other, double passed, std::int64_t memory) {
      if (plan.memory[other].value + memory > 400 || plan.memory[busiest].value - memory > 400) return;
      EXPECT_GE(std::max(work[busiest] - passed, work[other] + passed), work[busiest] * (1 - 1e-8));
    };
    for (const PlacedSequence& given : plan.placement.sequences) {
      if (given.ranks[0] != busiest) continue;
      const double weight = model(static_cast<double>(given.tokens.value));
      for (Rank other = 0; other < 3; ++other) {
        if (other != busiest) expect_no_gain(other, weight, given.memory.value);
      }
      for (const PlacedSequence& taken : plan.placement.sequences) {
        if (taken.ranks[0] == busiest) continue;
        expect_no_gain(taken.ranks[0], weight - model(static_cast<double>(taken.tokens.value)),
                       given.memory.value - taken.memory.value);
      }
    }
  }
}

}  // namespace
}  // namespace zellige
