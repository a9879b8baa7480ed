// SPDX-License-Identifier: Apache-2.0
#include "engine/step_plan.h"

#include <functional>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/random_placement.h"
#include "zellige/error.h"

namespace zellige {
namespace {

using testing::HasSubstr;

struct Elements {
  std::int64_t all_gather = 0, ulysses = 0, ring = 0;
  bool operator==(const Elements&) const = default;
};

Elements sent(const PassPlan& pass) {
  Elements sum;
  const auto add = [&](const ExchangePlan& exchange) {
    sum.all_gather += exchange.all_gather_elements;
    sum.ulysses += exchange.ulysses_elements;
    sum.ring += exchange.ring_elements;
  };
  for (const Round& round : pass.rounds) {
    add(round.a);
    add(round.b);
    for (const auto& exchange : round.ring) add(exchange);
  }
  return sum;
}

/// The volumes of engine.md, split by primitive, for a length that the degree divides. They are multiples of 1 / (qhk),
/// hence of whole elements.
TEST(StepPlan, SendsTheVolumesOfTheDesign) {
  for (const Configuration config : oracle::configurations_up_to(8, 12, 12)) {
    if (config.is_whole()) continue;
    const auto [q, h, k] = config;
    const int degree = config.degree();
    std::vector<Rank> ranks(static_cast<std::size_t>(degree));
    std::iota(ranks.begin(), ranks.end(), 0);
    const std::int64_t tokens = 6 * degree;
    Placement placement = oracle::make_placement(degree, 12, 12, 2, {{tokens, config, ranks}});
    placement.exec.waves = 2;
    const std::int64_t unit = tokens * 12 * 2;
    for (const bool keep_kv : {true, false}) {
      placement.exec.keep_kv = keep_kv;
      Elements forward, backward;
      for (const Rank rank : ranks) {
        const StepPlan plan = make_step_plan(lower(placement, rank));
        const Elements ours = sent(plan.forward);
        const Elements back = sent(plan.backward);
        forward = {forward.all_gather + ours.all_gather, forward.ulysses + ours.ulysses, forward.ring + ours.ring};
        backward = {backward.all_gather + back.all_gather, backward.ulysses + back.ulysses, backward.ring + back.ring};
      }
      const std::int64_t among_heads = 2 * (h - 1) * unit / h;  // Q and O, or K and V of the own iq
      SCOPED_TRACE(text(config));
      EXPECT_EQ(forward, (Elements{2 * (q - 1) * unit, 2 * among_heads, 2 * q * (k - 1) * unit}));
      // dO and dQ, dK and dV; streamed K/V and their gradients; and what was not kept.
      const std::int64_t again = keep_kv ? 0 : 1;
      EXPECT_EQ(backward,
                (Elements{(1 + again) * 2 * (q - 1) * unit, (2 + again) * among_heads, 2 * 2 * q * (k - 1) * unit}));
    }
  }
}

/// What the engine counts is what scores and profiles predict, for any length, grouped heads included.
TEST(StepPlan, SendsWhatScoresPredict) {
  for (std::uint64_t seed = 300; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Placement placement = oracle::random_placement(seed, {.max_ranks = 12, .min_split = 1});
    if (seed % 2 == 0) placement.exec.engine = "paper";
    Elements ours;
    for (Rank rank = 0; rank < placement.ranks; ++rank) {
      const StepPlan plan = make_step_plan(lower(placement, rank));
      for (const Elements& pass : {sent(plan.forward), sent(plan.backward)}) {
        ours = {ours.all_gather + pass.all_gather, ours.ulysses + pass.ulysses, ours.ring + pass.ring};
      }
    }
    ExchangeVolume predicted;
    for (const PlacedSequence& placed : placement.sequences) {
      if (placed.config.is_whole()) continue;
      for (const ExchangeVolume& pass :
           {forward_volume(placement.model, placed.tokens, placed.config),
            backward_volume(placement.model, placed.tokens, placed.config, placement.exec.keep_kv)}) {
        predicted.all_gather += pass.all_gather;
        predicted.ulysses += pass.ulysses;
        predicted.ring += pass.ring;
      }
    }
    EXPECT_NEAR(static_cast<double>(ours.all_gather), predicted.all_gather, 1e-6);
    EXPECT_NEAR(static_cast<double>(ours.ulysses), predicted.ulysses, 1e-6);
    EXPECT_NEAR(static_cast<double>(ours.ring), predicted.ring, 1e-6);
  }
}

TEST(StepPlan, FindsTheLargestBuffers) {
  // Two ranks, all-gather: each rank gives its two of four tokens, three heads of one element, as K and V.
  const Placement placement = oracle::make_placement(2, 3, 3, 1, {{4, {2, 1, 1}, {0, 1}}});
  const StepPlan plan = make_step_plan(lower(placement, 0));
  EXPECT_EQ(plan.need(Phase::a).send, 2 * 3 * 2);
  EXPECT_EQ(plan.need(Phase::a).receive, 2 * 3 * 2);
  EXPECT_EQ(plan.need(Phase::b).send, 2 * 3 * 2) << "dK and dV";
  EXPECT_EQ(plan.need(Phase::ring).send, 0);
  EXPECT_FALSE(
      make_step_plan(lower(oracle::make_placement(2, 3, 3, 1, {{4, {1, 1, 1}, {0}}}), 0)).forward.has_exchanges());
}

TEST(StepPlan, TakesWhatLowerGives) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Placement placement = oracle::random_placement(seed, {.max_ranks = 12});
    if (seed % 3 == 0) placement.exec.engine = "paper";
    for (Rank rank = 0; rank < placement.ranks; ++rank) EXPECT_NO_THROW(make_step_plan(lower(placement, rank)));
  }
}

