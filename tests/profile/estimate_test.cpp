// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/refusal.h"
#include "catalog/scratch.h"
#include "profile/transformer_work.h"
#include "zellige/error.h"
#include "zellige/profile.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using zellige::testing::refusal;
using zellige::testing::Scratch;

Catalog evaluation_catalog() {
  // Both durations: the suites of 10 and of 15 seconds.
  Catalog catalog = make_workload("high:V50").catalog;
  for (const Bucket& bucket : make_workload("a800x16:V50").catalog.buckets) {
    if (!catalog.find(bucket.name)) catalog.buckets.push_back(bucket);
  }
  std::sort(catalog.buckets.begin(), catalog.buckets.end(),
            [](const Bucket& a, const Bucket& b) { return a.tokens < b.tokens; });
  return catalog;
}

double price_us(const Profile& profile, const char* bucket, Configuration c) {
  return static_cast<double>(profile.find(*profile.catalog.find(bucket), c)->time.value);
}

TEST(ParameterCount, IsThatOfThePublishedModel) {
  EXPECT_EQ(parameter_count(model_preset("wan2.1-t2v-1.3b")), 1'418'996'800);
  EXPECT_NEAR(static_cast<double>(parameter_count(model_preset("wan2.1-t2v-14b"))), 14.3e9, 0.3e9);
}

TEST(LayerWork, IsThePublishedFormula) {
  const double s = 3600, t = 512, d = 1536, f = 8960;  // 8SD^2 + 4S^2D + 4SD^2 + 4TD^2 + 4STD + 4SDF
  const ModelGeometry wan = model_preset("wan2.1-t2v-1.3b");
  const LayerWork work = layer_work(wan, s);
  EXPECT_DOUBLE_EQ(work.projections, 8 * s * d * d + 4 * s * d * d + 4 * t * d * d);
  EXPECT_DOUBLE_EQ(work.feed_forward, 4 * s * d * f);
  EXPECT_DOUBLE_EQ(work.cross_attention, 4 * s * t * d);
  EXPECT_DOUBLE_EQ(attention_work(wan, {3600}), 4 * s * s * d);
}

class BuiltInProfile : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Devices, BuiltInProfile, ::testing::ValuesIn(built_in_profile_names()));

TEST_P(BuiltInProfile, PricesEveryLegalConfigurationUpToDegree16AsEstimated) {
  const Catalog catalog = evaluation_catalog();
  const Profile profile = built_in_profile(GetParam(), catalog);
  ASSERT_GT(profile.memory_cap().value, 0);
  EXPECT_GT(profile.step_base.value, 0);
  for (std::size_t i = 0; i < catalog.buckets.size(); ++i) {
    const auto legal = menu(catalog.model, catalog.buckets[i].tokens, 16, Menu::all);
    EXPECT_EQ(profile.menu(static_cast<BucketIndex>(i)).size(), legal.size());
    for (const Configuration c : legal) {
      const Price* price = profile.find(static_cast<BucketIndex>(i), c);
      ASSERT_NE(price, nullptr) << text(c);
      EXPECT_EQ(price->source, PriceSource::estimated);
      EXPECT_FALSE(price->spread);
      EXPECT_GE(price->time.value, 1);
      EXPECT_GE(price->time, price->exchange);
      EXPECT_EQ(price->exchange.value > 0, !c.is_whole());
      EXPECT_GT(price->memory.value, 0);
    }
  }
}

TEST_P(BuiltInProfile, SurvivesItsFile) {
  const Profile profile = built_in_profile(GetParam(), evaluation_catalog());
  const Scratch scratch;
  write_profile(profile, scratch.path("p.json"));
  EXPECT_EQ(read_profile(scratch.path("p.json")), profile);
}

TEST_P(BuiltInProfile, PricesGrowWithTheLength) {
  const Profile profile = built_in_profile(GetParam(), evaluation_catalog());
  for (const Price& price : profile.menu(0)) {
    for (std::size_t i = 1; i < profile.catalog.buckets.size(); ++i) {
      const Price& shorter = *profile.find(static_cast<BucketIndex>(i - 1), price.config);
      const Price& longer = *profile.find(static_cast<BucketIndex>(i), price.config);
      EXPECT_GT(longer.time, shorter.time) << text(price.config) << " " << profile.catalog.buckets[i].name;
      EXPECT_GT(longer.memory, shorter.memory) << text(price.config) << " " << profile.catalog.buckets[i].name;
    }
  }
}

TEST_P(BuiltInProfile, AShardOfAnImageCostsMoreThanItsShare) {
  const Profile profile = built_in_profile(GetParam(), evaluation_catalog());
  for (const char* image : {"256p", "480p", "720p", "1080p"}) {
    for (const Price& price : profile.menu(*profile.catalog.find(image))) {
      if (price.config.is_whole()) continue;
      const double share = price_us(profile, image, {1, 1, 1}) / price.config.degree();
      EXPECT_GT(static_cast<double>(price.time.value), share) << image << " " << text(price.config);
    }
  }
}

TEST_P(BuiltInProfile, SplittingALongVideoPaysWithinANode) {
  const Profile profile = built_in_profile(GetParam(), evaluation_catalog());
  for (const char* video : {"720p10s", "1080p10s", "1080p15s"}) {
    const double whole = price_us(profile, video, {1, 1, 1});
    for (const Configuration c : {Configuration{1, 2, 1}, {1, 4, 1}, {2, 4, 1}, {1, 4, 2}}) {
      const double share = whole / c.degree();
      EXPECT_GT(price_us(profile, video, c), 0.93 * share) << video << " " << text(c);
      EXPECT_LT(price_us(profile, video, c), 1.35 * share) << video << " " << text(c);
    }
  }
}

