// SPDX-License-Identifier: Apache-2.0
// Points made from a known machine: the profile must give its prices back.
#include <gtest/gtest.h>

#include "calibrate/assemble.h"

namespace zellige {
namespace {

constexpr double kFixedBlock = 40, kToken = 0.05;
constexpr int kLayers = 30;

Catalog catalog() {
  Catalog catalog;
  catalog.model = model_preset("wan2.1-t2v-1.3b");
  const auto add = [&](const char* name, MediaKind kind, int frames, int height, int width) {
    catalog.buckets.push_back(
        {name, kind, frames, height, width, sequence_tokens(catalog.model, frames, height, width)});
  };
  add("256p", MediaKind::image, 1, 256, 256);
  add("480p", MediaKind::image, 1, 480, 832);
  add("480p-portrait", MediaKind::image, 1, 832, 480);
  add("480p2s", MediaKind::video, 33, 480, 832);
  add("480p5s", MediaKind::video, 81, 480, 832);
  add("480p10s", MediaKind::video, 161, 480, 832);
  return catalog;
}

/// One block of one rank's part.
double block_us(std::int64_t tokens, Configuration c) {
  const double length = static_cast<double>(tokens);
  return (0.3 * length + 1e-4 * length * length) / c.degree() + (c.is_whole() ? 0 : 0.01 * length);
}

double ends_us(std::int64_t tokens, Configuration c) {
  return kToken * static_cast<double>((tokens + c.degree() - 1) / c.degree());
}

/// What one block of one rank's part holds, and what is there whatever runs.
constexpr std::int64_t kWorkspace = 1'000'000;
std::int64_t peak_bytes(std::int64_t tokens, Configuration c) { return kWorkspace + 200'000 * tokens / c.degree(); }

Points measured(const Catalog& catalog, const std::vector<Configuration>& configs,
                const std::vector<std::size_t>& buckets) {
  Points points;
  points.depth = 1;
  points.fixed_us = kFixedBlock;
  points.full_fixed_us = kFixedBlock * kLayers;
  points.token_us = kToken;
  points.gradient_sync_us = 100;
  points.optimizer_us = 10;
  for (const std::size_t b : buckets) {
    for (const Configuration& c : configs) {
      const std::int64_t tokens = catalog.buckets[b].tokens.value;
      points.points.push_back({Tokens{tokens}, c, 1, block_us(tokens, c) + ends_us(tokens, c),
                               c.is_whole() ? 0.0 : 0.01 * static_cast<double>(tokens), 0.02, 3,
                               peak_bytes(tokens, c)});
    }
  }
  return points;
}

Assembly assembly_of(const Catalog& catalog) {
  Assembly assembly;
  assembly.catalog = catalog;
  assembly.key.device = "d";
  assembly.key.driver = "1";
  assembly.estimate = "h200";
  assembly.ranks = 2;
  assembly.memory_base.value = 1000;
  assembly.memory_usable.value = 3'000'000;
  return assembly;
}

double price_us(std::int64_t tokens, Configuration c) { return kLayers * block_us(tokens, c) + ends_us(tokens, c); }

TEST(Assemble, ScalesBlocksAndCountsTheEndsOnce) {
  const Catalog all = catalog();
  const std::vector<Configuration> configs = {{}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}};
  const Profile profile = assemble(measured(all, configs, {0, 1, 3, 4, 5}), assembly_of(all));
  EXPECT_EQ(profile.step_base.value, 1200 + 110);
  EXPECT_EQ(profile.memory_base.value, 1000 + kWorkspace);
  for (std::size_t b = 0; b < all.buckets.size(); ++b) {
    const std::int64_t tokens = all.buckets[b].tokens.value;
    for (const Configuration& c : configs) {
      const Price* price = profile.find(static_cast<BucketIndex>(b), c);
      ASSERT_NE(price, nullptr);
      EXPECT_NEAR(static_cast<double>(price->time.value), price_us(tokens, c), 0.51) << b;
      EXPECT_EQ(price->source, PriceSource::measured) << "a portrait is as long as its landscape";
      EXPECT_EQ(price->spread, 0.02);
      EXPECT_FALSE(price->error);
      // 29 blocks more keep their inputs: bf16, 1,536 wide.
      const std::int64_t chunk = (tokens + c.degree() - 1) / c.degree();
      EXPECT_NEAR(static_cast<double>(price->memory.value),
                  static_cast<double>(peak_bytes(tokens, c) - kWorkspace + 29 * chunk * 1536 * 2), 1);
      if (!c.is_whole()) {
        EXPECT_NEAR(static_cast<double>(price->exchange.value), 0.3 * static_cast<double>(tokens), 0.51);
      }
    }
  }
}

TEST(Assemble, WhatIsNotMeasuredIsLabelledAndStillRight) {
  const Catalog all = catalog();
  const Profile profile = assemble(measured(all, {{}, {1, 2, 1}}, {0, 1, 4}), assembly_of(all));
  const auto expect_source = [&](BucketIndex bucket, Configuration c, PriceSource source) {
    const Price* price = profile.find(bucket, c);
    ASSERT_NE(price, nullptr);
    EXPECT_EQ(price->source, source) << bucket << text(c);
    EXPECT_EQ(price->error.has_value(), source == PriceSource::interpolated || source == PriceSource::extrapolated);
    if (source == PriceSource::estimated) return;
    const double wanted = price_us(all.buckets[static_cast<std::size_t>(bucket)].tokens.value, c);
    EXPECT_NEAR(static_cast<double>(price->time.value) / wanted, 1, 0.01);
  };
  expect_source(3, {}, PriceSource::interpolated);
  expect_source(3, {1, 2, 1}, PriceSource::interpolated);
  expect_source(5, {}, PriceSource::extrapolated);
  expect_source(5, {1, 2, 1}, PriceSource::extrapolated);
  expect_source(5, {2, 1, 1}, PriceSource::estimated);
  expect_source(5, {1, 4, 1}, PriceSource::estimated);
}

TEST(Assemble, MoreRanksAreTheEstimateInTheProportionThatWasMeasured) {
  const Catalog all = catalog();
  const Profile estimate = built_in_profile("h200", all);
  // A device that is three times as slow as the estimate in everything.
  Points points;
  points.depth = kLayers;
  points.fixed_us = points.full_fixed_us = 0;
  for (std::size_t b = 0; b < all.buckets.size(); ++b) {
    for (const Configuration& c : {Configuration{}, Configuration{1, 2, 1}}) {
      const Price& price = *estimate.find(static_cast<BucketIndex>(b), c);
      points.points.push_back({all.buckets[b].tokens, c, 1, 3.0 * static_cast<double>(price.time.value),
                               static_cast<double>(price.exchange.value), 0.01, 3, 0});
    }
  }
  const Profile profile = assemble(points, assembly_of(all));
  for (const Configuration& c : {Configuration{1, 4, 1}, Configuration{2, 4, 1}, Configuration{1, 1, 8}}) {
    const double ratio =
        static_cast<double>(profile.find(5, c)->time.value) / static_cast<double>(estimate.find(5, c)->time.value);
    EXPECT_NEAR(ratio, 3, 1e-3) << text(c);
    EXPECT_EQ(profile.find(5, c)->source, PriceSource::estimated);
  }
}

}  // namespace
}  // namespace zellige
