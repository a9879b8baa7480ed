// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "engine/torch.h"
#include "model/counter_random.h"
#include "zellige/error.h"
#include "zellige/flow.h"
#include "zellige/model.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;

std::vector<double> noise(const FlowMatching& flow, std::int64_t step, const char* id, std::int64_t begin,
                          std::int64_t count, std::int64_t width) {
  std::vector<double> values(static_cast<std::size_t>(count * width));
  flow.noise(step, id, begin, width, values);
  return values;
}

TEST(CounterRandom, IsPhilox) {
  // Known answer of the Random123 distribution: philox4x32-10, counter 0, key 0.
  CounterRandom random(0, 0);
  for (const std::uint32_t word : {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}) {
    EXPECT_EQ(random.unit(), (word + 0.5) / 4294967296.0);
  }
}

TEST(CounterRandom, NormalValuesAreNormal) {
  std::vector<double> values(200'001);  // odd: the last pair is cut
  CounterRandom(7, 3).normal(values);
  double sum = 0, squares = 0, fourth = 0;
  int beyond = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
    beyond += std::abs(value) > 1.959964;
  }
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(fourth / n, 3, 0.15);
  EXPECT_NEAR(beyond / n, 0.05, 0.003);
}

TEST(CounterRandom, StreamsDependOnAllTheirParts) {
  std::set<std::uint64_t> streams = {
      random_stream(1, "noise", 2, "a"), random_stream(2, "noise", 2, "a"), random_stream(1, "sigma", 2, "a"),
      random_stream(1, "noise", 3, "a"), random_stream(1, "noise", 2, "b"), random_stream(1, "noise", 2, "2/a"),
  };
  EXPECT_EQ(streams.size(), 6u);
  // The first 16 hexadecimal digits of SHA-256 over "noise/1/2/a".
  EXPECT_EQ(random_stream(1, "noise", 2, "a"), 0x48e099c0c3cad4b2u);
}

TEST(FlowMatching, NoiseOfATokenDoesNotDependOnTheRange) {
  const FlowMatching flow({.seed = 9});
  const auto all = noise(flow, 4, "clip", 0, 50, 7);
  for (const std::int64_t begin : {0, 1, 17, 49}) {
    const auto part = noise(flow, 4, "clip", begin, 50 - begin, 7);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + begin * 7)) << begin;
  }
  EXPECT_NE(noise(flow, 5, "clip", 0, 50, 7), all);
  EXPECT_NE(noise(flow, 4, "clop", 0, 50, 7), all);
  EXPECT_NE(noise(FlowMatching({.seed = 10}), 4, "clip", 0, 50, 7), all);
  EXPECT_EQ(noise(FlowMatching({.seed = 9}), 4, "clip", 0, 50, 7), all);
  EXPECT_EQ(std::set<double>(all.begin(), all.end()).size(), all.size()) << "no value comes twice";
}

TEST(FlowMatching, FixedNoiseIsTheSameInEveryStep) {
  const FlowMatching flow({.fixed_noise = true, .seed = 9});
  EXPECT_EQ(noise(flow, 1, "clip", 3, 2, 4), noise(flow, 8, "clip", 3, 2, 4));
  EXPECT_EQ(flow.draw(1, "clip").sigma, flow.draw(8, "clip").sigma);
  EXPECT_NE(flow.draw(1, "clip").sigma, flow.draw(1, "other").sigma);
  const FlowMatching moving({.seed = 9});
  EXPECT_NE(moving.draw(1, "clip").sigma, moving.draw(8, "clip").sigma) << "positive control";
}

TEST(FlowMatching, ShiftedGridIsUniformOverTheShiftedTimesteps) {
  const FlowMatching flow({.shift = 5, .seed = 3});
  double sum = 0, weights = 0;
  int below = 0;
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    const FlowDraw draw = flow.draw(i, "x");
    // Undo sigma' = 5 sigma / (1 + 4 sigma): a multiple of 1/1000 in (0, 1].
    const double sigma = draw.sigma / (5 - 4 * draw.sigma);
    ASSERT_NEAR(sigma * 1000, std::round(sigma * 1000), 1e-9);
    ASSERT_GT(sigma, 0.0005);
    ASSERT_LE(sigma, 1 + 1e-12);
    ASSERT_GE(draw.weight, 0);
    ASSERT_DOUBLE_EQ(draw.timestep(), 1000 * draw.sigma);
    sum += sigma;
    below += sigma < 0.25;
    weights += draw.weight;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.01);
  EXPECT_NEAR(static_cast<double>(below) / kDraws, 0.249, 0.01);
  EXPECT_NEAR(weights / kDraws, 1, 0.02) << "the bell has mean 1";
}

