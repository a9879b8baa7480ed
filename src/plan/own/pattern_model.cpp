// SPDX-License-Identifier: Apache-2.0
#include "plan/own/pattern_model.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace zellige::own {
namespace {

bool dominates(const OptionCost& a, const OptionCost& b) {
  return a.degree <= b.degree && a.time_us <= b.time_us && a.memory_bytes <= b.memory_bytes &&
         a.exchange_us <= b.exchange_us;
}

/// Options that some best placement may need: the others can be replaced without raising load, memory or splits.
std::vector<PieceType> needed_types(const AnchorProblem& problem, const GroupCosts& group) {
  std::vector<PieceType> types;
  for (std::size_t j = 0; j < group.options.size(); ++j) {
    const OptionCost& option = group.options[j];
    bool needed = option.memory_bytes <= problem.memory_cap_bytes && option.degree <= problem.ranks;
    for (std::size_t other = 0; needed && other < group.options.size(); ++other) {
      if (other == j || !dominates(group.options[other], option)) continue;
      needed = dominates(option, group.options[other]) && j < other;
    }
    if (needed) {
      types.push_back({0, static_cast<int>(j), option.degree, option.time_us, option.memory_bytes, option.exchange_us});
    }
  }
  std::stable_sort(types.begin(), types.end(), [](const PieceType& a, const PieceType& b) {
    return std::tuple(a.degree, -a.time_us) < std::tuple(b.degree, -b.time_us);
  });
  return types;
}

}  // namespace

std::int64_t value_unit(const std::vector<int>& degrees) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  std::int64_t unit = 1;
  for (const int degree : degrees) {
    unit = std::lcm(unit, static_cast<std::int64_t>(degree));
    if (unit > kMost) return kMost;
  }
  return unit;
}

Model make_model(const AnchorProblem& problem) {
  Model model;
  model.ranks = problem.ranks;
  model.memory_cap_bytes = problem.memory_cap_bytes;
  struct Prepared {
    int source;
    std::vector<PieceType> types;
    std::int64_t dearest_us = 0;
  };
  std::vector<Prepared> groups;
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    if (problem.groups[g].count == 0) continue;
    Prepared prepared{static_cast<int>(g), needed_types(problem, problem.groups[g])};
    for (const PieceType& type : prepared.types) {
      prepared.dearest_us = std::max(prepared.dearest_us, type.load_us() * type.degree);
    }
    model.has_group_without_option |= prepared.types.empty();
    groups.push_back(std::move(prepared));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Prepared& a, const Prepared& b) { return a.dearest_us > b.dearest_us; });
  std::vector<int> degrees;
  for (Prepared& group : groups) {
    const int index = model.num_groups();
    model.first.push_back(model.num_types());
    model.count.push_back(problem.groups[group.source].count);
    model.source.push_back(group.source);
    for (PieceType& type : group.types) {
      type.group = index;
      degrees.push_back(type.degree);
      model.types.push_back(type);
    }
    int split = model.first.back();
    while (split < model.num_types() && model.types[split].degree == 1) ++split;
    model.first_split.push_back(split);
  }
  model.first.push_back(model.num_types());
  model.unit = value_unit(degrees);
  return model;
}

Box whole_box(const Model& model) {
  Box box{std::vector<std::int64_t>(model.num_types(), 0), std::vector<std::int64_t>(model.num_types(), 0)};
  for (int t = 0; t < model.num_types(); ++t) box.most[t] = model.count[model.group_of(t)];
  for (int g = 0; g < model.num_groups(); ++g) box.least[model.first[g]] = model.count[g];
  return box;
}

bool tighten(const Model& model, Box& box) {
  for (int g = 0; g < model.num_groups(); ++g) {
    for (int t = model.first[g] + 1; t < model.first[g + 1]; ++t) box.most[t] = std::min(box.most[t], box.most[t - 1]);
    for (int t = model.first[g + 1] - 2; t >= model.first[g]; --t) {
      box.least[t] = std::max(box.least[t], box.least[t + 1]);
    }
    for (int t = model.first[g]; t < model.first[g + 1]; ++t) {
      if (box.least[t] > box.most[t]) return false;
    }
  }
  return true;
}

std::int64_t Packing::largest_load() const {
  std::int64_t load = 0;
  for (const Pattern& pattern : patterns) load = std::max(load, pattern.load_us());
  return load;
}

std::int64_t num_split(const Model& model, const TypeCounts& counts) {
  std::int64_t split = 0;
  for (int t = 0; t < model.num_types(); ++t) split += model.types[t].degree > 1 ? counts[t] : 0;
  return split;
}

}  // namespace zellige::own
