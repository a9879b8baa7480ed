// SPDX-License-Identifier: Apache-2.0
#include "plan/own/own_solver.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/own/branch_and_bound.h"

namespace zellige::own {
namespace {

/// Part of round 1's work that may go into bettering the start before anything is proved: one in so many.
constexpr std::int64_t kDescentShare = 10;

Multipliers no_multipliers(const Model& model) {
  return {std::vector<std::int64_t>(model.num_groups(), 0), std::vector<std::int64_t>(model.num_types(), 0), {}, 0};
}

/// Area: every sequence is worth its least degree x price, so no rank is worth more than its load.
SimpleBound area_bound(const Model& model) {
  SimpleBound result{0, no_multipliers(model)};
  std::int64_t total = 0;
  for (int g = 0; g < model.num_groups(); ++g) {
    std::int64_t least = kNoLimit;
    for (int t = model.first[g]; t < model.first[g + 1]; ++t) {
      least = std::min(least, model.types[t].time_us * model.types[t].degree);
    }
    result.multipliers.group[g] = least;
    total += least * model.count[g];
  }
  result.bound_us = (total + model.ranks - 1) / model.ranks;
  return result;
}

/// Largest piece: a sequence all of whose options are dearer than the limit is worth something, and nobody can hold it.
SimpleBound piece_bound(const Model& model) {
  SimpleBound result{0, no_multipliers(model)};
  int dearest = 0;
  for (int g = 0; g < model.num_groups(); ++g) {
    std::int64_t least = kNoLimit;
    for (int t = model.first[g]; t < model.first[g + 1]; ++t) least = std::min(least, model.types[t].load_us());
    if (least > result.bound_us) result.bound_us = least, dearest = g;
  }
  result.multipliers.group[dearest] = 1;
  return result;
}

std::vector<TypeCounts> start_counts(const Model& model, std::int64_t bound_us) {
  std::vector<TypeCounts> starts;
  const auto add = [&](auto better) {
    TypeCounts counts(model.num_types(), 0);
    for (int g = 0; g < model.num_groups(); ++g) {
      int best = model.first[g];
      for (int t = best + 1; t < model.first[g + 1]; ++t) {
        if (better(model.types[t], model.types[best])) best = t;
      }
      counts[best] = model.count[g];
    }
    if (std::find(starts.begin(), starts.end(), counts) == starts.end()) starts.push_back(std::move(counts));
  };
  for (const double part : {1.0, 0.5, 0.25, 0.12}) {
    const auto limit = static_cast<std::int64_t>(part * static_cast<double>(bound_us));
    add([limit](const PieceType& a, const PieceType& b) {
      const bool a_fits = a.load_us() <= limit, b_fits = b.load_us() <= limit;
      if (a_fits != b_fits) return a_fits;
      return a_fits ? a.time_us * a.degree < b.time_us * b.degree : a.load_us() < b.load_us();
    });
  }
  add([](const PieceType& a, const PieceType& b) { return a.memory_bytes * a.degree < b.memory_bytes * b.degree; });
  add([](const PieceType& a, const PieceType& b) { return a.memory_bytes < b.memory_bytes; });
  return starts;
}

class TwoRounds {
 public:
  TwoRounds(const SolverLimits& limits, AnchorSolution& result)
      : limits_(limits),
        result_(result),
        model_(result.model),
        search_(model_),
        lp_(model_, search_),
        completion_(model_) {}

  void run() {
    balance();
    if (result_.status == SolverStatus::solved) min_split();
  }

 private:
  /// Keeps the best placement for round 2 under way: fewest splits first among those of small load.
  void remember(const Packing& packing) {
    seen_.push_back({packing.largest_load(), num_split(model_, packing.counts), packing});
  }

  /// Moves one sequence, or half of those there, to another option of its group while list scheduling gets better.
  void descend(Packing& best, std::int64_t bound_us, Effort& effort) {
    const std::int64_t end = effort.work - effort.work / kDescentShare;
    bool is_better = true;
    while (is_better && best.largest_load() > bound_us) {
      is_better = false;
      const TypeCounts from = best.counts;
      for (int g = 0; g < model_.num_groups(); ++g) {
        for (int a = model_.first[g]; a < model_.first[g + 1]; ++a) {
          for (int b = model_.first[g]; b < model_.first[g + 1]; ++b) {
            if (a == b || from[a] == 0) continue;
            for (const std::int64_t moved : {std::int64_t{1}, from[a] / 2}) {
              if (moved < 1) continue;
              TypeCounts counts = from;
              counts[a] -= moved;
              counts[b] += moved;
              std::int64_t pieces = 0;
              for (int t = 0; t < model_.num_types(); ++t) pieces += counts[t] * model_.types[t].degree;
              if (effort.work - 8 * pieces < end) return;
              effort.work -= 8 * pieces;
              effort.used += 8 * pieces;
              Packing packing;
              if (!list_schedule(model_, counts, packing)) continue;
              if (packing.largest_load() >= best.largest_load()) continue;
              remember(packing);
              best = std::move(packing);
              is_better = true;
            }
          }
        }
      }
    }
  }

