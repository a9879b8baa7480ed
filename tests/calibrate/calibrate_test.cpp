// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zellige/calibrate.h"
#include "zellige/error.h"
#include "zellige/step_timer.h"

namespace zellige {
namespace {

CalibrateOptions options_of(int layers = 2) {
  CalibrateOptions options;
  options.catalog.model = model_preset("tiny");
  options.catalog.model.layers = layers;
  const auto add = [&](const char* name, MediaKind kind, int frames, int height, int width) {
    options.catalog.buckets.push_back(
        {name, kind, frames, height, width, sequence_tokens(options.catalog.model, frames, height, width)});
  };
  add("a", MediaKind::image, 1, 64, 64);
  add("b", MediaKind::image, 1, 96, 128);
  add("b-portrait", MediaKind::image, 1, 128, 96);
  add("c", MediaKind::video, 9, 96, 128);
  options.text_dim = 8;
  options.tokens_per_rank.value = 64;
  options.min_repeats = options.max_repeats = 1;
  options.budget_s = 1e6;
  return options;
}

TEST(Calibrate, MeasuresEveryLegalConfigurationOfTheGroup) {
  const CalibrateOptions options = options_of();
  const Calibration result = calibrate(options, {.count = 4});
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.depth, 2) << "both blocks";
  EXPECT_TRUE(result.checks.empty());
  const Profile& profile = result.profile;
  std::set<std::pair<std::int64_t, Configuration>> lengths;
  for (std::size_t b = 0; b < options.catalog.buckets.size(); ++b) {
    const Tokens tokens = options.catalog.buckets[b].tokens;
    for (const Configuration& c : menu(options.catalog.model, tokens, 4, Menu::powers_of_two)) {
      const Price* price = profile.find(static_cast<BucketIndex>(b), c);
      ASSERT_NE(price, nullptr) << text(c);
      EXPECT_EQ(price->source, PriceSource::measured);
      EXPECT_TRUE(price->spread);
      EXPECT_GE(price->time, price->exchange);
      EXPECT_EQ(price->exchange.value > 0, !c.is_whole());
      lengths.insert({tokens.value, c});
    }
    EXPECT_EQ(profile.find(static_cast<BucketIndex>(b), {1, 2, 4})->source, PriceSource::estimated) << "8 ranks";
  }
  EXPECT_EQ(result.points.size(), lengths.size()) << "a portrait is measured with its landscape";
  EXPECT_GT(profile.step_base.value, 0);
  EXPECT_EQ(profile.key.ranks, 4);
  EXPECT_EQ(profile.key.precision, "fp32");
  EXPECT_TRUE(profile.key.device.starts_with("CPU"));
  EXPECT_FALSE(profile.key.driver.empty());
}

TEST(Calibrate, GoesOnFromWhatWasSaved) {
  CalibrateOptions options = options_of();
  std::vector<std::string> saved;
  options.save = [&](const std::string& text) { saved.push_back(text); };
  const Calibration all = calibrate(options, {.count = 2});
  ASSERT_GT(saved.size(), 4u);
  // From the end: nothing is measured again, so everything is equal to the last digit.
  const std::string complete = saved.back();
  options.resume = complete;
  saved.clear();
  const Calibration again = calibrate(options, {.count = 2});
  EXPECT_EQ(again.profile, all.profile);
  EXPECT_EQ(again.points, all.points);
  EXPECT_TRUE(saved.empty());
  options.catalog.buckets.pop_back();
  EXPECT_THROW(calibrate(options, {.count = 2}), Error) << "another catalog";
}

TEST(Calibrate, StoppedHalfWayItIsGoneOnWith) {
  CalibrateOptions options = options_of();
  std::stop_source source;
  options.stop = source.get_token();
  std::string last;
  int points = 0;
  options.save = [&](const std::string& text) {
    last = text;
    if (++points == 4) source.request_stop();
  };
  const Calibration part = calibrate(options, {.count = 2});
  EXPECT_FALSE(part.complete);
  EXPECT_EQ(part.points.size(), 3u);  // the first thing that is saved is the fixed cost
  bool others = false;
  for (std::size_t b = 0; b < options.catalog.buckets.size(); ++b) {
    for (const Price& price : part.profile.menu(static_cast<BucketIndex>(b))) {
      others |= price.source == PriceSource::estimated && price.config.degree() <= 2;
    }
  }
  EXPECT_TRUE(others) << "what was not measured is no measurement";
  options.stop = {};
  options.save = nullptr;
  options.resume = last;
  const Calibration rest = calibrate(options, {.count = 2});
  EXPECT_TRUE(rest.complete);
  for (std::size_t i = 0; i < part.points.size(); ++i) EXPECT_EQ(rest.points[i], part.points[i]);
}

TEST(Calibrate, OneBlockScaledIsCheckedAgainstAll) {
  CalibrateOptions options = options_of(5);
  const Calibration result = calibrate(options, {.count = 2});
  EXPECT_EQ(result.depth, 1);
  ASSERT_FALSE(result.checks.empty());
  for (const DepthCheck& check : result.checks) {
    EXPECT_GT(check.measured_us, 0);
    EXPECT_GT(check.predicted_us, 0);
  }
  // The five blocks of the longest sequence take about five times one block, which no noise hides.
  const auto& price = *result.profile.find(3, {});
  const auto point = std::ranges::find_if(
      result.points, [](const MeasuredPoint& p) { return p.tokens.value == 144 && p.config.is_whole(); });
  ASSERT_NE(point, result.points.end());
  EXPECT_GT(static_cast<double>(price.time.value), 2.5 * point->time_us);
  EXPECT_LE(static_cast<double>(price.time.value), 5.0 * point->time_us + 1);
}

TEST(Calibrate, RefusesWhatMakesNoSense) {
  const auto refused = [](const auto& change) {
    CalibrateOptions options = options_of();
    CalibrateRanks ranks{.count = 2};
    change(options, ranks);
    try {
      calibrate(options, ranks);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(refused([](auto& o, auto&) { o.depth = 3; }), HasSubstr("depth is 3; the model has 2"));
  EXPECT_THAT(refused([](auto& o, auto&) { o.precision = "fp8"; }), HasSubstr("fp8"));
  EXPECT_THAT(refused([](auto& o, auto&) { o.catalog.buckets.clear(); }), HasSubstr("no buckets"));
  EXPECT_THAT(refused([](auto& o, auto&) { o.budget_s = 0; }), HasSubstr("budget_s"));
  EXPECT_THAT(refused([](auto&, auto& r) { r.backend = "mpi"; }), HasSubstr("mpi"));
}

}  // namespace
}  // namespace zellige
