// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/packed_attention.h"

namespace zellige {
namespace {

using oracle::AttentionAnswer;
using oracle::AttentionProblem;
using oracle::PlacementEntry;

constexpr double kFp64 = 1e-12;
constexpr double kFp32 = 1e-5;

std::string describe(const Placement& placement) {
  std::string result = std::to_string(placement.ranks) + " ranks, " + std::to_string(placement.model.heads) + "/" +
                       std::to_string(placement.model.kv_heads) + " heads, " + std::to_string(placement.exec.waves) +
                       " waves" + (placement.exec.keep_kv ? ", keep_kv" : "") +
                       (placement.exec.overlap ? ", overlap" : "") + ", " + placement.exec.engine;
  for (const PlacedSequence& placed : placement.sequences) {
    result.append("\n  ").append(std::to_string(placed.tokens.value)).append(" tokens ").append(text(placed.config));
    for (const Rank rank : placed.ranks) result.append(" ").append(std::to_string(rank));
  }
  return result;
}

/// `config` on all but the last one or two ranks, in random order; a second split sequence and whole ones that share
/// those ranks; the last rank holds nothing in half of the cases.
Placement around(Configuration config, int heads, std::uint64_t seed) {
  RandomEngine random(seed);
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(draw_below(random, static_cast<std::uint64_t>(bound)));
  };
  const int degree = config.degree();
  const int spare = static_cast<int>(1 + below(2));
  const int ranks = degree + spare;
  const int working = below(2) == 0 ? ranks - 1 : ranks;
  const auto draw_ranks = [&](int count, int of) {
    std::vector<Rank> all;
    for (Rank rank = 0; rank < of; ++rank) all.push_back(rank);
    shuffle(all, random);
    all.resize(static_cast<std::size_t>(count));
    return all;
  };
  const auto length = [&] { return 20 + below(61); };
  std::vector<PlacementEntry> entries{{length(), config, draw_ranks(degree, std::min(degree + spare, working))}};
  const std::vector<Configuration> others = oracle::configurations_up_to(std::min(3, working), heads, heads);
  const Configuration other = others[static_cast<std::size_t>(1 + below(static_cast<std::int64_t>(others.size()) - 1))];
  entries.push_back({length(), other, draw_ranks(other.degree(), working)});
  const std::int64_t often = length();
  for (const std::int64_t tokens : {often, often, length(), std::int64_t{1}}) {
    entries.push_back({tokens, {1, 1, 1}, draw_ranks(1, working)});
  }
  shuffle(entries, random);
  return oracle::make_placement(ranks, heads, heads, 8, entries);
}

void expect_parity(const AttentionProblem& problem, const AttentionAnswer& reference, at::ScalarType type,
                   double tolerance) {
  const oracle::WorstError worst = oracle::worst_error(oracle::engine_answer(problem, {.type = type}), reference);
  EXPECT_LE(worst.relative, tolerance) << c10::toString(type) << ": " << worst.what;
}

/// Every configuration of the degree, whatever divides what.
class EveryConfiguration : public testing::TestWithParam<int> {};

TEST_P(EveryConfiguration, EqualsDenseAttention) {
  int tested = 0;
  for (const Configuration config : oracle::configurations_up_to(8, 12, 12)) {
    if (config.degree() != GetParam()) continue;
    const auto seed = static_cast<std::uint64_t>(1000 * config.q + 100 * config.h + config.k);
    AttentionProblem problem = oracle::make_problem(around(config, 12, seed), seed);
    const AttentionAnswer reference = oracle::dense_answer(problem);
    for (const int waves : {1, 2, 3}) {
      for (const bool keep_kv : {true, false}) {
        problem.placement.exec.waves = waves;
        problem.placement.exec.keep_kv = keep_kv;
        problem.placement.exec.overlap = (waves == 2) == keep_kv;
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(problem.placement));
        expect_parity(problem, reference, at::kDouble, kFp64);
        expect_parity(problem, reference, at::kFloat, kFp32);
        ++tested;
        problem.placement.exec.engine = "paper";
        expect_parity(problem, reference, at::kDouble, kFp64);
        if (keep_kv) expect_parity(problem, reference, at::kFloat, kFp32);
        problem.placement.exec.engine = "coalesced";
      }
    }
  }
  EXPECT_GE(tested, 12);
}

INSTANTIATE_TEST_SUITE_P(Degree, EveryConfiguration, testing::Range(2, 9));

