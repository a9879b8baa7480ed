// SPDX-License-Identifier: Apache-2.0
#include "placement/pattern_doubt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"

namespace zellige {
namespace {

using Kind = PatternQuestion::Kind;

std::int64_t below(RandomEngine& engine, std::int64_t bound) {
  return static_cast<std::int64_t>(draw_below(engine, static_cast<std::uint64_t>(bound)));
}

/// The most that a rank may hold is worth, by trying everything.
std::int64_t most_worth(const PatternQuestion& question) {
  std::int64_t best = 0;
  std::vector<std::vector<std::int64_t>> pieces;
  for (const auto& group : question.groups) pieces.emplace_back(group.size(), 0);
  const auto take = [&](auto& self, std::size_t g, std::size_t k, std::int64_t load, std::int64_t exchange,
                        std::int64_t memory, std::int64_t value) -> void {
    if (g == question.groups.size()) {
      best = std::max(best, value);
      return;
    }
    const auto& kinds = question.groups[g];
    if (k == kinds.size()) {
      for (std::size_t i = 0; i < k; ++i) {
        std::int64_t before = 0, after = 0;
        for (std::size_t j = 0; j <= i; ++j) before += pieces[g][j];
        for (std::size_t j = i; j < k; ++j) after += pieces[g][j];
        if (before > kinds[i].before_most || after > kinds[i].after_most) return;
      }
      self(self, g + 1, 0, load, exchange, memory, value);
      return;
    }
    const Kind& kind = kinds[k];
    for (std::int64_t count = 0; count <= kinds.front().after_most; ++count) {
      const std::int64_t new_load = load + count * kind.time_us, new_memory = memory + count * kind.memory_bytes;
      const std::int64_t new_exchange = exchange + count * kind.exchange_us;
      if (std::max(new_load, new_exchange) > question.load_limit_us || new_memory > question.memory_cap_bytes) break;
      pieces[g][k] = count;
      std::int64_t earned = count * kind.value;
      for (const auto& [least, bonus] : kind.steps) earned += count >= least ? bonus : 0;
      self(self, g, k + 1, new_load, new_exchange, new_memory, value + earned);
    }
    pieces[g][k] = 0;
  };
  take(take, 0, 0, 0, 0, 0, 0);
  return best;
}

PatternQuestion random_question(RandomEngine& engine) {
  PatternQuestion question;
  question.load_limit_us = 10 + below(engine, 60);
  question.memory_cap_bytes = 10 + below(engine, 90);
  const bool has_limits = below(engine, 2) == 0, has_steps = below(engine, 3) == 0;
  const std::int64_t groups = 1 + below(engine, 3);
  for (std::int64_t g = 0; g < groups; ++g) {
    auto& kinds = question.groups.emplace_back();
    const std::int64_t count = 1 + below(engine, 4), size = 1 + below(engine, 3);
    std::int64_t most = count, least = 0;  // limits rise and fall along a group
    for (std::int64_t k = 0; k < size; ++k) {
      Kind kind{1 + below(engine, 30), below(engine, 30), below(engine, 40) - 4, count, most, {}};
      if (has_limits && k > 0) most = kind.after_most = below(engine, most + 1);
      if (has_limits && k + 1 < size) kind.before_most = least = std::max(least, count - below(engine, 2));
      if (has_steps && below(engine, 2) == 0) kind.steps.emplace_back(1 + below(engine, 3), below(engine, 30) - 10);
      kinds.push_back(kind);
    }
  }
  return question;
}

TEST(PatternDoubt, AnswersAsTryingEverythingDoes) {
  int none = 0, exists = 0, with_steps = 0;
  for (std::uint64_t seed = 1; seed <= 8000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    PatternQuestion question = random_question(engine);
    const std::int64_t most = most_worth(question);
    for (const std::int64_t mean : {most - 1, most, most / 2, most + 1 + below(engine, 20)}) {
      if (mean < 0) continue;
      question.mean = mean;
      std::int64_t work = 10'000'000;
      const PatternVerdict verdict = is_worth_more(question, work);
      ASSERT_EQ(verdict, most > mean ? PatternVerdict::exists : PatternVerdict::none)
          << "most " << most << ", mean " << mean;
      (verdict == PatternVerdict::none ? none : exists) += 1;
    }
    for (const auto& kinds : question.groups) {
      for (const Kind& kind : kinds) with_steps += !kind.steps.empty();
    }
  }
  EXPECT_GT(none, 10'000);
  EXPECT_GT(exists, 8'000);
  EXPECT_GT(with_steps, 1'000);
}

TEST(PatternDoubt, HeedsExchangesAsTryingEverythingDoes) {
  int none = 0, exists = 0, decided = 0;
  for (std::uint64_t seed = 1; seed <= 6000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    PatternQuestion question = random_question(engine);
    const std::int64_t without = most_worth(question);
    for (auto& kinds : question.groups) {
      for (Kind& kind : kinds) kind.exchange_us = std::max<std::int64_t>(0, below(engine, 60) - 15);
    }
    const std::int64_t most = most_worth(question);
    decided += most < without;
    for (const std::int64_t mean : {most - 1, most, without, most / 2}) {
      if (mean < 0) continue;
      question.mean = mean;
      std::int64_t work = 10'000'000;
      const PatternVerdict verdict = is_worth_more(question, work);
      ASSERT_EQ(verdict, most > mean ? PatternVerdict::exists : PatternVerdict::none)
          << "most " << most << ", mean " << mean;
      (verdict == PatternVerdict::none ? none : exists) += 1;
    }
  }
  EXPECT_GT(none, 5'000);
  EXPECT_GT(exists, 5'000);
  EXPECT_GT(decided, 1'000);
}

/// Five groups of a hundred short pieces each: more patterns than anyone could try.
TEST(PatternDoubt, ManyShortPiecesTakeFewSteps) {
  RandomEngine engine(7);
  PatternQuestion question{1'000'000, 900'000, {}, 0};
  for (int g = 0; g < 5; ++g) {
    auto& kinds = question.groups.emplace_back();
    const std::int64_t time_us = 9'000 + below(engine, 30'000);
    for (const int degree : {1, 2, 4, 8}) {
      const std::int64_t piece_us = time_us / degree + below(engine, 300) + 40 * degree;
      kinds.push_back({piece_us, time_us / degree * 8 / 10, time_us / degree, 100, 100, {}});
    }
  }
  // Worth as much as their load when whole: nothing can be worth more than the limit.
  question.mean = 1'000'000;
  std::int64_t work = 1'000'000;
  EXPECT_EQ(is_worth_more(question, work), PatternVerdict::none);
  question.mean = 900'000;
  EXPECT_NE(is_worth_more(question, work), PatternVerdict::none);
}

TEST(PatternDoubt, StopsWhenItTakesTooLong) {
  RandomEngine engine(3);
  PatternQuestion question = random_question(engine);
  question.mean = most_worth(question);
  std::int64_t work = 0;
  EXPECT_EQ(is_worth_more(question, work), PatternVerdict::out_of_work);
}

TEST(PatternDoubt, HugeNumbersAreLeftAlone) {
  PatternQuestion question{std::int64_t{1} << 60, 100, {{{1, 1, 1, 1, 1, {}}}}, 1};
  std::int64_t work = 1000;
  EXPECT_EQ(is_worth_more(question, work), PatternVerdict::out_of_work);
  question = {100, 100, {{{1, 1, std::int64_t{1} << 61, 100, 100, {}}}}, 1};
  EXPECT_EQ(is_worth_more(question, work), PatternVerdict::out_of_work);
  question = {
      std::int64_t{1} << 50, std::int64_t{1} << 56, {{{std::int64_t{1} << 49, 1, std::int64_t{1} << 59, 2, 2, {}}}}, 1};
  question.mean = std::int64_t{1} << 60;
  EXPECT_EQ(is_worth_more(question, work), PatternVerdict::none);
  question.mean -= 1;
  EXPECT_EQ(is_worth_more(question, work), PatternVerdict::exists);
}

}  // namespace
}  // namespace zellige
