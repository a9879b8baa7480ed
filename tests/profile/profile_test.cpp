// SPDX-License-Identifier: Apache-2.0
#include "zellige/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/refusal.h"
#include "testing/worked_case_file.h"
#include "zellige/error.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using zellige::testing::refusal;
using zellige::testing::worked_case;

Price priced(Configuration config, std::int64_t time_us) {
  return {.config = config, .time = {time_us}, .exchange = {0}, .memory = {7}};
}

Profile three_buckets() {
  Profile profile;
  profile.catalog = read_catalog(worked_case("catalog.json"));
  return profile;
}

TEST(Profile, PricesAreSortedByDegreeThenQThenH) {
  Profile profile = three_buckets();
  profile.set_prices(2, {priced({4, 1, 1}, 5), priced({1, 2, 2}, 4), priced({2, 1, 1}, 3), priced({1, 1, 2}, 2),
                         priced({1, 2, 1}, 6), priced({1, 1, 1}, 1)});
  std::vector<Configuration> order;
  for (const Price& price : profile.menu(2)) order.push_back(price.config);
  EXPECT_EQ(order, (std::vector<Configuration>{{1, 1, 1}, {1, 1, 2}, {1, 2, 1}, {2, 1, 1}, {1, 2, 2}, {4, 1, 1}}));
  EXPECT_EQ(profile.whole(2).time.value, 1);
  for (const Price& price : profile.menu(2)) EXPECT_EQ(profile.find(2, price.config), &price);
  EXPECT_EQ(profile.find(2, {1, 1, 3}), nullptr);
  EXPECT_EQ(profile.find(2, {1, 4, 1}), nullptr);
  EXPECT_EQ(profile.find(0, {1, 1, 1}), nullptr) << "no prices yet";
  EXPECT_EQ(profile.find(-1, {1, 1, 1}), nullptr);
  EXPECT_EQ(profile.find(99, {1, 1, 1}), nullptr);
}

TEST(Profile, NewPricesReplaceTheOld) {
  Profile profile = three_buckets();
  profile.set_prices(0, {priced({1, 1, 1}, 10), priced({2, 1, 1}, 20)});
  profile.set_prices(0, {priced({1, 1, 1}, 30)});
  EXPECT_EQ(profile.menu(0).size(), 1u);
  EXPECT_EQ(profile.whole(0).time.value, 30);
}

TEST(Profile, WrongPricesAreRefusedByName) {
  const auto setting = [](std::vector<Price> prices, BucketIndex bucket = 0) {
    return refusal([&] { three_buckets().set_prices(bucket, std::move(prices)); });
  };
  EXPECT_EQ(setting({priced({1, 1, 1}, 1)}), "nothing was refused");  // positive control
  EXPECT_THAT(setting({}), HasSubstr("bucket '720p': the price of [1, 1, 1], the whole sequence, is missing"));
  EXPECT_THAT(setting({priced({1, 2, 1}, 1)}), HasSubstr("the price of [1, 1, 1]"));
  EXPECT_THAT(setting({priced({1, 1, 1}, 1), priced({1, 2, 1}, 1), priced({1, 2, 1}, 1)}),
              HasSubstr("configuration q1h2k1 has two prices"));
  EXPECT_THAT(setting({priced({1, 1, 1}, 1), priced({1, 5, 1}, 1)}), HasSubstr("does not divide 12 heads"));
  EXPECT_THAT(setting({priced({1, 1, 1}, 1), priced({3601, 1, 1}, 1)}), HasSubstr("one would be empty"));
  EXPECT_THAT(setting({priced({1, 1, 1}, 0)}), HasSubstr("time_us 0 must be at least 1"));
  EXPECT_THAT(setting({priced({1, 1, 1}, 1)}, 3), HasSubstr("bucket 3 is not one of the catalog's 3"));
  EXPECT_THAT(setting({priced({1, 1, 1}, 1)}, -1), HasSubstr("bucket -1"));
  Price price = priced({1, 1, 1}, 5);
  price.exchange.value = 6;
  EXPECT_THAT(setting({price}), HasSubstr("exchange_us 6 must be between 0 and time_us 5"));
  price = priced({1, 1, 1}, 5);
  price.memory.value = -1;
  EXPECT_THAT(setting({price}), HasSubstr("memory_bytes -1"));
  price = priced({1, 1, 1}, 5);
  price.spread = 0.1;
  EXPECT_THAT(setting({price}), HasSubstr("a spread belongs to measured prices, not to estimated ones"));
  price.source = PriceSource::measured;
  EXPECT_EQ(setting({price}), "nothing was refused");
}

TEST(Profile, ABucketWithoutPricesIsAnErrorNotACrash) {
  const Profile profile = three_buckets();
  EXPECT_THAT(refusal([&] { profile.menu(1); }), HasSubstr("bucket 1 has no prices"));
  EXPECT_THAT(refusal([&] { profile.whole(-1); }), HasSubstr("bucket -1 has no prices"));
}

