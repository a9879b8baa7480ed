// SPDX-License-Identifier: Apache-2.0
// Attention driven by nothing but the schedules, on poisoned memory, against dense attention (docs/design/engine.md,
// "Volume", last line).
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"
#include "testing/attention_simulation.h"
#include "testing/random_placement.h"

namespace zellige {
namespace {

using namespace oracle;

constexpr double kTolerance = 1e-12;
constexpr int kHeads = 12;

/// All that a simulated layer needs, and what it should give.
struct Case {
  explicit Case(const Placement& placement, std::uint64_t data_seed) {
    for (Rank rank = 0; rank < placement.ranks; ++rank) schedules.push_back(lower(placement, rank));
    for (const PlacedSequence& placed : placement.sequences) {
      inputs.push_back(random_inputs(placed.tokens.value, placement.model.heads, placement.model.kv_heads,
                                     placement.model.head_dim, data_seed + inputs.size()));
      expected.push_back(dense_attention(inputs.back()));
    }
  }

  double error(const std::optional<Loss>& loss = std::nullopt) const {
    const std::vector<AttentionResult> results = simulate_attention(schedules, inputs, loss);
    double largest = 0;
    for (std::size_t i = 0; i < results.size(); ++i)
      largest = std::max(largest, largest_error(results[i], expected[i]));
    return largest;
  }

  std::vector<Schedule> schedules;
  std::vector<AttentionInputs> inputs;
  std::vector<AttentionResult> expected;
};

std::vector<Rank> scrambled(int first, int count, std::uint64_t seed) {
  std::vector<Rank> ranks(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) ranks[static_cast<std::size_t>(i)] = first + i;
  RandomEngine engine(seed);
  shuffle(ranks, engine);
  return ranks;
}

std::vector<Configuration> split_configurations(int max_degree, int kv_heads = kHeads) {
  std::vector<Configuration> all = configurations_up_to(max_degree, kHeads, kv_heads);
  all.erase(all.begin());  // whole
  return all;
}

/// `config` on a scrambled rank set, another split sequence on ranks half of which are the same, whole sequences on
/// ranks with shards, and a last rank with nothing. No length divides by its degree.
Placement crowded(Configuration config, Configuration other, int kv_heads, std::uint64_t seed) {
  const int shift = config.degree() / 2;
  const int ranks = std::max(config.degree(), shift + other.degree()) + 1;
  const auto uneven = [](Configuration c) { return 2 * c.degree() + 1; };
  return make_placement(ranks, kHeads, kv_heads, 2,
                        {{5, {1, 1, 1}, {0}},
                         {uneven(other), other, scrambled(shift, other.degree(), seed + 1)},
                         {3, {1, 1, 1}, {shift}},
                         {uneven(config) + config.degree() / 2, config, scrambled(0, config.degree(), seed)},
                         {5, {1, 1, 1}, {0}}});
}

std::string describe(const Loss& loss) {
  return std::string(loss.backward ? "backward" : "forward") + " exchange " + std::to_string(loss.exchange) +
         ", rank " + std::to_string(loss.from) + " to " + std::to_string(loss.to) +
         (loss.piece ? ", piece " + std::to_string(*loss.piece) : "");
}

TEST(Simulation, EveryConfigurationToDegree12EqualsDenseAttention) {
  const std::vector<Configuration> configurations = split_configurations(12);
  const std::vector<Configuration> others = split_configurations(6);
  ASSERT_GT(configurations.size(), 60U);
  std::uint64_t seed = 0;
  for (const Configuration config : configurations) {
    for (int waves = 1; waves <= 5; ++waves) {
      for (const bool keep_kv : {true, false}) {
        Placement placement = crowded(config, others[seed % others.size()], kHeads, seed);
        placement.exec.waves = waves;
        placement.exec.keep_kv = keep_kv;
        SCOPED_TRACE(text(config) + " waves " + std::to_string(waves) + " keep_kv " + std::to_string(keep_kv) +
                     " seed " + std::to_string(seed));
        EXPECT_LE(Case(placement, seed).error(), kTolerance);
        ++seed;
      }
    }
  }
}

TEST(Simulation, GroupedKeyValueHeadsEqualDenseAttention) {
  std::uint64_t seed = 1000;
  for (const int kv_heads : {1, 2, 4, 6}) {
    const std::vector<Configuration> others = split_configurations(4, kv_heads);
    for (const Configuration config : split_configurations(8, kv_heads)) {
      Placement placement = crowded(config, others[seed % others.size()], kv_heads, seed);
      placement.exec.waves = 1 + static_cast<int>(seed % 4);
      placement.exec.keep_kv = seed % 2 == 0;
      SCOPED_TRACE(text(config) + " kv_heads " + std::to_string(kv_heads) + " seed " + std::to_string(seed));
      EXPECT_LE(Case(placement, seed).error(), kTolerance);
      ++seed;
    }
  }
}

TEST(Simulation, RandomPlacementsEqualDenseAttention) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    EXPECT_LE(Case(random_placement(seed, {.max_ranks = 12}), seed).error(), kTolerance);
  }
}