  void balance() {
    const SimpleBound bound = simple_bound(model_);
    std::int64_t most = 1;
    for (int g = 0; g < model_.num_groups(); ++g) {
      std::int64_t dearest = 0;
      for (int t = model_.first[g]; t < model_.first[g + 1]; ++t)
        dearest = std::max(dearest, model_.types[t].load_us());
      most += dearest * model_.count[g];
    }
    std::optional<Packing> best;
    for (const TypeCounts& counts : start_counts(model_, bound.bound_us)) {
      Packing packing;
      if (!list_schedule(model_, counts, packing)) continue;
      for (const Pattern& pattern : packing.patterns) lp_.add_pattern(pattern);
      remember(packing);
      if (!best || packing.largest_load() < best->largest_load()) best = std::move(packing);
    }
    Effort effort{limits_.load_work, limits_.is_over, 0};
    if (best) descend(*best, bound.bound_us, effort);
    BranchAndBound tree(model_, search_, lp_, completion_);
    tree.on_packing = [this](const Packing& packing) { remember(packing); };
    tree.start(BranchAndBound::Objective::load, most, bound.bound_us, std::move(best), &bound.multipliers);
    tree.run(effort, limits_.gap);
    if (tree.has_best() && tree.bound() < tree.best_value()) {
      effort.work = std::min(effort.work, limits_.exact_work);
      if (effort.work > 0) tree.run(effort, 0);
    }
    result_.load_work = effort.used;
    result_.nodes += tree.num_nodes();
    result_.stuck += tree.num_stuck();
    if (!tree.has_best()) {
      result_.status = tree.bound() >= kNoLimit ? SolverStatus::infeasible : SolverStatus::unknown;
      result_.load_bound_us = tree.bound() >= kNoLimit ? 0 : tree.bound();
      result_.load_proof = tree.proof();
      return;
    }
    result_.status = SolverStatus::solved;
    result_.least_load_us = tree.best_value();
    result_.load_bound_us = tree.bound();
    result_.load_proof = tree.proof();
    result_.balanced = result_.packing = tree.best();
  }

  void min_split() {
    result_.load_limit_us = with_slack(result_.load_bound_us, limits_.epsilon);
    if (result_.least_load_us > result_.load_limit_us) {
      result_.limit_is_from_bound = false;
      result_.load_limit_us = with_slack(result_.least_load_us, limits_.epsilon);
    }
    const Seen* start = nullptr;
    for (const Seen& seen : seen_) {
      if (seen.load_us > result_.load_limit_us) continue;
      if (start == nullptr || std::pair(seen.splits, seen.load_us) < std::pair(start->splits, start->load_us)) {
        start = &seen;
      }
    }
    BranchAndBound tree(model_, search_, lp_, completion_);
    tree.start(BranchAndBound::Objective::splits, result_.load_limit_us, 0, start->packing, nullptr);
    Effort effort{limits_.split_work, limits_.is_over, 0};
    tree.run(effort, 0);
    result_.split_work = effort.used;
    result_.nodes += tree.num_nodes();
    result_.stuck += tree.num_stuck();
    result_.packing = tree.best();
    if (tree.best().largest_load() < result_.least_load_us) {
      result_.least_load_us = tree.best().largest_load();
      result_.balanced = tree.best();
    }
    result_.split_count = tree.best_value();
    result_.split_bound = tree.bound();
    if (result_.split_bound > 0) result_.split_proof = tree.proof();
  }

  struct Seen {
    std::int64_t load_us, splits;
    Packing packing;
  };
  const SolverLimits& limits_;
  AnchorSolution& result_;
  const Model& model_;
  PatternSearch search_;
  PatternLp lp_;
  BinCompletion completion_;
  std::vector<Seen> seen_;
};

}  // namespace

SimpleBound simple_bound(const Model& model) {
  SimpleBound area = area_bound(model);
  SimpleBound piece = piece_bound(model);
  return piece.bound_us > area.bound_us ? piece : area;
}

SolverLimits default_limits(int ranks) {
  SolverLimits limits;
  if (ranks <= 32) {
    limits.load_work = 1'000'000;
    limits.split_work = 600'000;
    limits.exact_work = 400'000;
  } else {
    limits.gap = 1e-3;
    limits.load_work = 7'000'000;
    limits.split_work = 6'000'000;
    limits.exact_work = 1'000'000;
  }
  return limits;
}

std::int64_t with_slack(std::int64_t load_us, double epsilon) {
  constexpr std::int64_t kBillion = 1'000'000'000;
  const std::int64_t slack = std::llround(epsilon * kBillion);
  return static_cast<std::int64_t>(static_cast<Wide128>(load_us) * (kBillion + slack) / kBillion);
}

AnchorSolution solve_anchors(const AnchorProblem& problem, const SolverLimits& limits) {
  AnchorSolution result;
  result.model = make_model(problem);
  if (result.model.has_group_without_option) {
    result.status = SolverStatus::infeasible;
    return result;
  }
  if (result.model.num_groups() == 0) {
    result.status = SolverStatus::solved;
    result.packing.patterns.resize(problem.ranks);
    return result;
  }
  TwoRounds(limits, result).run();
  return result;
}

}  // namespace zellige::own
