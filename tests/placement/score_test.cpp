// SPDX-License-Identifier: Apache-2.0
#include "zellige/score.h"

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "placement/random_plan.h"
#include "placement/worked_case.h"
#include "zellige/error.h"
#include "zellige/schedule.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;

TEST(Score, WorkedCaseByHand) {
  const Score score = zellige::score(worked_case::placement(), worked_case::profile());
  EXPECT_EQ(score.load, (std::vector<Microseconds>{{3'564'339}, {3'564'339}}));
  EXPECT_EQ(score.exchange, (std::vector<Microseconds>{{53'587}, {53'587}}));
  EXPECT_EQ(score.memory, (std::vector<Bytes>{{4'783'104'000}, {4'783'104'000}}));
  EXPECT_EQ(score.tokens, (std::vector<Tokens>{{31'980 + 8'160 + 3'600}, {31'980 + 8'160 + 3'600}}));
  EXPECT_EQ(score.makespan, Microseconds{3'564'339});
  EXPECT_EQ(score.floor, Microseconds{3'510'751});  // 7,021,503 / 2
  EXPECT_EQ(score.step, Microseconds{3'774'339});
  EXPECT_EQ(score.peak, Bytes{27'783'104'000});
  EXPECT_DOUBLE_EQ(score.over_floor, 2.0 * 3'564'339 / 7'021'503 - 1);
  EXPECT_DOUBLE_EQ(score.imbalance, 1);
  EXPECT_EQ(score.split_count, 1);
}

// One layer of q1h2k1 moves 2 (forward) and 2 (backward) x L x heads x head_dim = 63,960 x 1,536 elements.
TEST(Score, BytesMovedOfTheWorkedCaseByHand) {
  constexpr std::int64_t kUnit = 63'960LL * 1'536 * 30 * 2;
  Placement placement = worked_case::placement();
  Profile profile = worked_case::profile();
  EXPECT_EQ(score(placement, profile).moved.ulysses, Bytes{(2 + 2 + 2) * kUnit});
  EXPECT_EQ(score(placement, profile).moved.ulysses, Bytes{35'367'321'600});
  EXPECT_EQ(score(placement, profile).moved.total(), Bytes{35'367'321'600});
  placement.exec.keep_kv = false;  // K and V once more, half of each
  EXPECT_EQ(score(placement, profile).moved.total(), Bytes{(2 + 2 + 3) * kUnit});
  profile.key.checkpointing = false;
  EXPECT_EQ(score(placement, profile).moved.total(), Bytes{(2 + 3) * kUnit});
  placement.exec.keep_kv = true;
  EXPECT_EQ(score(placement, profile).moved.total(), Bytes{(2 + 2) * kUnit});
}

struct OneSequence {
  Placement placement;
  Profile profile;
};

OneSequence one_sequence(std::int64_t tokens, Configuration config) {
  OneSequence made;
  ModelGeometry& model = made.profile.catalog.model;
  model = worked_case::catalog().model;
  model.heads = model.kv_heads = 4;
  model.head_dim = 2;
  model.layers = 3;
  Bucket& bucket = made.profile.catalog.buckets.emplace_back();
  bucket.name = "b";
  bucket.height = 16;
  bucket.width = static_cast<int>(16 * tokens);
  bucket.tokens = {tokens};
  made.profile.memory_usable = {1'000};
  made.profile.set_prices(0, {{.config = {1, 1, 1}, .time = {80}, .memory = {80}},
                              {.config = config, .time = {11}, .exchange = {1}, .memory = {10}}});
  made.placement.ranks = config.degree() + 1;  // the last one holds nothing
  made.placement.model = made.profile.catalog.model;
  std::vector<Rank> ranks(static_cast<std::size_t>(config.degree()));
  std::iota(ranks.rbegin(), ranks.rend(), 0);  // coordinate order is not rank order
  made.placement.sequences = {{"s", "b", MediaKind::image, {tokens}, config, ranks, {}, {}}};
  return made;
}

// L = 13 tokens of 8 elements, q = h = k = 2. Elements of a layer: K and V together 208, Q 104.
// Forward: all-gather 208 (K/V to the other iq); Ulysses 2 x 52 (Q, O) + 104 (K, V); ring 2 x 208.
// Backward: all-gather 208 (dK, dV); Ulysses 2 x 52 (dO, dQ) + 104; ring 2 x 416.
TEST(Score, BytesMovedByPrimitiveOfAnUnevenSplitByHand) {
  auto [placement, profile] = one_sequence(13, {2, 2, 2});
  const Score score = zellige::score(placement, profile);
  EXPECT_EQ(score.moved.all_gather, Bytes{(208 + 208 + 208) * 3 * 2});
  EXPECT_EQ(score.moved.ulysses, Bytes{(208 + 208 + 208) * 3 * 2});
  EXPECT_EQ(score.moved.ring, Bytes{(416 + 416 + 832) * 3 * 2});
  EXPECT_EQ(score.moved.total(), Bytes{(624 + 624 + 1664) * 6});
  placement.exec.keep_kv = false;
  EXPECT_EQ(zellige::score(placement, profile).moved.all_gather, Bytes{(208 + 208 + 416) * 3 * 2});
  EXPECT_EQ(zellige::score(placement, profile).moved.ulysses, Bytes{(208 + 208 + 312) * 3 * 2});
  EXPECT_EQ(zellige::score(placement, profile).moved.ring, Bytes{(416 + 416 + 832) * 3 * 2});
}

TEST(Score, TheFirstChunksGetOneTokenMoreInCoordinateOrder) {
  const auto [placement, profile] = one_sequence(13, {2, 2, 2});
  // Coordinates 0..7 are ranks 7..0; the first 13 mod 8 = 5 of them own 2 tokens.
  EXPECT_EQ(score(placement, profile).tokens, (std::vector<Tokens>{{1}, {1}, {1}, {2}, {2}, {2}, {2}, {2}, {0}}));
}

TEST(Score, RanksThatHoldNothingCount) {
  const auto [placement, profile] = one_sequence(13, {1, 2, 1});
  const Score score = zellige::score(placement, profile);
  EXPECT_EQ(score.load, (std::vector<Microseconds>{{11}, {11}, {0}}));
  EXPECT_DOUBLE_EQ(score.imbalance, 1.5);  // 11 / (22 / 3)
  EXPECT_EQ(score.floor, Microseconds{26});
  EXPECT_DOUBLE_EQ(score.over_floor, 11 / (80.0 / 3) - 1);  // below the floor: a shard beats its share
}

TEST(Score, NoSequencesIsNoLoad) {
  auto [placement, profile] = one_sequence(13, {1, 2, 1});
  placement.sequences.clear();
  const Score score = zellige::score(placement, profile);
  EXPECT_EQ(score.makespan, Microseconds{0});
  EXPECT_EQ(score.over_floor, 0);
  EXPECT_EQ(score.imbalance, 1);
  EXPECT_EQ(score.moved.total(), Bytes{0});
}

TEST(Score, AgreesWithTheClaimsOfRandomPlans) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const auto [batch, profile, plan] = random_plan::draw(engine);
    const Score score = zellige::score(plan.placement, profile);
    EXPECT_EQ(score.load, plan.load);
    EXPECT_EQ(score.memory, plan.memory);
    EXPECT_EQ(score.makespan, plan.makespan);
    EXPECT_EQ(score.floor, plan.floor);
    EXPECT_EQ(score.split_count, plan.split_count);
    EXPECT_EQ(score.step, plan.makespan + profile.step_base);
    Tokens owned, all;
    for (const Tokens tokens : score.tokens) owned += tokens;
    for (std::size_t i = 0; i < batch.sequences.size(); ++i) all += batch.tokens_of(static_cast<SequenceIndex>(i));
    EXPECT_EQ(owned, all);
  }
}

std::int64_t sent(const std::vector<Exchange>& exchanges) {
  std::int64_t elements = 0;
  for (const Exchange& exchange : exchanges) {
    elements = std::accumulate(exchange.send_counts.begin(), exchange.send_counts.end(), elements);
  }
  return elements;
}

// What the schedules say that ranks send, element by element, against the closed form: any lengths, grouped K/V heads.
TEST(Score, BytesMovedAreWhatTheSchedulesSend) {
  int split = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    auto [batch, profile, plan] = random_plan::draw(engine);
    plan.placement.exec.keep_kv = draw_below(engine, 2) == 0;
    plan.placement.exec.waves = 1 + static_cast<int>(draw_below(engine, 3));
    split += plan.split_count;
    std::int64_t elements = 0;
    for (Rank rank = 0; rank < batch.ranks; ++rank) {
      const Schedule schedule = lower(plan.placement, rank);
      elements += (profile.key.checkpointing ? 2 : 1) * sent(schedule.forward) + sent(schedule.backward);
      EXPECT_EQ(schedule.num_tokens, score(plan.placement, profile).tokens[static_cast<std::size_t>(rank)].value);
    }
    EXPECT_EQ(score(plan.placement, profile).moved.total(), Bytes{elements * plan.placement.model.layers * 2});
  }
  EXPECT_GT(split, 100);
}

TEST(Score, RefusesWhatItCannotScore) {
  const auto refusal = [](const std::function<void(Placement&)>& breaks) -> std::string {
    Placement placement = worked_case::placement();
    breaks(placement);
    try {
      score(placement, worked_case::profile());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::input);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal([](Placement&) {}), "");
  EXPECT_THAT(refusal([](Placement& p) {
                p.sequences[0].config = {2, 1, 1};
              }),
              HasSubstr("'clip-7': the profile has no price for q2h1k1 in bucket '480p10s'"));
  EXPECT_THAT(refusal([](Placement& p) { p.sequences[0].config = {1, 0, 1}; }), HasSubstr("'clip-7': configuration"));
  EXPECT_THAT(refusal([](Placement& p) {
                p.sequences[0].config = {INT32_MAX, INT32_MAX, INT32_MAX};
              }),
              HasSubstr("needs more ranks"));
  EXPECT_THAT(refusal([](Placement& p) { p.sequences[1].bucket = "4k"; }), HasSubstr("'img-1' is in bucket '4k'"));
  EXPECT_THAT(refusal([](Placement& p) { p.sequences[0].ranks = {0}; }), HasSubstr("'clip-7' is on 1 ranks"));
  EXPECT_THAT(refusal([](Placement& p) { p.sequences[1].ranks = {2}; }), HasSubstr("'img-1' is on rank 2"));
  EXPECT_THAT(refusal([](Placement& p) { p.ranks = 0; }), HasSubstr("is on rank 0"));
  EXPECT_THAT(refusal([](Placement& p) { p.model.layers = 40; }), HasSubstr("the placement is for model"));
}

TEST(Score, RefusesSumsBeyond64Bits) {
  Profile profile = worked_case::profile();
  profile.set_prices(1, {{.config = {1, 1, 1}, .time = {INT64_MAX}}});
  EXPECT_THROW(score(worked_case::placement(), profile), Error);
}

}  // namespace
}  // namespace zellige