TEST(MatchBuckets, FindsEverySequencesBucketWhereverItStands) {
  const Batch batch = read_batch(worked_case("batch.json"));
  Profile profile = read_profile(worked_case("profile.json"));
  EXPECT_EQ(match_buckets(batch, profile), (std::vector<BucketIndex>{2, 1, 1, 0, 0}));
  std::reverse(profile.catalog.buckets.begin(), profile.catalog.buckets.end());
  EXPECT_EQ(match_buckets(batch, profile), (std::vector<BucketIndex>{0, 1, 1, 2, 2}));
}

TEST(MatchBuckets, NamesBothSidesOfAMismatch) {
  const Batch batch = read_batch(worked_case("batch.json"));
  const Profile profile = read_profile(worked_case("profile.json"));
  const auto matching = [&](auto change) {
    Batch changed = batch;
    change(changed);
    return refusal([&] { match_buckets(changed, profile); });
  };
  EXPECT_EQ(matching([](Batch&) {}), "nothing was refused");  // positive control
  const std::string other_model = matching([](Batch& b) { b.catalog.model = model_preset("wan2.1-t2v-14b"); });
  EXPECT_THAT(other_model, HasSubstr("'wan2.1-t2v-14b' (40 layers"));
  EXPECT_THAT(other_model, HasSubstr("'wan2.1-t2v-1.3b' (30 layers"));
  EXPECT_THAT(matching([](Batch& b) { b.catalog.buckets[0].name = "144p"; }),
              HasSubstr("sequence 'img-3': bucket '144p' (image, 1x720x1280, 3600 tokens) is not in the profile, which "
                        "has: 720p, 1080p, 480p10s"));
  const std::string other_numbers = matching([](Batch& b) { b.catalog.buckets[0].width = 1264; });
  EXPECT_THAT(other_numbers, HasSubstr("'720p' (image, 1x720x1264"));
  EXPECT_THAT(other_numbers, HasSubstr("is not the profile's '720p' (image, 1x720x1280"));
  EXPECT_EQ(matching([](Batch& b) { b.catalog.buckets.push_back({.name = "unused", .tokens = {9}}); }),
            "nothing was refused")
      << "a bucket that no sequence uses may be missing";
}

TEST(Profile, AnErrorBelongsToWhatWasGuessed) {
  Profile profile;
  profile.catalog.model = model_preset("tiny");
  profile.catalog.buckets = {{"b", MediaKind::image, 1, 256, 256, Tokens{256}}};
  Price price{{}, Microseconds{10}, Microseconds{0}, Bytes{1}};
  price.error = 0.1;
  for (const PriceSource source : {PriceSource::interpolated, PriceSource::extrapolated}) {
    price.source = source;
    EXPECT_NO_THROW(profile.set_prices(0, {price}));
  }
  for (const PriceSource source : {PriceSource::measured, PriceSource::estimated}) {
    price.source = source;
    EXPECT_THROW(profile.set_prices(0, {price}), Error);
  }
}

TEST(Profile, IsStaleWhereItWasNotMeasured) {
  ProfileKey key;
  key.device = "NVIDIA H200";
  key.driver = "580";
  key.executor = 1;
  key.torch = "2.11.0";
  key.precision = "bf16";
  key.ranks = 2;
  EXPECT_EQ(why_stale(key, key), "");
  const auto with = [&](auto change) {
    ProfileKey here = key;
    change(here);
    return why_stale(key, here);
  };
  EXPECT_THAT(with([](ProfileKey& k) { k.device = "CPU"; }), HasSubstr("device 'NVIDIA H200', here 'CPU'"));
  EXPECT_THAT(with([](ProfileKey& k) { k.driver = "590"; }), HasSubstr("driver"));
  EXPECT_THAT(with([](ProfileKey& k) { k.executor = 2; }), HasSubstr("executor"));
  EXPECT_THAT(with([](ProfileKey& k) { k.torch = "2.12.0"; }), HasSubstr("libtorch"));
  EXPECT_THAT(with([](ProfileKey& k) { k.precision = "fp32"; }), HasSubstr("precision"));
  EXPECT_THAT(with([](ProfileKey& k) { k.checkpointing = false; }), HasSubstr("activation checkpointing"));
  EXPECT_EQ(with([](ProfileKey& k) { k.ranks = 8; }), "") << "each GPU is its own";
  EXPECT_EQ(with([](ProfileKey& k) { k.torch = ""; }), "") << "not known is no difference";
  ProfileKey cpu = key, here = key;
  cpu.device = here.device = "CPU x, 2 threads";
  here.ranks = 8;
  EXPECT_THAT(why_stale(cpu, here), HasSubstr("ranks"));
  ProfileKey estimate;
  estimate.device = "NVIDIA H200";
  EXPECT_EQ(why_stale(estimate, here), "");
}

}  // namespace
}  // namespace zellige
