// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "placement/random_plan.h"
#include "testing/findings.h"
#include "zellige/check.h"

namespace zellige {
namespace {

using testing::shown;

/// Another value than `old`: a neighbour, an extreme, or anything.
template <class Integer>
Integer other_than(Integer old, RandomEngine& engine) {
  using Unsigned = std::make_unsigned_t<Integer>;
  while (true) {
    Integer drawn = 0;
    switch (draw_below(engine, 6)) {
      case 0: drawn = static_cast<Integer>(static_cast<Unsigned>(old) + 1); break;
      case 1: drawn = static_cast<Integer>(static_cast<Unsigned>(old) - 1); break;
      case 2: drawn = std::numeric_limits<Integer>::max(); break;
      case 3: drawn = std::numeric_limits<Integer>::min(); break;
      case 4: drawn = 0; break;
      default: drawn = static_cast<Integer>(engine());
    }
    if (drawn != old) return drawn;
  }
}

template <class T>
T& any_of(std::vector<T>& items, RandomEngine& engine) {
  return items[static_cast<std::size_t>(draw_below(engine, items.size()))];
}

/// Changes one thing. Returns its name, empty when the change leaves a plan that is still right.
std::string mutate(Plan& plan, RandomEngine& engine) {
  PlacedSequence& sequence = any_of(plan.placement.sequences, engine);
  Certificate& proof = plan.certificate;
  switch (draw_below(engine, 27)) {
    case 0: plan.placement.ranks = other_than(plan.placement.ranks, engine); return "ranks";
    case 1: plan.placement.model.heads = other_than(plan.placement.model.heads, engine); return "model";
    case 2: sequence.id += "x"; return "id";
    case 3: sequence.bucket += "x"; return "bucket";
    case 4: sequence.kind = static_cast<MediaKind>(other_than(static_cast<int>(sequence.kind), engine)); return "kind";
    case 5: sequence.tokens.value = other_than(sequence.tokens.value, engine); return "tokens";
    case 6: sequence.config.q = other_than(sequence.config.q, engine); return "q";
    case 7: sequence.config.h = other_than(sequence.config.h, engine); return "h";
    case 8: sequence.config.k = other_than(sequence.config.k, engine); return "k";
    case 9:
      any_of(sequence.ranks, engine) = other_than(sequence.ranks[0], engine);
      return "";  // may be a mere renaming
    case 10: sequence.ranks.pop_back(); return "a rank less";
    case 11: sequence.ranks.push_back(static_cast<Rank>(engine())); return "a rank more";
    case 12: sequence.time.value = other_than(sequence.time.value, engine); return "time";
    case 13: sequence.memory.value = other_than(sequence.memory.value, engine); return "memory";
    case 14: any_of(plan.load, engine).value = other_than(plan.load[0].value, engine); return "";
    case 15: plan.load.resize(static_cast<std::size_t>(draw_below(engine, plan.load.size()))); return "loads";
    case 16: plan.memory.push_back({}); return "memories";
    case 17: plan.makespan.value = other_than(plan.makespan.value, engine); return "makespan";
    case 18: plan.floor.value = other_than(plan.floor.value, engine); return "floor";
    case 19: plan.split_count = other_than(plan.split_count, engine); return "split count";
    case 20: proof.anchor_bound->value = other_than(proof.anchor_bound->value, engine); return "anchor bound";
    case 21: proof.split_bound = other_than(*proof.split_bound, engine); return "split bound";
    case 22: proof.makespan_bound->value = other_than(proof.makespan_bound->value, engine); return "makespan bound";
    case 23: proof.split_status = static_cast<SolveStatus>(other_than(0, engine)); return "split status";
    case 24: plan.profile_digest += "0"; return "profile digest";
    case 25: plan.placement.sequences.pop_back(); return "a sequence less";
    default: plan.status = static_cast<PlanStatus>(other_than(0, engine)); return "status";
  }
}

TEST(CheckFuzz, RandomPlansWithoutALieHaveNoFinding) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const auto [batch, profile, plan] = random_plan::draw(engine);
    ASSERT_EQ(shown(check(plan, batch, profile)), "");
  }
}

TEST(CheckFuzz, OneLieInARandomPlanIsFound) {
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    auto [batch, profile, plan] = random_plan::draw(engine, 6, 8);
    const std::string changed = mutate(plan, engine);
    if (changed.empty()) {
      check(plan, batch, profile);
    } else {
      EXPECT_FALSE(check(plan, batch, profile).empty()) << "changed: " << changed;
    }
  }
}

TEST(CheckFuzz, ManyLiesTogetherNeverThrow) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed + 1'000'000);
    auto [batch, profile, plan] = random_plan::draw(engine, 6, 8);
    for (int i = 0; i < 12 && !plan.placement.sequences.empty() && !plan.load.empty(); ++i) {
      for (PlacedSequence& sequence : plan.placement.sequences) {
        if (sequence.ranks.empty()) sequence.ranks = {0};  // `mutate` picks one
      }
      mutate(plan, engine);
    }
    EXPECT_NO_THROW(check(plan, batch, profile));
  }
}

}  // namespace
}  // namespace zellige
