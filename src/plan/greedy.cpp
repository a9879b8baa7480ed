// SPDX-License-Identifier: Apache-2.0
#include "plan/greedy.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "plan/bounds.h"
#include "plan/list_schedule.h"

namespace zellige {
namespace {

/// Members of `group` that change from one option to another.
struct Move {
  std::size_t group = 0, from = 0, to = 0;
  std::int64_t members = 1;
};

void shift(Counts& counts, const Move& move) {
  counts[move.group][move.from] -= move.members;
  counts[move.group][move.to] += move.members;
}
void shift_back(Counts& counts, const Move& move) { shift(counts, {move.group, move.to, move.from, move.members}); }

/// One member, half of them, all of them: large groups need large steps.
std::array<std::int64_t, 3> step_sizes(std::int64_t members) { return {1, (members + 1) / 2, members}; }

template <class Visit>
void for_each_move(const Problem& problem, const Counts& counts, Visit visit) {
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    const std::size_t options = problem.groups[g].options.size();
    for (std::size_t from = 0; from < options; ++from) {
      const std::int64_t members = counts[g][from];
      if (members == 0) continue;
      for (std::size_t to = 0; to < options; ++to) {
        if (to == from) continue;
        std::int64_t last = 0;
        for (const std::int64_t step : step_sizes(members)) {
          if (step == last) continue;
          last = step;
          if (!visit(Move{g, from, to, step})) return;
        }
      }
    }
  }
}

/// Every member of a group takes the option that `better` prefers.
Counts one_option_each(const Problem& problem, const std::function<bool(const Option&, const Option&)>& better) {
  Counts counts;
  for (const Group& group : problem.groups) {
    std::size_t best = 0;
    for (std::size_t j = 1; j < group.options.size(); ++j) {
      if (better(group.options[j], group.options[best])) best = j;
    }
    counts.emplace_back(group.options.size(), 0);
    counts.back()[best] = group.count();
  }
  return counts;
}

/// The least area among options with price <= `limit_us`; where there is none, the least price.
Counts least_area_within(const Problem& problem, double limit_us) {
  return one_option_each(problem, [limit_us](const Option& a, const Option& b) {
    const bool a_fits = static_cast<double>(a.load_us()) <= limit_us;
    const bool b_fits = static_cast<double>(b.load_us()) <= limit_us;
    if (a_fits != b_fits) return a_fits;
    if (!a_fits) return a.load_us() < b.load_us();
    return a.degree * a.time_us < b.degree * b.time_us;
  });
}

std::vector<Counts> starts(const Problem& problem) {
  const auto bound = static_cast<double>(load_lower_bound(problem, kNoLoadLimit));
  std::vector<Counts> counts;
  for (const double part : {1.0, 0.5, 0.25, 0.12}) counts.push_back(least_area_within(problem, part * bound));
  counts.push_back(one_option_each(
      problem, [](const Option& a, const Option& b) { return a.degree * a.memory_bytes < b.degree * b.memory_bytes; }));
  counts.push_back(
      one_option_each(problem, [](const Option& a, const Option& b) { return a.memory_bytes < b.memory_bytes; }));
  std::sort(counts.begin() + 1, counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

class Descent {
 public:
  Descent(const Problem& problem, std::int64_t effort, const Deadline& deadline, const Aim& aim = {})
      : problem_(problem),
        deadline_(deadline),
        effort_(effort),
        enough_us_(aim.enough_us),
        scheduler_(problem, aim.sand) {}

  ScheduleValue score(const Counts& counts) { return scheduler_.run(counts); }
  bool is_spent() const { return scheduler_.steps() >= effort_ || deadline_.is_over(); }
  const CountSolution& solution() const { return scheduler_.solution(); }

  bool is_enough(const ScheduleValue& value) const { return value.excess_bytes == 0 && value.load_us <= enough_us_; }

  /// Takes the best move as long as one helps. With too little effort left for many rounds the first that helps.
  ScheduleValue descend(Counts& counts, ScheduleValue value) {
    while (!is_spent() && !is_enough(value)) {
      std::int64_t moves = 0;
      for_each_move(problem_, counts, [&](const Move&) { return ++moves > 0; });
      const std::int64_t before = scheduler_.steps();
      scheduler_.run(counts);
      const std::int64_t steps = scheduler_.steps() - before;
      constexpr std::int64_t kRounds = 4;
      const bool hasty = moves * steps * kRounds > effort_ - scheduler_.steps();

      ScheduleValue best = value;
      Move best_move;
      for_each_move(problem_, counts, [&](const Move& move) {
        shift(counts, move);
        const ScheduleValue candidate = scheduler_.run(counts);
        shift_back(counts, move);
        if (candidate < best) {
          best = candidate;
          best_move = move;
          if (hasty || is_enough(candidate)) return false;
        }
        return !is_spent();
      });
      if (!(best < value)) break;
      shift(counts, best_move);
      value = best;
    }
    return value;
  }

 private:
  const Problem& problem_;
  const Deadline& deadline_;
  std::int64_t effort_;
  std::int64_t enough_us_;
  ListScheduler scheduler_;
};

}  // namespace

std::optional<CountSolution> greedy_balance(const Problem& problem, std::int64_t effort, const Deadline& deadline,
                                            const Aim& aim) {
  Descent descent(problem, effort, deadline, aim);
  struct Start {
    ScheduleValue value;
    Counts counts;
  };
  std::vector<Start> ranked;
  for (Counts& counts : starts(problem)) {
    if (deadline.cancelled()) return std::nullopt;
    ranked.push_back({descent.score(counts), std::move(counts)});
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const Start& a, const Start& b) { return a.value < b.value; });
  for (Start& start : ranked) {
    if (descent.is_spent()) break;
    start.value = descent.descend(start.counts, start.value);
    if (descent.is_enough(start.value)) break;
  }
  const auto best =
      std::min_element(ranked.begin(), ranked.end(), [](const Start& a, const Start& b) { return a.value < b.value; });
  if (best->value.excess_bytes > 0) return std::nullopt;
  descent.score(best->counts);
  return descent.solution();
}

CountSolution greedy_min_split(const Problem& problem, const CountSolution& start, std::int64_t limit_us,
                               std::int64_t effort, const Deadline& deadline, const Sand& sand) {
  Descent descent(problem, effort, deadline, {.sand = sand, .enough_us = 0});
  CountSolution best = start;
  const auto is_split = [&](std::size_t g, std::size_t j) { return problem.groups[g].options[j].is_split(); };
  const auto fits = [&](const Counts& counts) {
    const ScheduleValue value = descent.score(counts);
    return value.excess_bytes == 0 && value.load_us <= limit_us;
  };
  bool progress = true;
  while (progress && !descent.is_spent()) {
    progress = false;
    Counts counts = best.z;
    for_each_move(problem, best.z, [&](const Move& move) {
      if (!is_split(move.group, move.from) || is_split(move.group, move.to)) return true;
      shift(counts, move);
      progress = fits(counts);
      // A sequence may become whole at the price of cutting another one finer.
      if (!progress) {
        const Counts after = counts;
        for_each_move(problem, after, [&](const Move& second) {
          if (second.members > 1 || !is_split(second.group, second.from) || !is_split(second.group, second.to)) {
            return !descent.is_spent();
          }
          shift(counts, second);
          progress = fits(counts);
          if (!progress) shift_back(counts, second);
          return !progress && !descent.is_spent();
        });
      }
      if (!progress) shift_back(counts, move);
      return !progress && !descent.is_spent();
    });
    if (progress) best = descent.solution();
  }
  return best;
}

}  // namespace zellige
