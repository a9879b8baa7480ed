// SPDX-License-Identifier: Apache-2.0
#include "plan/own/pattern_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "base/random.h"

namespace zellige::own {
namespace {

/// Every pattern of a box, one by one, with the rules written out.
void for_each_pattern(const Model& model, const Box& box,
                      const std::function<void(const std::vector<std::int32_t>&)>& visit) {
  std::vector<std::int32_t> pieces(model.num_types(), 0);
  const auto fits = [&] {
    std::int64_t memory = 0;
    for (int t = 0; t < model.num_types(); ++t) memory += pieces[t] * model.types[t].memory_bytes;
    if (memory > model.memory_cap_bytes) return false;
    for (int g = 0; g < model.num_groups(); ++g) {
      // Sequences of the group that take options from t on number at most box.most, those before at most n - least.
      std::int64_t total = 0;
      for (int t = model.first[g]; t < model.first[g + 1]; ++t) total += pieces[t];
      std::int64_t before = 0;
      for (int t = model.first[g]; t < model.first[g + 1]; ++t) {
        if (total - before > box.most[t] || before > model.count[g] - box.least[t]) return false;
        before += pieces[t];
      }
    }
    return true;
  };
  const auto grow = [&](auto& self, int type) -> void {
    if (type == model.num_types()) {
      if (fits()) visit(pieces);
      return;
    }
    for (std::int32_t count = 0; count <= model.count[model.group_of(type)]; ++count) {
      pieces[type] = count;
      self(self, type + 1);
    }
    pieces[type] = 0;
  };
  grow(grow, 0);
}

std::int64_t below(RandomEngine& engine, std::int64_t bound) {
  return static_cast<std::int64_t>(draw_below(engine, static_cast<std::uint64_t>(bound)));
}

TEST(PatternSearch, FindsWhatEnumerationFinds) {
  int constrained = 0, with_steps = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    AnchorProblem problem;
    problem.ranks = 4;
    problem.memory_cap_bytes = 20 + below(engine, 60);
    const int groups = 1 + static_cast<int>(below(engine, 3));
    for (int g = 0; g < groups; ++g) {
      GroupCosts group{1 + below(engine, 3), {}};
      for (int degree = 1; degree <= 4; degree *= 2) {
        group.options.push_back({degree, 1 + below(engine, 40) / degree, below(engine, 30)});
      }
      problem.groups.push_back(group);
    }
    const Model model = make_model(problem);
    if (model.has_group_without_option) continue;
    Box box = whole_box(model);
    for (int t = 0; t < model.num_types(); ++t) {
      if (t == model.first[model.group_of(t)] || below(engine, 3) > 0) continue;
      box.least[t] = below(engine, model.count[model.group_of(t)] + 1);
      box.most[t] = box.least[t] + below(engine, model.count[model.group_of(t)] + 1 - box.least[t]);
      ++constrained;
    }
    if (!tighten(model, box)) continue;
    PieceValues values;
    for (int t = 0; t < model.num_types(); ++t) values.piece.push_back(below(engine, 60) - 10);
    if (below(engine, 2) == 0) {
      const int type = static_cast<int>(below(engine, model.num_types()));
      values.steps.push_back({type, 1 + static_cast<std::int32_t>(below(engine, 2)), below(engine, 80) - 40});
      values.steps.push_back({type, 2, below(engine, 80) - 40});
      ++with_steps;
    }
    const std::int64_t load_limit = below(engine, 90);
    const std::int64_t need = 1 + below(engine, 150);
    std::int64_t most = 0, least = 200;
    for_each_pattern(model, box, [&](const std::vector<std::int32_t>& pieces) {
      std::int64_t load = 0, value = 0;
      for (int t = 0; t < model.num_types(); ++t) {
        load += pieces[t] * model.types[t].time_us;
        value += pieces[t] * values.piece[t];
      }
      for (const StepValue& step : values.steps) value += pieces[step.type] >= step.at_least ? step.value : 0;
      if (load <= load_limit) most = std::max(most, value);
      if (value >= need) least = std::min(least, load);
    });
    PatternSearch search(model);
    std::vector<Pattern> found;
    const auto max = search.max_value(box, values, load_limit, 0, 1'000'000, 1'000'000, &found);
    EXPECT_TRUE(max.is_exact);
    EXPECT_EQ(max.value, most);
    EXPECT_EQ(found.empty(), most == 0);
    const auto min = search.min_load(box, values, need, 200, 1'000'000);
    EXPECT_TRUE(min.is_exact);
    EXPECT_EQ(min.value, least);
    // A threshold that is reached, and the first that is not.
    EXPECT_EQ(search.max_value(box, values, load_limit, most, 1'000'000, 1'000'000, nullptr).value, most);
    if (HasFailure()) break;
  }
  EXPECT_GT(constrained, 100);
  EXPECT_GT(with_steps, 100);
}

TEST(PatternSearch, SaysWhenItRanOutOfWork) {
  AnchorProblem problem{4, 1000, {}};
  for (int g = 0; g < 6; ++g) problem.groups.push_back({9, {{1, 97 + 7 * g, 13}, {2, 53 + 5 * g, 11}}});
  const Model model = make_model(problem);
  PieceValues values;
  for (int t = 0; t < model.num_types(); ++t) values.piece.push_back(model.types[t].time_us + t % 3);
  PatternSearch search(model);
  EXPECT_FALSE(search.max_value(whole_box(model), values, 1000, 0, 10, 10, nullptr).is_exact);
}

}  // namespace
}  // namespace zellige::own
