// SPDX-License-Identifier: Apache-2.0
// The instance of the paper's Fig. 2: three 720p 10-second videos and 228 720p images on four ranks. The files of
// examples/fig2 are held to what they claim to be, and the baselines to what the caption and section II-C say of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "baseline_cases.h"
#include "plan/baselines.h"

namespace zellige {
namespace {

const std::string kFolder = std::string(ZELLIGE_SOURCE_DIR) + "/examples/fig2/";

Batch fig2_batch() { return read_batch(kFolder + "batch.json"); }

/// The built-in H200 estimate up to four ranks, with a memory limit that does not bind: Fig. 2 shows where tokens go,
/// and the layout g3n1+g1n1 puts more images on rank 0 than a real device holds.
Profile fig2_profile(const Catalog& catalog) {
  Profile profile = built_in_profile("h200", catalog);
  for (BucketIndex bucket = 0; bucket < static_cast<BucketIndex>(catalog.buckets.size()); ++bucket) {
    std::vector<Price> prices(profile.menu(bucket).begin(), profile.menu(bucket).end());
    std::erase_if(prices, [](const Price& price) { return price.config.degree() > 4; });
    profile.set_prices(bucket, prices);
  }
  profile.key.device += " with 256 GB";
  profile.memory_usable = {256'000'000'000};
  return profile;
}

/// What a rank holds: tokens (its chunks', shared evenly), videos and images it has a part of.
struct RankContent {
  double tokens = 0;
  int videos = 0;
  int images = 0;
};
std::array<RankContent, 4> contents(const Plan& plan) {
  std::array<RankContent, 4> ranks{};
  for (const PlacedSequence& sequence : plan.placement.sequences) {
    for (const Rank rank : sequence.ranks) {
      ranks.at(rank).tokens += static_cast<double>(sequence.tokens.value) / sequence.config.degree();
      (sequence.kind == MediaKind::video ? ranks.at(rank).videos : ranks.at(rank).images) += 1;
    }
  }
  return ranks;
}

Plan fig2_plan(std::unique_ptr<Planner> planner, const std::string& layout = {}) {
  const Batch batch = fig2_batch();
  const Profile profile = fig2_profile(batch.catalog);
  PlanOptions options;
  options.layout = layout;
  Plan plan = planner->plan(batch, profile, options);
  testing::expect_good_plan(plan, batch, profile);
  return plan;
}

TEST(Fig2, TheBatchIsThePapers) {
  const Batch batch = fig2_batch();
  EXPECT_EQ(batch.ranks, 4);
  int videos = 0, images = 0;
  for (SequenceIndex s = 0; s < static_cast<SequenceIndex>(batch.sequences.size()); ++s) {
    const bool is_video = batch.bucket_of(s).kind == MediaKind::video;
    EXPECT_EQ(batch.tokens_of(s).value, is_video ? 147'600 : 3600);
    (is_video ? videos : images) += 1;
  }
  EXPECT_EQ(videos, 3);
  EXPECT_EQ(images, 228);
}

TEST(Fig2, TheScriptWritesTheBatch) {
  std::FILE* pipe = popen((std::string(ZELLIGE_PYTHON) + " " + kFolder + "make_batch.py").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string written;
  std::array<char, 4096> buffer{};
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) written.append(buffer.data(), n);
  EXPECT_EQ(pclose(pipe), 0);
  std::ostringstream file;
  file << std::ifstream(kFolder + "batch.json").rdbuf();
  EXPECT_EQ(written, file.str());
}

TEST(Fig2, TheProfileIsTheBuiltInOneWithMoreMemory) {
  const Profile expected = fig2_profile(fig2_batch().catalog);
  if (std::getenv("ZELLIGE_UPDATE_GOLDEN") != nullptr) write_profile(expected, kFolder + "profile.json");
  EXPECT_EQ(read_profile(kFolder + "profile.json"), expected)
      << "after a change of the built-in profile: ZELLIGE_UPDATE_GOLDEN=1 build/tests/zellige_test_plan "
         "--gtest_filter='Fig2.TheProfile*'";
}

TEST(Fig2, NaiveBalancesTokensAndLeavesTheFourthRankWithoutVideo) {
  const auto ranks = contents(fig2_plan(make_naive()));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ranks[rank].videos, 1);
    EXPECT_EQ(ranks[rank].images, 47);
  }
  EXPECT_EQ(ranks[3].videos, 0);
  EXPECT_EQ(ranks[3].images, 87);
  for (const RankContent& rank : ranks) EXPECT_NEAR(rank.tokens, 315'900, 3600);
}

TEST(Fig2, AdaptiveLoadMovesImagesToTheFourthRank) {
  const auto naive = contents(fig2_plan(make_naive()));
  const auto ranks = contents(fig2_plan(make_adaptiveload()));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ranks[rank].videos, 1);
    EXPECT_LT(ranks[rank].images, naive[rank].images);
  }
  EXPECT_EQ(ranks[3].videos, 0);
  EXPECT_GT(ranks[3].images, naive[3].images);
}

TEST(Fig2, UspSplitsEverythingOverAllFour) {
  for (const RankContent& rank : contents(fig2_plan(make_usp()))) {
    EXPECT_EQ(rank.videos, 3);
    EXPECT_EQ(rank.images, 228);
    EXPECT_DOUBLE_EQ(rank.tokens, 315'900);
  }
}

TEST(Fig2, KnapFormerHasASingletonAndAGroupOfThreeWithEveryVideo) {
  const Plan plan = fig2_plan(make_knapformer(), "g3n1+g1n1");
  EXPECT_EQ(plan.solver, "knapformer g3n1+g1n1");
  for (const PlacedSequence& sequence : plan.placement.sequences) {
    if (sequence.kind == MediaKind::video) {
      EXPECT_EQ(sequence.ranks, (std::vector<Rank>{1, 2, 3}));
      EXPECT_EQ(sequence.config, (Configuration{1, 3, 1}));
    } else {
      // A video outweighs a rank's even share, so the group of three is all it can go to, and three of them fill it
      // beyond that share: the images never see it emptier than the singleton.
      EXPECT_EQ(sequence.ranks, (std::vector<Rank>{0}));
    }
  }
  const auto ranks = contents(plan);
  EXPECT_DOUBLE_EQ(ranks[0].tokens, 228 * 3600);
  EXPECT_DOUBLE_EQ(ranks[1].tokens, 147'600);
}

TEST(Fig2, OnARealDeviceThatLayoutIsOutOfMemory) {
  const Batch batch = fig2_batch();
  const Profile profile = built_in_profile("h200", batch.catalog);
  PlanOptions options;
  options.layout = "g3n1+g1n1";
  testing::expect_no_plan(make_knapformer()->plan(batch, profile, options), batch, profile, "OOM: rank 0 needs");
  testing::expect_good_plan(make_knapformer()->plan(batch, profile, {}), batch, profile);
}

}  // namespace
}  // namespace zellige