TEST(FlowMatching, BellWeighsTheMiddleMost) {
  // By hand: on the grid, exp(-2 (sigma' - 1/2)^2) less its lowest value exp(-1/2), at sigma' = 1, over their mean.
  const FlowMatching flow({.shift = 5, .seed = 3});
  double mean = 0;
  const auto bell = [](double sigma) { return std::exp(-2 * (sigma - 0.5) * (sigma - 0.5)) - std::exp(-0.5); };
  for (int i = 1; i <= 1000; ++i) mean += bell(5 * (i / 1000.0) / (1 + 4 * (i / 1000.0))) / 1000;
  for (int step = 0; step < 50; ++step) {
    const FlowDraw draw = flow.draw(step, "y");
    EXPECT_NEAR(draw.weight, bell(draw.sigma) / mean, 1e-9) << draw.sigma;
  }
  const FlowMatching plain({.bell_weight = false, .seed = 3});
  EXPECT_EQ(plain.draw(1, "y").weight, 1);
  EXPECT_EQ(plain.draw(1, "y").sigma, flow.draw(1, "y").sigma);
}

TEST(FlowMatching, LogitNormalHasItsMedianAtTheShiftedMiddle) {
  const FlowMatching flow({.sampling = SigmaSampling::logit_normal, .shift = 3, .logit_mean = 0.4, .logit_std = 0.8});
  int below = 0, below_one_deviation = 0;
  constexpr int kDraws = 20'000;
  const auto sigma_at = [](double normal) {
    const double sigma = 1 / (1 + std::exp(-(0.4 + 0.8 * normal)));
    return 3 * sigma / (1 + 2 * sigma);
  };
  for (int i = 0; i < kDraws; ++i) {
    const FlowDraw draw = flow.draw(i, "z");
    ASSERT_GT(draw.sigma, 0);
    ASSERT_LT(draw.sigma, 1);
    EXPECT_EQ(draw.weight, 1);
    below += draw.sigma < sigma_at(0);
    below_one_deviation += draw.sigma < sigma_at(1);
  }
  EXPECT_NEAR(static_cast<double>(below) / kDraws, 0.5, 0.012);
  EXPECT_NEAR(static_cast<double>(below_one_deviation) / kDraws, 0.8413, 0.01);
}

TEST(FlowMatching, ImpossibleOptionsAreRefused) {
  const auto refusal = [](FlowOptions options) -> std::string {
    try {
      FlowMatching{options};
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_THAT(refusal({.shift = 0}), HasSubstr("shift 0"));
  EXPECT_THAT(refusal({.shift = NAN}), HasSubstr("shift nan"));
  EXPECT_THAT(refusal({.sampling = SigmaSampling::logit_normal, .logit_std = -1}), HasSubstr("logit_std -1"));
  EXPECT_EQ(refusal({}), "");
}

TEST(FlowLoss, WeighsTokensAndHasMeanChannels) {
  const at::Tensor prediction = at::tensor({1.0, 2.0, 3.0, 4.0}, at::kDouble).view({2, 2}).set_requires_grad(true);
  const at::Tensor target = at::tensor({0.0, 0.0, 1.0, 1.0}, at::kDouble).view({2, 2});
  const at::Tensor weights = at::tensor({0.5, 2.0}, at::kDouble);
  const at::Tensor loss = flow_loss(prediction, target, weights);
  EXPECT_DOUBLE_EQ(loss.item<double>(), 0.5 * (1 + 4) / 2 + 2 * (4 + 9) / 2.0);
  loss.backward();
  EXPECT_TRUE(at::equal(prediction.grad(), at::tensor({0.5, 1.0, 4.0, 6.0}, at::kDouble).view({2, 2})));
}

}  // namespace
}  // namespace zellige
