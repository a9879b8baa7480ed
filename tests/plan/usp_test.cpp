// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "baseline_cases.h"
#include "plan/baselines.h"

namespace zellige {
namespace {

using testing::batch_of;
using testing::Cost;
using testing::expect_good_plan;
using testing::expect_no_plan;
using ::testing::HasSubstr;
using testing::ruled_profile;

/// Rings are dear, all-gathers cheapest (and not USP's).
std::optional<Cost> ring_is_dear(std::int64_t tokens, Configuration c) {
  return Cost{tokens * (100 + 10 * (c.k - 1) + c.h) / (100 * c.degree()) + 1, tokens / c.degree() + 1};
}

TEST(Usp, EverySequenceOnAllRanksOfTheBestGrid) {
  const Profile profile = ruled_profile({10'000, 700}, 8, ring_is_dear, 1'000'000);
  const Batch batch = batch_of(profile, {1, 0, 1, 1}, 8);
  const Plan plan = make_usp()->plan(batch, profile, {});
  expect_good_plan(plan, batch, profile);
  // 8 does not divide 12 heads, so u4r2 is the grid with the shortest ring.
  EXPECT_EQ(plan.solver, "usp u4r2");
  std::vector<Rank> all(8);
  std::iota(all.begin(), all.end(), 0);
  for (const PlacedSequence& sequence : plan.placement.sequences) {
    EXPECT_EQ(sequence.config, (Configuration{1, 4, 2}));
    EXPECT_EQ(sequence.ranks, all);
  }
  // Grids that can be named: no other is better.
  for (const char* grid : {"u4r2", "u2r4", "u1r8"}) {
    PlanOptions options;
    options.layout = grid;
    const Plan other = make_usp()->plan(batch, profile, options);
    expect_good_plan(other, batch, profile);
    EXPECT_EQ(other.solver, std::string("usp ") + grid);
    EXPECT_GE(other.makespan, plan.makespan);
  }
}

TEST(Usp, OneRankKeepsAllWhole) {
  const Profile profile = ruled_profile({100}, 1, ring_is_dear, 1'000'000);
  const Batch batch = batch_of(profile, {0, 0}, 1);
  const Plan plan = make_usp()->plan(batch, profile, {});
  expect_good_plan(plan, batch, profile);
  EXPECT_EQ(plan.split_count, 0);
  EXPECT_EQ(plan.status, PlanStatus::optimal);
}

TEST(Usp, OneShortSequenceSpoilsTheBatch) {
  const Profile profile = ruled_profile({10'000, 3}, 8, ring_is_dear, 1'000'000);
  const Batch batch = batch_of(profile, {0, 1}, 4);
  const Plan plan = make_usp()->plan(batch, profile, {});
  expect_no_plan(plan, batch, profile, "bucket 'b1'");
  EXPECT_EQ(plan.status, PlanStatus::unknown);
}

TEST(Usp, OverTheMemoryCap) {
  const Profile profile = ruled_profile({10'000}, 4, ring_is_dear, 10'001);
  const Batch batch = batch_of(profile, {0, 0, 0, 0, 0}, 4);
  expect_no_plan(make_usp()->plan(batch, profile, {}), batch, profile, "OOM");
}

TEST(Usp, MemoryIsNamedBeforeIllegalGrids) {
  const auto only_rings_fit_badly = [](std::int64_t tokens, Configuration c) -> std::optional<Cost> {
    return Cost{tokens, c.k > 1 ? 600 : 10};
  };
  const Profile profile = ruled_profile({10'000}, 8, only_rings_fit_badly, 1000);
  const Batch batch = batch_of(profile, {0, 0}, 8);
  const Plan plan = make_usp()->plan(batch, profile, {});
  expect_no_plan(plan, batch, profile, "head split 8 does not divide 12 heads");
  EXPECT_TRUE(plan.reason.starts_with("OOM: rank 0 needs 1200 bytes")) << plan.reason;
  EXPECT_EQ(plan.status, PlanStatus::unknown);
}

TEST(Usp, MissingPriceIsNamed) {
  const auto whole_only = [](std::int64_t, Configuration c) -> std::optional<Cost> {
    if (!c.is_whole()) return std::nullopt;
    return Cost{10, 10};
  };
  const Profile profile = ruled_profile({100}, 2, whole_only, 1000);
  const Batch batch = batch_of(profile, {0}, 2);
  expect_no_plan(make_usp()->plan(batch, profile, {}), batch, profile, "the profile has no price of q1h2k1");
}

TEST(Usp, WrongGridsAreRefused) {
  const Profile profile = ruled_profile({100}, 4, ring_is_dear, 1'000'000);
  const Batch batch = batch_of(profile, {0}, 4);
  for (const char* grid : {"u3r1", "u4", "u2r2 ", "r2u2", "g4n1", "u8r1", "u0r4"}) {
    PlanOptions options;
    options.layout = grid;
    EXPECT_THAT(testing::input_error_of([&] { make_usp()->plan(batch, profile, options); }),
                HasSubstr("layout '" + std::string(grid) +
                          "' is no Ulysses x ring grid of 4 ranks; there are u4r1, u2r2, u1r4"));
  }
}

}  // namespace
}  // namespace zellige
