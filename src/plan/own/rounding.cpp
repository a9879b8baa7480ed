// SPDX-License-Identifier: Apache-2.0
// How a node of the branch and bound comes by placements: its linear program rounded, in several ways.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "plan/own/branch_and_bound.h"

namespace zellige::own {
namespace {

/// Work limits of single steps.
constexpr std::int64_t kPackWork = 3'000;
constexpr std::int64_t kThoroughPackWork = 60'000;
constexpr std::int64_t kFixedLpWork = 60'000;
constexpr std::int64_t kRestWork = 4'000;
/// Patterns of fixed counts are asked for down to this depth, and then at every fourth.
constexpr int kPatternsDepth = 4;
constexpr double kFraction = 1e-6;
/// A part of a pattern that is taken whole.
constexpr double kLargePart = 0.3;

}  // namespace

bool BranchAndBound::pack_at(const TypeCounts& counts, std::int64_t load_limit_us, std::int64_t work_limit) {
  BinCompletion::Task task;
  task.pieces.resize(model_.num_types());
  for (int t = 0; t < model_.num_types(); ++t) task.pieces[t] = counts[t] * model_.types[t].degree;
  task.most = counts;
  task.ranks = model_.ranks;
  task.load_limit_us = load_limit_us;
  if (completion_.pack(task, work_limit) != BinCompletion::Outcome::packed) return false;
  take({counts, completion_.patterns()});
  return true;
}

void BranchAndBound::try_counts(const Node& node, const TypeCounts& counts, bool thorough) {
  if (!thorough && !tried_.insert(counts).second) return;
  if (objective_ == Objective::splits) {
    if (num_split(model_, counts) >= goal()) return;
    Packing packing;
    std::int64_t pieces = 0;
    for (int t = 0; t < model_.num_types(); ++t) pieces += counts[t] * model_.types[t].degree;
    other_work_ += pieces * 8;
    if (list_schedule(model_, counts, packing)) take(packing);
    if (num_split(model_, counts) < goal()) {
      pack_at(counts, load_limit_us_, thorough ? kThoroughPackWork : kPackWork);
    }
    return;
  }
  std::int64_t pieces = 0, area = 0, least = node.bound;
  for (int t = 0; t < model_.num_types(); ++t) {
    if (counts[t] == 0) continue;
    const PieceType& type = model_.types[t];
    pieces += counts[t] * type.degree;
    area += counts[t] * type.degree * type.time_us;
    least = std::max(least, type.load_us());
  }
  least = std::max(least, (area + model_.ranks - 1) / model_.ranks);
  if (least >= goal()) return;
  Packing packing;
  other_work_ += pieces * 8;
  if (list_schedule(model_, counts, packing)) take(packing);
  const std::int64_t work = thorough ? kThoroughPackWork : kPackWork;
  std::int64_t low = least;
  if (low < goal() && pack_at(counts, low, work)) return;
  for (int round = 0; round < 6 && low < goal() - 1 && !is_spent(); ++round) {
    const std::int64_t middle = low + (goal() - low) / 2;
    if (!pack_at(counts, middle, work)) low = middle;
  }
}

/// Packs what the fixed patterns leave on the other ranks.
bool BranchAndBound::pack_rest(const TypeCounts& counts, const std::vector<Pattern>& fixed,
                               std::int64_t load_limit_us) {
  BinCompletion::Task task;
  task.pieces.resize(model_.num_types());
  for (int t = 0; t < model_.num_types(); ++t) {
    task.pieces[t] = counts[t] * model_.types[t].degree;
    for (const Pattern& pattern : fixed) task.pieces[t] -= pattern.pieces[t];
  }
  task.most = counts;
  task.ranks = model_.ranks - static_cast<int>(fixed.size());
  task.load_limit_us = load_limit_us;
  if (completion_.pack(task, kRestWork) != BinCompletion::Outcome::packed) return false;
  Packing packing{counts, fixed};
  packing.patterns.insert(packing.patterns.end(), completion_.patterns().begin(), completion_.patterns().end());
  take(packing);
  return true;
}

/// The least load, roughly, at which just these counts fit as fractions; none below the goal: null. Afterwards lp_
/// holds the patterns.
std::optional<std::int64_t> BranchAndBound::ask_fixed(const Node& node, const TypeCounts& counts) {
  Question question;
  question.box = node.question.box;
  for (int g = 0; g < model_.num_groups(); ++g) {
    std::int64_t tail = 0;
    for (int t = model_.first[g + 1] - 1; t >= model_.first[g]; --t) {
      tail += counts[t];
      question.box.least[t] = question.box.most[t] = tail;
    }
  }
  std::vector<std::int64_t> limits = {load_limit_us_};
  if (objective_ == Objective::load) {
    limits = {node.bound, node.bound + (goal() - 1 - node.bound) / 2, goal() - 1};
  }
  for (const std::int64_t limit : limits) {
    if (lp_.ask(question, limit, kFixedLpWork) == PatternLp::Answer::fits) return limit;
  }
  return std::nullopt;
}

/// Asks the linear program for patterns of just these counts, takes whole multiples of them, and packs the rest.
void BranchAndBound::try_patterns(const Node& node, const TypeCounts& counts) {
  if (!tried_patterns_.insert(counts).second || is_spent()) return;
  if (objective_ == Objective::splits && num_split(model_, counts) >= goal()) return;
  const std::optional<std::int64_t> limit = ask_fixed(node, counts);
  if (!limit) return;
  struct Copies {
    Pattern pattern;
    double ranks;
    double part() const { return ranks - std::floor(ranks + kFraction); }
  };
  std::vector<Copies> copies;
  for (const PatternLp::Share& share : lp_.shares()) copies.push_back({*share.pattern, share.ranks});
  std::sort(copies.begin(), copies.end(), [](const Copies& a, const Copies& b) {
    return std::tuple(-a.part(), a.pattern.time_us) < std::tuple(-b.part(), b.pattern.time_us);
  });
  TypeCounts left(model_.num_types());
  for (int t = 0; t < model_.num_types(); ++t) left[t] = counts[t] * model_.types[t].degree;
  std::vector<Pattern> ranks;
  const auto place = [&](Pattern pattern) {  // without what is not needed any more
    if (static_cast<int>(ranks.size()) == model_.ranks) return;
    bool has_any = false;
    for (int t = 0; t < model_.num_types(); ++t) {
      const std::int32_t wanted = pattern.pieces[t];
      pattern.pieces[t] = static_cast<std::int32_t>(std::min<std::int64_t>({wanted, left[t], counts[t]}));
      pattern.time_us -= (wanted - pattern.pieces[t]) * model_.types[t].time_us;
      pattern.memory_bytes -= (wanted - pattern.pieces[t]) * model_.types[t].memory_bytes;
      pattern.exchange_us -= (wanted - pattern.pieces[t]) * model_.types[t].exchange_us;
      left[t] -= pattern.pieces[t];
      has_any |= pattern.pieces[t] > 0;
    }
    if (has_any) ranks.push_back(std::move(pattern));
  };
  for (const Copies& copy : copies) {
    for (int i = 0; i < static_cast<int>(std::floor(copy.ranks + kFraction)); ++i) place(copy.pattern);
  }
  other_work_ += static_cast<std::int64_t>(ranks.size()) * model_.num_types();
  // The rest exactly, beside all whole multiples and beside two fewer.
  for (const std::size_t fewer : {std::size_t{0}, std::size_t{2}}) {
    if (fewer > ranks.size() || (fewer > 0 && is_spent())) break;
    const std::vector<Pattern> kept(ranks.begin(), ranks.end() - static_cast<std::ptrdiff_t>(fewer));
    std::int64_t low = *limit;
    if (pack_rest(counts, kept, low)) break;
    if (objective_ == Objective::splits) continue;
    for (int round = 0; round < 4 && low < goal() - 1 && !is_spent(); ++round) {
      const std::int64_t middle = low + (goal() - low) / 2;
      if (!pack_rest(counts, kept, middle)) low = middle;
    }
  }
  // And loosely: the largest parts, too, and list scheduling.
  for (const Copies& copy : copies) {
    if (copy.part() > kLargePart) place(copy.pattern);
  }
  ranks.resize(model_.ranks, Pattern{std::vector<std::int32_t>(model_.num_types(), 0), 0, 0});
  Packing packing{counts, std::move(ranks)};
  for (const std::int64_t pieces : left) other_work_ += 8 * pieces;
  if (schedule_missing(model_, packing)) take(packing);
}

/// Rounds the linear program's counts to whole ones in a few ways, and tries them.
void BranchAndBound::round_counts(const Node& node) {
  for (const double up : {0.5, 0.75, 0.25}) {
    if (is_spent()) return;
    TypeCounts counts(model_.num_types(), 0);
    for (int g = 0; g < model_.num_groups(); ++g) {
      double tail = 0;
      std::int64_t before = 0;
      for (int t = model_.first[g + 1] - 1; t >= model_.first[g]; --t) {
        tail += node.counts[t];
        auto rounded = static_cast<std::int64_t>(std::floor(tail + up));
        if (t == model_.first[g]) rounded = model_.count[g];
        rounded = std::clamp(rounded, std::max(before, node.question.box.least[t]),
                             std::max(before, node.question.box.most[t]));
        counts[t] = rounded - before;
        before = rounded;
      }
    }
    try_counts(node, counts, false);
    if (up == 0.5 && (node.depth <= kPatternsDepth || node.depth % 4 == 0)) try_patterns(node, counts);
  }
}

}  // namespace zellige::own