TEST(StepPlan, RefusesSchedulesThatDoNotHoldTogether) {
  Placement placement =
      oracle::make_placement(8, 4, 4, 2, {{17, {2, 2, 2}, {3, 1, 4, 0, 5, 7, 2, 6}}, {9, {1, 1, 1}, {1}}});
  placement.exec.waves = 2;
  const Schedule good = lower(placement, 1);
  EXPECT_NO_THROW(make_step_plan(good));
  struct Mutant {
    const char* what;
    std::function<void(Schedule&)> damage;
    const char* expected;
  };
  const std::vector<Mutant> mutants{
      {"no heads", [](Schedule& s) { s.heads = 0; }, "heads is 0"},
      {"heads that do not group", [](Schedule& s) { s.kv_heads = 3; }, "3 kv_heads do not divide 4 heads"},
      {"another engine", [](Schedule& s) { s.exec.engine = "fast"; }, "engine is 'fast'; use 'coalesced' or 'paper'"},
      {"a second group", [](Schedule& s) { s.forward.back().group = 1; }, "a coalesced step has 2 groups"},
      {"a group that is not the segment's", [](Schedule& s) { s.segments[1].group = 1; },
       "carries sequence 0 of group 1"},
      {"no waves", [](Schedule& s) { s.exec.waves = 0; }, "waves is 0"},
      {"a token too many", [](Schedule& s) { ++s.num_tokens; }, "tokens, but the segments have"},
      {"a shifted segment", [](Schedule& s) { ++s.segments[1].local_begin; }, "segment 1 is out of place"},
      {"a chunk among the wholes", [](Schedule& s) { s.num_whole = 2; }, "segment 1 is out of place"},
      {"a lost group", [](Schedule& s) { s.whole_groups.clear(); }, "and the whole groups 0 of 9"},
      {"an empty group", [](Schedule& s) { s.whole_groups[0].count = 0; }, "a whole group is out of place"},
      {"swapped exchanges", [](Schedule& s) { std::swap(s.forward[0], s.forward[1]); },
       "comes where exchange a of wave 0 belongs"},
      {"a lost exchange", [](Schedule& s) { s.forward.pop_back(); },
       "the end comes where exchange b of wave 1 belongs"},
      {"an exchange too many", [](Schedule& s) { s.backward.push_back(s.backward.back()); }, "after the last wave"},
      {"a lost ring step", [](Schedule& s) { s.backward.erase(s.backward.begin() + 2); }, "ring"},
      {"no exchanges", [](Schedule& s) { s.forward.clear(); }, "rings of different lengths"},
      {"no exchanges at all",
       [](Schedule& s) {
         s.forward.clear();
         s.backward.clear();
       },
       "sequence 0 needs 1 ring steps a wave"},
      {"a lost piece", [](Schedule& s) { s.forward[0].sends.pop_back(); }, "counts differ"},
      {"a wrong count", [](Schedule& s) { ++s.forward[0].receive_counts[0]; }, "counts differ"},
      {"a piece of the rank itself", [](Schedule& s) { s.forward[0].sends[0].peer = 1; }, "use pieces of other ranks"},
      {"a rank outside", [](Schedule& s) { s.forward[0].sends.back().peer = 8; }, "use pieces of other ranks"},
      {"a foreign sequence", [](Schedule& s) { s.forward[0].sends[0].sequence = 1; }, "travels but is not split"},
      {"foreign tokens", [](Schedule& s) { ++s.forward[0].sends[0].token_begin; }, "go beyond what rank 1 has"},
      {"foreign heads", [](Schedule& s) { s.forward[0].receives[0].head_begin = 3; }, "go beyond what rank 1 has"},
      {"an empty piece", [](Schedule& s) { s.forward[0].receives[0].num_tokens = 0; }, "go beyond what rank 1 has"},
  };
  for (const Mutant& mutant : mutants) {
    SCOPED_TRACE(mutant.what);
    Schedule bad = good;
    mutant.damage(bad);
    try {
      make_step_plan(bad);
      ADD_FAILURE() << "taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::input);
      EXPECT_THAT(error.what(), HasSubstr(mutant.expected));
    }
  }
}

}  // namespace
}  // namespace zellige
