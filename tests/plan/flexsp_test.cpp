// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/random.h"
#include "baseline_cases.h"
#include "plan/baselines.h"
#include "zellige/error.h"

namespace zellige {
namespace {

using testing::batch_of;
using testing::Cost;
using testing::expect_good_plan;
using testing::expect_no_plan;
using ::testing::HasSubstr;
using testing::quadratic_cost;
using testing::ruled_profile;

TEST(Flexsp, WithoutOrToolsItSaysSo) {
  const Profile profile = ruled_profile({1000}, 2, quadratic_cost, 10'000);
  PlanOptions options;
  options.ortools = "none";
  try {
    make_flexsp()->plan(batch_of(profile, {0}, 2), profile, options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::solver);
    EXPECT_THAT(error.what(), HasSubstr("[plan.flexsp] this method needs OR-Tools"));
  }
}

class FlexspSolving : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cp_sat(); !why.empty()) GTEST_SKIP() << "needs OR-Tools: " << why;
  }
};

/// The best makespan over all layouts of Ulysses groups of powers of two and all assignments; none: nothing fits.
std::int64_t best_by_hand(const Batch& batch, const Profile& profile, std::vector<int>& sizes, int ranks_left) {
  if (ranks_left > 0) {
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (int size = 1; size <= ranks_left && (sizes.empty() || size <= sizes.back()); size *= 2) {
      sizes.push_back(size);
      best = std::min(best, best_by_hand(batch, profile, sizes, ranks_left - size));
      sizes.pop_back();
    }
    return best;
  }
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  std::vector<std::size_t> group_of(batch.sequences.size(), 0);
  while (true) {
    std::vector<std::int64_t> time(sizes.size(), 0), memory(sizes.size(), 0);
    bool fits = true;
    for (std::size_t s = 0; s < group_of.size() && fits; ++s) {
      const Price* price = profile.find(batch.sequences[s].bucket, {1, sizes[group_of[s]], 1});
      fits = price != nullptr;
      if (!fits) break;
      time[group_of[s]] += price->time.value;
      memory[group_of[s]] += price->memory.value;
    }
    fits = fits && *std::max_element(memory.begin(), memory.end()) <= profile.memory_cap().value;
    if (fits) best = std::min(best, *std::max_element(time.begin(), time.end()));
    std::size_t digit = 0;
    while (digit < group_of.size() && ++group_of[digit] == sizes.size()) group_of[digit++] = 0;
    if (digit == group_of.size()) return best;
  }
}

TEST_F(FlexspSolving, FindsTheBestGroups) {
  int planned = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const int ranks = 1 + static_cast<int>(draw_below(engine, 5));
    std::vector<std::int64_t> lengths;
    for (int b = 0; b < 3; ++b)
      lengths.push_back(b == 0 ? 3 : 100 + static_cast<std::int64_t>(draw_below(engine, 900)));
    std::vector<int> buckets;
    std::int64_t tokens = 0;
    for (std::size_t i = 1 + draw_below(engine, 6); i > 0; --i) {
      buckets.push_back(static_cast<int>(draw_below(engine, 3)));
      tokens += lengths[buckets.back()];
    }
    const std::int64_t cap = tokens * static_cast<std::int64_t>(80 + draw_below(engine, 80)) / 100 / ranks + 1;
    const Profile profile = ruled_profile(lengths, ranks, testing::random_cost_rule(seed), cap);
    const Batch batch = batch_of(profile, buckets, ranks);
    const Plan plan = make_flexsp()->plan(batch, profile, {});
    std::vector<int> sizes;
    const std::int64_t best = best_by_hand(batch, profile, sizes, ranks);
    if (best == std::numeric_limits<std::int64_t>::max()) {
      expect_no_plan(plan, batch, profile, "OOM");
      continue;
    }
    ++planned;
    expect_good_plan(plan, batch, profile);
    EXPECT_EQ(plan.makespan.value, best);
    EXPECT_EQ(testing::why_not_disjoint(plan.placement), "");
    for (const PlacedSequence& sequence : plan.placement.sequences) {
      EXPECT_EQ(sequence.config, (Configuration{1, sequence.config.h, 1}));
    }
  }
  EXPECT_GT(planned, 20);
}

TEST_F(FlexspSolving, NamesItsLayout) {
  // Two videos that need four ranks together and images that fill two more.
  const auto cost = [](std::int64_t tokens, Configuration c) -> std::optional<Cost> {
    return Cost{tokens / c.degree() + 3 * (c.degree() - 1), 1};
  };
  const Profile profile = ruled_profile({2000, 500}, 4, cost, 1000);
  const Batch batch = batch_of(profile, {0, 0, 1, 1, 1, 1}, 6);
  const Plan plan = make_flexsp()->plan(batch, profile, {});
  expect_good_plan(plan, batch, profile);
  EXPECT_EQ(plan.solver, "flexsp g2n2+g1n2");
  EXPECT_EQ(plan.makespan.value, 1003);
}

TEST_F(FlexspSolving, TakesNoLayout) {
  const Profile profile = ruled_profile({1000}, 2, quadratic_cost, 10'000);
  PlanOptions options;
  options.layout = "g1n2";
  EXPECT_THAT(testing::input_error_of([&] { make_flexsp()->plan(batch_of(profile, {0}, 2), profile, options); }),
              HasSubstr("[plan.flexsp] layout 'g1n2': this method takes none"));
}

}  // namespace
}  // namespace zellige
