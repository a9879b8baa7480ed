// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/refusal.h"
#include "zellige/manifest.h"

namespace zellige {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using zellige::testing::refusal;

BucketRules rules_of(std::vector<RuleBucket> buckets) {
  BucketRules rules;
  rules.path = "rules.toml";
  rules.model = model_preset("wan2.1-t2v-1.3b");
  rules.buckets = std::move(buckets);
  return rules;
}

Sample sample_of(MediaKind kind, int frames, int height, int width, std::optional<double> fps = std::nullopt) {
  Sample sample;
  sample.path = "sample";
  sample.kind = kind;
  sample.frames = frames;
  sample.height = height;
  sample.width = width;
  sample.fps = fps;
  return sample;
}

Manifest manifest_of(std::vector<Sample> samples) {
  Manifest manifest;
  manifest.path = "m.csv";
  manifest.samples = std::move(samples);
  for (std::size_t i = 0; i < manifest.samples.size(); ++i) manifest.samples[i].row = static_cast<std::int64_t>(i) + 1;
  return manifest;
}

/// Name of the bucket that a sample gets, or why none.
std::string place(const BucketRules& rules, const Sample& sample) {
  const BucketedSamples result = apply_rules(manifest_of({sample}), rules);
  if (result.bucket_of[0] < 0) return result.skipped.at(0).reason;
  return result.catalog.buckets[result.bucket_of[0]].name;
}

const BucketRules kRules = rules_of({{"256p", MediaKind::image, 256, 256, 1, false},
                                     {"480p", MediaKind::image, 480, 832, 1, true},
                                     {"720p", MediaKind::image, 720, 1280, 1, false},
                                     {"480p1s", MediaKind::video, 480, 832, 17, true},
                                     {"480p5s", MediaKind::video, 480, 832, 81, false},
                                     {"720p1s", MediaKind::video, 720, 1280, 17, false}});

TEST(Bucketing, ClosestAspectThenFramesThenPixels) {
  EXPECT_EQ(place(kRules, sample_of(MediaKind::image, 1, 256, 256)), "256p");
  EXPECT_EQ(place(kRules, sample_of(MediaKind::image, 1, 2000, 2000)), "256p") << "the square one is closest";
  EXPECT_EQ(place(kRules, sample_of(MediaKind::image, 1, 1080, 1920)), "720p");
  EXPECT_EQ(place(kRules, sample_of(MediaKind::image, 1, 719, 1280)), "480p") << "720p would be upscaling";
  EXPECT_EQ(place(kRules, sample_of(MediaKind::image, 1, 832, 480)), "480p-portrait");
  EXPECT_EQ(place(kRules, sample_of(MediaKind::image, 1, 1920, 1080)), "480p-portrait");
  EXPECT_EQ(place(kRules, sample_of(MediaKind::video, 81, 1080, 1920)), "480p5s") << "more frames before more pixels";
  EXPECT_EQ(place(kRules, sample_of(MediaKind::video, 80, 1080, 1920)), "720p1s");
  EXPECT_EQ(place(kRules, sample_of(MediaKind::video, 80, 480, 832)), "480p1s");
  EXPECT_EQ(place(kRules, sample_of(MediaKind::video, 500, 832, 480)), "480p1s-portrait");
}

TEST(Bucketing, WhatFitsNowhereSaysWhy) {
  EXPECT_EQ(place(kRules, sample_of(MediaKind::video, 16, 1080, 1920)),
            "16 frames are fewer than those of every video bucket: 17 or more");
  EXPECT_EQ(place(kRules, sample_of(MediaKind::video, 81, 448, 832)),
            "size 448x832 is below that of every video bucket of at most 81 frames");
  EXPECT_EQ(place(kRules, sample_of(MediaKind::image, 1, 240, 256)),
            "size 240x256 is below that of every image bucket");
  EXPECT_EQ(place(rules_of({{"a", MediaKind::image, 256, 256, 1, false}}), sample_of(MediaKind::video, 81, 480, 832)),
            "the rules have no video bucket");
}

TEST(Bucketing, VideosAreResampledWhereBothRatesAreKnown) {
  BucketRules rules = kRules;
  rules.fps = 16;
  EXPECT_EQ(place(rules, sample_of(MediaKind::video, 81, 480, 832)), "480p5s") << "rate not known: as it is";
  EXPECT_EQ(place(rules, sample_of(MediaKind::video, 81, 480, 832, 16)), "480p5s");
  EXPECT_EQ(place(rules, sample_of(MediaKind::video, 81, 480, 832, 8)), "480p5s") << "no frames are invented";
  EXPECT_EQ(place(rules, sample_of(MediaKind::video, 152, 480, 832, 30)), "480p5s");  // 81.07
  EXPECT_EQ(place(rules, sample_of(MediaKind::video, 151, 480, 832, 30)), "480p1s");  // 80.5
  EXPECT_EQ(place(rules, sample_of(MediaKind::video, 243, 480, 832, 48)), "480p5s");  // exactly 81
  EXPECT_THAT(place(rules, sample_of(MediaKind::video, 31, 480, 832, 30)),
              HasSubstr("31 frames (16 at 16 fps) are fewer"));
}

TEST(Bucketing, MaxTokensLeavesBucketsOutAndSaysSo) {
  BucketRules rules = kRules;
  rules.notes = {"from the file"};
  rules.max_tokens = Tokens{20'000};
  const BucketedSamples result = apply_rules(manifest_of({sample_of(MediaKind::video, 81, 1080, 1920)}), rules);
  EXPECT_THAT(result.notes,
              ElementsAre("from the file", "bucket '480p5s' has 32760 tokens, above max_tokens 20000: left out"));
  EXPECT_EQ(result.catalog.buckets[result.bucket_of[0]].name, "720p1s");
  for (const Bucket& bucket : result.catalog.buckets) EXPECT_LE(bucket.tokens.value, 20'000);
  rules.max_tokens = Tokens{100};
  EXPECT_THAT(refusal([&] { apply_rules(manifest_of({}), rules); }), HasSubstr("leaves no bucket"));
}

TEST(Bucketing, NothingIsLostAndTheCatalogIsWhole) {
  Manifest manifest = manifest_of({sample_of(MediaKind::image, 1, 256, 256), sample_of(MediaKind::image, 1, 10, 10),
                                   sample_of(MediaKind::video, 81, 480, 832)});
  manifest.samples[0].height.reset();
  manifest.samples[0].why_unusable = "height unknown: height is empty";
  manifest.samples[2].row = 5;
  manifest.skipped = {{4, "x", "the row is empty"}};
  const BucketedSamples result = apply_rules(manifest, kRules);
  EXPECT_THAT(result.bucket_of, ElementsAre(-1, -1, *result.catalog.find("480p5s")));
  ASSERT_EQ(result.skipped.size(), 3u);
  EXPECT_EQ(result.skipped[0].reason, "height unknown: height is empty");
  EXPECT_EQ(result.skipped[1].row, 2);
  EXPECT_EQ(result.skipped[2].reason, "the row is empty");
  std::string names;
  for (const Bucket& bucket : result.catalog.buckets) names += bucket.name + " ";
  EXPECT_EQ(names, "256p 480p 480p-portrait 720p 480p1s 480p1s-portrait 480p5s 720p1s ");
  EXPECT_EQ(result.catalog.buckets[2].height, 832);
  EXPECT_EQ(std::accumulate(result.count.begin(), result.count.end(), std::int64_t{0}), 1);
}

TEST(Bucketing, OnUnfitErrorNamesTheSample) {
  BucketRules rules = kRules;
  rules.on_unfit = OnUnfit::error;
  EXPECT_EQ(refusal([&] { apply_rules(manifest_of({sample_of(MediaKind::image, 1, 256, 256)}), rules); }),
            "nothing was refused");
  EXPECT_THAT(refusal([&] {
                apply_rules(
                    manifest_of({sample_of(MediaKind::image, 1, 256, 256), sample_of(MediaKind::image, 1, 10, 10)}),
                    rules);
              }),
              HasSubstr("'m.csv' row 2 (sample): size 10x10 is below that of every image bucket"));
}

TEST(Bucketing, TwoBucketsOfOneNameAreRefused) {
  const BucketRules rules =
      rules_of({{"a", MediaKind::image, 256, 512, 1, true}, {"a-portrait", MediaKind::image, 256, 256, 1, false}});
  EXPECT_THAT(refusal([&] { apply_rules(manifest_of({}), rules); }), HasSubstr("are named 'a-portrait'"));
}

// The rule restated: no bucket that the sample fills is clearly closer in aspect, and of the equally close ones none
// has more frames, or as many and more pixels.
TEST(Bucketing, RandomSamplesGetTheBucketThatTheRuleNames) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto between = [&](int least, int most) { return least + static_cast<int>(random() % (most - least + 1)); };
    std::vector<RuleBucket> buckets;
    for (int i = between(1, 12); i > 0; --i) {
      const bool video = between(0, 1) == 1;
      buckets.push_back({std::string("b").append(std::to_string(i)), video ? MediaKind::video : MediaKind::image,
                         16 * between(4, 40), 16 * between(4, 40), video ? 4 * between(0, 20) + 1 : 1,
                         between(0, 1) == 1});
    }
    const BucketRules rules = rules_of(buckets);
    std::vector<Sample> samples;
    for (int i = 0; i < 200; ++i) {
      const bool video = between(0, 1) == 1;
      samples.push_back(sample_of(video ? MediaKind::video : MediaKind::image, video ? between(1, 90) : 1,
                                  between(50, 800), between(50, 800)));
    }
    const Manifest manifest = manifest_of(samples);
    const BucketedSamples result = apply_rules(manifest, rules);
    std::size_t skipped = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const Sample& s = samples[i];
      const auto distance = [&](const Bucket& b) {
        return std::abs(std::log(static_cast<double>(b.height) / b.width) -
                        std::log(static_cast<double>(*s.height) / *s.width));
      };
      const auto filled = [&](const Bucket& b) {
        return b.kind == s.kind && b.frames <= *s.frames && b.height <= *s.height && b.width <= *s.width;
      };
      double closest = 1e9;
      for (const Bucket& b : result.catalog.buckets) {
        if (filled(b)) closest = std::min(closest, distance(b));
      }
      if (result.bucket_of[i] < 0) {
        EXPECT_EQ(closest, 1e9);
        ++skipped;
        continue;
      }
      const Bucket& got = result.catalog.buckets[result.bucket_of[i]];
      EXPECT_TRUE(filled(got));
      EXPECT_LE(distance(got), closest + std::log(1.04) + 1e-9);
      for (const Bucket& b : result.catalog.buckets) {
        if (!filled(b) || distance(b) > closest + std::log(1.04) - 1e-9) continue;
        EXPECT_LE(b.frames, got.frames);
        if (b.frames == got.frames) {
          EXPECT_LE(b.height * b.width, got.height * got.width);
        }
      }
    }
    EXPECT_EQ(skipped, result.skipped.size());
  }
}

}  // namespace
}  // namespace zellige