// The simulation can fail, and no message is sent in vain: whatever does not arrive is missed. An element that is not
// written stays NaN, and the share of a gradient that is not added is far from zero for these inputs.
constexpr double kNoticed = 1e-9;

TEST(Simulation, EveryMessageLostIsNoticed) {
  std::uint64_t seed = 2000;
  std::size_t lost = 0;
  for (const Configuration config : split_configurations(12)) {
    Placement placement = make_placement(config.degree() + 1, kHeads, kHeads, 1,
                                         {{config.degree() + 1, config, scrambled(0, config.degree(), seed)}});
    placement.exec.keep_kv = seed % 2 == 0;
    placement.exec.waves = 1 + static_cast<int>(seed / 2 % 2);
    const Case simulated(placement, seed);
    ASSERT_LE(simulated.error(), kTolerance);
    for (const Loss& loss : all_losses(simulated.schedules, false)) {
      EXPECT_GT(simulated.error(loss), kNoticed) << text(config) << " seed " << seed << ": " << describe(loss);
      ++lost;
    }
    ++seed;
  }
  EXPECT_GT(lost, 5'000U);
}

TEST(Simulation, EveryPieceLostFromAMessageOfManyIsNoticed) {
  std::uint64_t seed = 3000;
  std::size_t lost = 0;
  for (const Configuration config :
       {Configuration{2, 2, 1}, Configuration{1, 2, 3}, Configuration{2, 1, 4}, Configuration{1, 4, 1}}) {
    for (const bool keep_kv : {true, false}) {
      Placement placement = crowded(config, {1, 2, 2}, kHeads, seed);
      placement.exec.waves = 2;
      placement.exec.keep_kv = keep_kv;
      const Case simulated(placement, seed);
      ASSERT_LE(simulated.error(), kTolerance);
      for (const Loss& loss : all_losses(simulated.schedules, true)) {
        EXPECT_GT(simulated.error(loss), kNoticed) << text(config) << " seed " << seed << ": " << describe(loss);
        ++lost;
      }
      ++seed;
    }
  }
  EXPECT_GT(lost, 1'000U);
}

// Memory is poisoned indeed: K/V that were not kept and are not fetched again are NaN.
TEST(Simulation, KeyAndValueThatWereNotKeptAreGone) {
  Placement placement = crowded({2, 2, 1}, {1, 1, 2}, kHeads, 7);
  placement.exec.keep_kv = false;
  Case simulated(placement, 7);
  ASSERT_LE(simulated.error(), kTolerance);
  placement.exec.keep_kv = true;
  const Case kept(placement, 7);
  for (std::size_t rank = 0; rank < simulated.schedules.size(); ++rank) {
    simulated.schedules[rank].backward = kept.schedules[rank].backward;
  }
  EXPECT_GT(simulated.error(), kNoticed);
}

TEST(Simulation, ScheduleThatDoesNotFitThrows) {
  const Placement placement = crowded({2, 2, 1}, {1, 2, 1}, kHeads, 8);
  const Case good(placement, 8);
  ASSERT_LE(good.error(), kTolerance);

  Case other_order = good;
  std::swap(other_order.schedules[0].forward.front(), other_order.schedules[0].forward.back());
  EXPECT_THROW(other_order.error(), std::logic_error);

  Case short_count = good;
  for (std::int64_t& count : short_count.schedules[0].forward.front().receive_counts) count = count > 0 ? count - 1 : 0;
  EXPECT_THROW(short_count.error(), std::logic_error);

  // Pieces in another order than the sender's have the same counts, and give another result.
  Case swapped = good;
  std::vector<Piece>& receives = swapped.schedules[0].forward.front().receives;
  const auto pair = std::adjacent_find(receives.begin(), receives.end(), [](const Piece& a, const Piece& b) {
    return a.peer == b.peer && a.payload == Payload::key && b.payload == Payload::value;
  });
  ASSERT_NE(pair, receives.end());
  std::iter_swap(pair, pair + 1);
  EXPECT_GT(swapped.error(), kNoticed);
}

}  // namespace
}  // namespace zellige
