// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "report/example_plans.h"
#include "zellige/report.h"

namespace zellige {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using namespace zellige::testing;

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

TEST(TextPicture, DrawsTheWorkedPlan) {
  // Of 76 columns 59 are the bar's; 3.270 s of 3.564 s are the video's shard: 54 of them. The images' 5 follow.
  const std::string bar = std::string(54, '/') + "=====";
  EXPECT_EQ(text_picture(worked_plan(), 76), "rank 0 |" + bar + "| 3.564 s\nrank 1 |" + bar +
                                                 "| 3.564 s\n/\\ shards of videos  # whole videos  : shards of images  "
                                                 "= whole images\n");
}

TEST(TextPicture, BarsAreProportionalToTheLoad) {
  const Batch batch = many_images(3, 30'000);
  const Profile profile = built_in_profile("h200", batch.catalog);
  const Plan plan = dealt_out(batch, profile, "whole");
  const auto drawn = lines(text_picture(plan, 120));
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_LE(drawn[rank].size(), 120u);
    const auto filled =
        std::count_if(drawn[rank].begin(), drawn[rank].end(), [](char c) { return c == '=' || c == '#'; });
    const auto columns = static_cast<double>(drawn[rank].rfind('|') - drawn[rank].find('|') - 1);
    EXPECT_NEAR(static_cast<double>(filled) / columns,
                static_cast<double>(plan.load[rank].value) / static_cast<double>(plan.makespan.value), 1 / columns);
  }
  EXPECT_THAT(drawn[0], HasSubstr("#"));
  EXPECT_THAT(text_picture(split_over_all(batch, profile, "split"), 120), HasSubstr("/::::"));
}

TEST(TextPicture, NeighbouringVideosDiffer) {
  Batch batch = many_images(2, 0);
  batch.sequences.push_back({"v1", 1, ""});
  const Profile profile = built_in_profile("h200", batch.catalog);
  EXPECT_THAT(text_picture(split_over_all(batch, profile, "split"), 80), HasSubstr("//\\\\"));
}

TEST(TextPicture, NarrowTerminalsAndManyRanks) {
  EXPECT_THAT(lines(text_picture(worked_plan(), 1))[0], HasSubstr("rank 0 |/////////=| 3.564 s"));
  const Batch batch = many_images(100, 500);
  const Plan plan = dealt_out(batch, built_in_profile("h200", batch.catalog), "whole");
  const auto drawn = lines(text_picture(plan, 80));
  ASSERT_EQ(drawn.size(), kRanksShown + 2u);
  EXPECT_THAT(drawn[kRanksShown], HasSubstr("and 68 more ranks, "));
  EXPECT_EQ(drawn[9].substr(0, 9), "rank  9 |");
  EXPECT_EQ(lines(text_picture(plan, 80, 100)).size(), 101u);
}

TEST(TextPicture, SaysWhyThereIsNoPlan) {
  EXPECT_EQ(text_picture(failed("zellige", "rank 0 is over"), 80), "no plan (infeasible): rank 0 is over\n");
  EXPECT_EQ(text_picture(failed("zellige", ""), 80), "no plan (infeasible)\n");
}

TEST(TextPicture, IdleRanksAreEmpty) {
  Plan idle;
  idle.status = PlanStatus::optimal;
  idle.placement.ranks = 1;
  EXPECT_THAT(text_picture(idle, 40), ::testing::StartsWith("rank 0 |" + std::string(26, ' ') + "| 0 us\n"));
}

}  // namespace
}  // namespace zellige