TEST_P(BuiltInProfile, WithoutCheckpointingStepsAreFasterAndLarger) {
  const Profile with = built_in_profile(GetParam(), evaluation_catalog(), true);
  const Profile without = built_in_profile(GetParam(), evaluation_catalog(), false);
  EXPECT_TRUE(with.key.checkpointing);
  EXPECT_FALSE(without.key.checkpointing);
  for (std::size_t i = 0; i < with.catalog.buckets.size(); ++i) {
    for (const Price& price : with.menu(static_cast<BucketIndex>(i))) {
      const Price& other = *without.find(static_cast<BucketIndex>(i), price.config);
      EXPECT_LT(other.time, price.time) << text(price.config);
      EXPECT_GT(other.memory, price.memory) << text(price.config);
    }
  }
}

TEST(BuiltInProfile, RingIsDearestAndUlyssesCheapestForVideosOnNvlink) {
  const Profile profile = built_in_profile("h200", evaluation_catalog());
  for (const char* video : {"480p10s", "720p10s", "1080p10s", "480p15s", "720p15s", "1080p15s"}) {
    for (const int n : {2, 3, 4, 6}) {
      SCOPED_TRACE(std::string(video) + " over " + std::to_string(n));
      EXPECT_LT(price_us(profile, video, {1, n, 1}), price_us(profile, video, {n, 1, 1}));
      EXPECT_LT(price_us(profile, video, {n, 1, 1}), price_us(profile, video, {1, 1, n}));
    }
  }
}

TEST(BuiltInProfile, ExchangesOfTheWorkedVideoTakeTheirBytesAndTheirLatencies) {
  const Profile profile = built_in_profile("h200", evaluation_catalog());
  // The design's example: 53,587 us of bytes alone for q1h2k1. Here also A, B twice and A', B', 40 us each, 30 layers.
  EXPECT_EQ(profile.find(*profile.catalog.find("480p10s"), {1, 2, 1})->exchange.value, 53587 + 30 * 6 * 40);
}

TEST(BuiltInProfile, HighV50OnH200IsPlausible) {
  const Batch batch = make_workload("high:V50");
  const Profile profile = built_in_profile("h200", batch.catalog);
  double whole_us = 0, operations = 0;
  Bytes memory;
  for (const BucketIndex bucket : match_buckets(batch, profile)) {
    whole_us += static_cast<double>(profile.whole(bucket).time.value);
    memory += profile.whole(bucket).memory;
    const double s = static_cast<double>(profile.catalog.buckets[bucket].tokens.value), t = 512, d = 1536, f = 8960;
    operations += 30 * (3 * (12 * s * d * d + 4 * t * d * d + 4 * s * d * f) + 3.5 * (4 * s * s * d + 4 * s * t * d));
  }
  EXPECT_GT(whole_us / 8, 30e6);
  EXPECT_LT(whole_us / 8, 120e6);
  // Useful work (recomputation not counted) over the card's 989 TFLOP/s dense peak in bf16.
  const double utilisation = operations / (whole_us * 989e6);
  EXPECT_GT(utilisation, 0.35);
  EXPECT_LT(utilisation, 0.65);
  EXPECT_LT(memory.value / 8, profile.memory_cap().value);
}

TEST(BuiltInProfile, WholeSequencesThatDoNotFitArePricedToo) {
  const Profile profile = built_in_profile("a6000", evaluation_catalog());
  const Price& whole = profile.whole(*profile.catalog.find("1080p15s"));
  EXPECT_GT(whole.memory, profile.memory_cap());
  EXPECT_GE(whole.time.value, 1);
}

TEST(BuiltInProfile, PricesAllRanksTogetherWhereThereAreMoreThan16) {
  const Catalog catalog = evaluation_catalog();
  const Profile profile = built_in_profile("a6000", catalog, true, 32);
  const BucketIndex video = *catalog.find("1080p15s");
  int over_all = 0;
  for (const Price& price : profile.menu(video)) {
    EXPECT_TRUE(price.config.degree() <= 16 || price.config.degree() == 32) << text(price.config);
    over_all += price.config.degree() == 32;
  }
  EXPECT_EQ(over_all, 6 + 5 + 4);  // h = 1, 2, 4; the rest of 32 over q and k
  EXPECT_EQ(built_in_profile("a6000", catalog, true, 8), built_in_profile("a6000", catalog));
}

TEST(BuiltInProfile, AShortSequenceHasFewerConfigurations) {
  Catalog catalog{model_preset("tiny"), {}};
  catalog.buckets.push_back({"dot", MediaKind::image, 1, 32, 32, sequence_tokens(catalog.model, 1, 32, 32)});
  ASSERT_EQ(catalog.buckets[0].tokens.value, 4);
  const Profile profile = built_in_profile("cpu", catalog);
  EXPECT_EQ(profile.menu(0).back().config.degree(), 4);
  EXPECT_GE(profile.whole(0).time.value, 1);
}

TEST(BuiltInProfile, RefusalsSayWhatWouldBeRight) {
  const Catalog catalog = evaluation_catalog();
  EXPECT_THAT(refusal([&] { built_in_profile("h100", catalog); }),
              HasSubstr("device 'h100' has no built-in profile; there are: h200, a800, a6000, cpu"));
  Catalog large = catalog;
  large.model = model_preset("wan2.1-t2v-14b");
  EXPECT_THAT(refusal([&] { built_in_profile("a6000", large); }), HasSubstr("NVIDIA RTX A6000 has 49000000000 usable"));
  Catalog endless = catalog;
  endless.buckets[0].tokens.value = std::int64_t{1} << 50;
  EXPECT_THAT(refusal([&] { built_in_profile("h200", endless); }), HasSubstr("too large"));
}

}  // namespace
}  // namespace zellige
