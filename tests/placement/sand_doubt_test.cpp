// SPDX-License-Identifier: Apache-2.0
#include "placement/sand_doubt.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace zellige {
namespace {

using Kind = PatternQuestion::Kind;
using Prices = AnchorProof::Prices;

std::int64_t below(RandomEngine& engine, std::int64_t bound) {
  return static_cast<std::int64_t>(draw_below(engine, static_cast<std::uint64_t>(bound)));
}

PatternQuestion random_question(RandomEngine& engine) {
  PatternQuestion question;
  question.load_limit_us = 20 + below(engine, 80);
  question.memory_cap_bytes = 20 + below(engine, 80);
  const std::int64_t groups = 1 + below(engine, 4);
  for (std::int64_t g = 0; g < groups; ++g) {
    auto& kinds = question.groups.emplace_back();
    const std::int64_t count = 1 + below(engine, 5), size = 1 + below(engine, 3);
    for (std::int64_t k = 0; k < size; ++k) {
      const std::int64_t time = 1 + below(engine, 30), memory = below(engine, 30);
      kinds.push_back({.time_us = time,
                       .memory_bytes = memory,
                       .value = 10 * (time + memory) + below(engine, 60),
                       .before_most = count,
                       .after_most = count,
                       .steps = {}});
    }
  }
  question.mean = 10 * (question.load_limit_us + question.memory_cap_bytes) / 2 + below(engine, 1200);
  return question;
}

/// Prices from a grid: the verdict holds whatever they are.
std::vector<Prices> some_prices() {
  std::vector<Prices> prices;
  const double unit = std::ldexp(1.0, AnchorProof::kPriceShift);
  for (int a = 0; a <= 60; a += 2) {
    for (int b = 0; b <= 60; b += 2) prices.push_back({std::llround(a * unit), std::llround(b * unit)});
  }
  return prices;
}

/// The most that counted pieces and sand are worth, by trying all counts and a fine grid of two kinds of sand: a lower
/// bound of the truth.
double tried(const PatternQuestion& question, std::size_t counted) {
  std::vector<Kind> sand;
  for (std::size_t g = counted; g < question.groups.size(); ++g) {
    for (const Kind& kind : question.groups[g]) {
      if (kind.time_us <= question.load_limit_us && kind.memory_bytes <= question.memory_cap_bytes)
        sand.push_back(kind);
    }
  }
  double best = 0;
  const auto fill = [&](double load, double memory, double value) {
    best = std::max(best, value);
    const auto alone = [&](const Kind& kind, double room_us, double room_bytes) {
      double most = room_us / static_cast<double>(kind.time_us);
      if (kind.memory_bytes > 0) most = std::min(most, room_bytes / static_cast<double>(kind.memory_bytes));
      return std::max(0.0, most);
    };
    for (const Kind& a : sand) {
      const double most = alone(a, load, memory);
      for (int part = 0; part <= 8; ++part) {
        const double taken = most * part / 8, value_a = value + taken * static_cast<double>(a.value);
        const double room_us = load - taken * static_cast<double>(a.time_us);
        const double room_bytes = memory - taken * static_cast<double>(a.memory_bytes);
        for (const Kind& b : sand) {
          best = std::max(best, value_a + alone(b, room_us, room_bytes) * static_cast<double>(b.value));
        }
      }
    }
  };
  const auto take = [&](auto& self, std::size_t g, std::size_t k, std::int64_t held, double load, double memory,
                        double value) -> void {
    if (g == counted) return fill(load, memory, value);
    if (k == question.groups[g].size()) return self(self, g + 1, 0, 0, load, memory, value);
    const Kind& kind = question.groups[g][k];
    for (std::int64_t count = 0; held + count <= kind.after_most; ++count) {
      const double left_us = load - static_cast<double>(count * kind.time_us);
      const double left_bytes = memory - static_cast<double>(count * kind.memory_bytes);
      if (left_us < 0 || left_bytes < 0) break;
      self(self, g, k + 1, held + count, left_us, left_bytes, value + static_cast<double>(count * kind.value));
    }
  };
  take(take, 0, 0, 0, static_cast<double>(question.load_limit_us), static_cast<double>(question.memory_cap_bytes), 0);
  return best;
}

/// "None" is never said where something is worth more, and often said where nothing is.
TEST(SandDoubt, NeverMissesWhatIsWorthMore) {
  int none = 0, exists = 0, close = 0, with_sand = 0;
  for (std::uint64_t seed = 1; seed <= 2500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    PatternQuestion question = random_question(engine);
    const auto counted = static_cast<std::size_t>(below(engine, static_cast<std::int64_t>(question.groups.size()) + 1));
    const double most = tried(question, counted);
    for (const std::int64_t mean :
         {static_cast<std::int64_t>(std::floor(most)) - 2, static_cast<std::int64_t>(question.mean),
          static_cast<std::int64_t>(std::ceil(most * 1.15)) + 40}) {
      if (mean < 0) continue;
      question.mean = mean;
      std::int64_t work = 10'000'000;
      const PatternVerdict verdict = is_worth_more_over_sand(question, counted, some_prices(), work);
      ASSERT_NE(verdict, PatternVerdict::out_of_work);
      // Whole pieces are worth integers: more than the mean is one more or above. Rounding errors of the trial aside.
      if (most > static_cast<double>(mean + 1) + 1e-6) {
        ASSERT_EQ(verdict, PatternVerdict::exists) << "most " << most;
      }
      (verdict == PatternVerdict::none ? none : exists) += 1;
      close += verdict == PatternVerdict::none && static_cast<double>(mean) < most * 1.05;
    }
    with_sand += counted < question.groups.size();
  }
  EXPECT_GT(none, 2000);
  EXPECT_GT(exists, 2500);
  EXPECT_GT(close, 25);
  EXPECT_GT(with_sand, 1000);
}

PatternQuestion one_kind_of_sand() {
  return {.load_limit_us = 100,
          .memory_cap_bytes = 50,
          .groups = {{{.time_us = 10, .memory_bytes = 10, .value = 7, .before_most = 9, .after_most = 9, .steps = {}}}},
          .mean = 35};  // five fit the cap, worth 35
}

TEST(SandDoubt, TakesOnlyPricesThatPayForTheSand) {
  std::int64_t work = 1000;
  const std::int64_t unit = std::int64_t{1} << AnchorProof::kPriceShift;
  const PatternQuestion question = one_kind_of_sand();
  EXPECT_EQ(is_worth_more_over_sand(question, 0, {{0, 7 * unit / 10 + 1}}, work), PatternVerdict::none);
  EXPECT_EQ(is_worth_more_over_sand(question, 0, {{0, 7 * unit / 10 - 1}}, work), PatternVerdict::exists);  // too cheap
  EXPECT_EQ(is_worth_more_over_sand(question, 0, {{7 * unit / 10 + 1, 0}}, work),
            PatternVerdict::exists);  // load is free
  EXPECT_EQ(is_worth_more_over_sand(question, 0, {}, work), PatternVerdict::exists);
  EXPECT_EQ(is_worth_more_over_sand(question, 0, {{-unit, 2 * unit}}, work), PatternVerdict::exists);
  PatternQuestion less = question;
  less.mean = 34;
  EXPECT_EQ(is_worth_more_over_sand(less, 0, {{0, 7 * unit / 10 + 1}}, work), PatternVerdict::exists);
  std::int64_t nothing = 0;
  EXPECT_EQ(is_worth_more_over_sand(question, 0, {{0, 7 * unit / 10 + 1}}, nothing), PatternVerdict::out_of_work);
}

}  // namespace
}  // namespace zellige