TEST(EngineParity, DegreeSixteen) {
  for (const auto& [heads, config] : std::vector<std::pair<int, Configuration>>{
           {16, {2, 4, 2}}, {16, {1, 16, 1}}, {12, {4, 4, 1}}, {12, {2, 2, 4}}, {12, {1, 1, 16}}}) {
    const auto seed = static_cast<std::uint64_t>(16000 + heads + config.q);
    AttentionProblem problem = oracle::make_problem(around(config, heads, seed), seed);
    problem.placement.exec.waves = 2;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(problem.placement));
    const AttentionAnswer reference = oracle::dense_answer(problem);
    for (const char* engine : {"coalesced", "paper"}) {
      problem.placement.exec.engine = engine;
      expect_parity(problem, reference, at::kDouble, kFp64);
      expect_parity(problem, reference, at::kFloat, kFp32);
    }
  }
}

/// Placements drawn blindly: several split sequences, grouped key/value heads, waves beyond the heads, chunks of one
/// token, ranks that hold nothing.
TEST(EngineParity, RandomPlacements) {
  for (std::uint64_t seed = 1; seed <= 240; ++seed) {
    Placement placement = oracle::random_placement(seed, {.max_ranks = 9, .head_dims = {1, 4, 8}});
    placement.exec.overlap = seed % 2 == 0;
    if (seed % 5 < 2) placement.exec.engine = "paper";
    const AttentionProblem problem = oracle::make_problem(placement, seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(problem.placement));
    const AttentionAnswer reference = oracle::dense_answer(problem);
    expect_parity(problem, reference, at::kDouble, kFp64);
    if (seed % 4 == 0) expect_parity(problem, reference, at::kFloat, kFp32);
  }
}

/// Nothing but the comparison itself could make the tests above pass: a wrong scale, or one row less, is seen.
TEST(EngineParity, TheComparisonSeesSmallErrors) {
  const AttentionProblem problem = oracle::make_problem(around({2, 2, 2}, 12, 7), 7);
  const AttentionAnswer reference = oracle::dense_answer(problem);
  AttentionProblem other = problem;
  other.inputs.k[0] = other.inputs.k[0] * (1 + 1e-9);
  EXPECT_GT(oracle::worst_error(oracle::engine_answer(other), reference).relative, kFp64);
  AttentionAnswer lost = oracle::engine_answer(problem);
  lost.grads.v[1][0].zero_();
  EXPECT_GT(oracle::worst_error(lost, reference).relative, kFp32);
  lost.grads.v[1][0].fill_(NAN);
  EXPECT_GT(oracle::worst_error(lost, reference).relative, 1.0);
}

/// ||ours - fp64|| <= max(floor, 2 ||plain bf16 - fp64||), tensor by tensor.
TEST(EngineParity, Bf16IsAtMostTwiceAsFarOffAsPlainBf16) {
  constexpr double kFloor = 1e-3;  // of the inputs' unit variance: plain bf16 is exact on a sequence of one token
  for (const Configuration config : oracle::configurations_up_to(8, 12, 12)) {
    if (config.is_whole()) continue;
    const auto seed = static_cast<std::uint64_t>(70000 + 100 * config.q + 10 * config.h + config.k);
    AttentionProblem problem = oracle::make_problem(around(config, 12, seed), seed, at::kBFloat16);
    problem.placement.exec.waves = 1 + config.q % 2;
    if (config.k > 1 || config.degree() % 4 == 0) problem.placement.exec.engine = "paper";
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(problem.placement));
    const AttentionAnswer reference = oracle::dense_answer(problem);
    const AttentionAnswer plain = oracle::dense_answer(problem, at::kBFloat16);
    const AttentionAnswer ours = oracle::engine_answer(problem, {.type = at::kBFloat16});
    std::vector<double> allowed;
    oracle::for_each_pair(plain, reference, [&](const std::string&, const at::Tensor& a, const at::Tensor& b) {
      allowed.push_back(std::max(kFloor * std::sqrt(static_cast<double>(b.numel())), 2 * oracle::distance(a, b)));
    });
    std::size_t i = 0;
    oracle::for_each_pair(ours, reference, [&](const std::string& what, const at::Tensor& a, const at::Tensor& b) {
      EXPECT_LE(oracle::distance(a, b), allowed[i++]) << what;
    });
  }
}

TEST(EngineParity, AnotherKernelGivesTheSame) {
  const AttentionProblem problem = oracle::make_problem(around({2, 3, 1}, 12, 11), 11);
  const AttentionAnswer reference = oracle::dense_answer(problem);
  EXPECT_LE(oracle::worst_error(oracle::engine_answer(problem, {.kernel = "plain"}), reference).relative, kFp64);
}

}  // namespace
}  // namespace zellige
