// SPDX-License-Identifier: Apache-2.0
#include "plan/count_solution.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "zellige/error.h"

namespace zellige {
namespace {

std::vector<std::int64_t> weighted(const Problem& problem, const CountSolution& solution,
                                   std::int64_t Option::*weight) {
  std::vector<std::int64_t> sums(problem.ranks, 0);
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    for (std::size_t j = 0; j < problem.groups[g].options.size(); ++j) {
      if (solution.z[g][j] == 0) continue;
      for (int r = 0; r < problem.ranks; ++r) sums[r] += problem.groups[g].options[j].*weight * solution.x[g][j][r];
    }
  }
  return sums;
}

/// Takes as many consecutive rank sets out of `counts` as it allows; each leaves a valid rest.
void take_runs(std::vector<std::int64_t>& counts, std::int64_t& left, int degree,
               std::vector<std::vector<Rank>>& sets) {
  const int ranks = static_cast<int>(counts.size());
  std::vector<int> starts;
  for (int start = 0; start + degree <= ranks; start += degree) starts.push_back(start);
  for (int start = 0; start + degree <= ranks; ++start) {
    if (start % degree != 0) starts.push_back(start);
  }
  std::vector<std::int64_t> before(ranks + 1), after(ranks + 1);  // largest count left of a rank, from a rank on
  const auto scan = [&] {
    for (int r = 0; r < ranks; ++r) before[r + 1] = std::max(before[r], counts[r]);
    for (int r = ranks - 1; r >= 0; --r) after[r] = std::max(after[r + 1], counts[r]);
  };
  scan();
  bool progress = true;
  while (left > 0 && progress) {
    progress = false;
    for (const int start : starts) {
      const std::int64_t inside = *std::min_element(counts.begin() + start, counts.begin() + start + degree);
      if (inside == 0) continue;
      // A rank outside the run must still find its count in what is left: x <= z.
      const std::int64_t outside = std::max(before[start], after[start + degree]);
      const std::int64_t times = std::min(inside, left - outside);
      if (times <= 0) continue;
      std::vector<Rank> run(degree);
      std::iota(run.begin(), run.end(), start);
      sets.insert(sets.end(), static_cast<std::size_t>(times), run);
      for (int r = start; r < start + degree; ++r) counts[r] -= times;
      left -= times;
      progress = true;
      scan();
    }
  }
}

void take_wrapped(const std::vector<std::int64_t>& counts, std::int64_t left, std::vector<std::vector<Rank>>& sets) {
  std::vector<std::vector<Rank>> wrapped(static_cast<std::size_t>(left));
  std::int64_t slot = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    for (std::int64_t i = 0; i < counts[r]; ++i) wrapped[slot++ % left].push_back(static_cast<Rank>(r));
  }
  std::sort(wrapped.begin(), wrapped.end());
  sets.insert(sets.end(), wrapped.begin(), wrapped.end());
}

}  // namespace

CountSolution::CountSolution(const Problem& problem) {
  for (const Group& group : problem.groups) {
    z.emplace_back(group.options.size(), 0);
    x.emplace_back(group.options.size(), std::vector<std::int64_t>(problem.ranks, 0));
  }
}

std::vector<std::int64_t> rank_times(const Problem& problem, const CountSolution& solution) {
  return weighted(problem, solution, &Option::time_us);
}

std::vector<std::int64_t> rank_exchanges(const Problem& problem, const CountSolution& solution) {
  return weighted(problem, solution, &Option::exchange_us);
}

std::vector<std::int64_t> rank_loads(const Problem& problem, const CountSolution& solution) {
  std::vector<std::int64_t> loads = rank_times(problem, solution);
  const std::vector<std::int64_t> exchanges = rank_exchanges(problem, solution);
  for (std::size_t r = 0; r < loads.size(); ++r) loads[r] = std::max(loads[r], exchanges[r]);
  return loads;
}

std::vector<std::int64_t> rank_memory(const Problem& problem, const CountSolution& solution) {
  return weighted(problem, solution, &Option::memory_bytes);
}

std::int64_t largest_load(const Problem& problem, const CountSolution& solution) {
  const auto loads = rank_loads(problem, solution);
  return *std::max_element(loads.begin(), loads.end());
}

std::int64_t num_split(const Problem& problem, const CountSolution& solution) {
  std::int64_t split = 0;
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    for (std::size_t j = 0; j < problem.groups[g].options.size(); ++j) {
      if (problem.groups[g].options[j].is_split()) split += solution.z[g][j];
    }
  }
  return split;
}

CountSolution canonical(const Problem& problem, const CountSolution& solution) {
  struct Used {
    std::size_t group, option;
  };
  std::vector<Used> used;
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    for (std::size_t j = 0; j < problem.groups[g].options.size(); ++j) {
      if (solution.z[g][j] > 0) used.push_back({g, j});
    }
  }
  std::stable_sort(used.begin(), used.end(), [&](const Used& a, const Used& b) {
    const Option& first = problem.groups[a.group].options[a.option];
    const Option& second = problem.groups[b.group].options[b.option];
    return std::tuple(-first.degree, -first.time_us) < std::tuple(-second.degree, -second.time_us);
  });
  std::vector<Rank> order(problem.ranks);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](Rank a, Rank b) {
    for (const Used& it : used) {
      const auto& counts = solution.x[it.group][it.option];
      if (counts[a] != counts[b]) return counts[a] > counts[b];
    }
    return false;
  });
  CountSolution renamed(problem);
  renamed.z = solution.z;
  for (const Used& it : used) {
    for (int r = 0; r < problem.ranks; ++r) {
      renamed.x[it.group][it.option][r] = solution.x[it.group][it.option][order[r]];
    }
  }
  return renamed;
}

std::vector<std::vector<MemberPlacement>> decode(const Problem& problem, const CountSolution& solution) {
  std::vector<std::vector<MemberPlacement>> placed(problem.groups.size());
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    for (std::size_t j = 0; j < problem.groups[g].options.size(); ++j) {
      std::int64_t left = solution.z[g][j];
      if (left == 0) continue;
      const int degree = problem.groups[g].options[j].degree;
      std::vector<std::int64_t> counts = solution.x[g][j];
      const std::int64_t slots = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
      if (slots != degree * left || *std::max_element(counts.begin(), counts.end()) > left ||
          *std::min_element(counts.begin(), counts.end()) < 0) {
        throw Error(Code::internal, "plan.decode",
                    "group " + std::to_string(g) + ", option " + std::to_string(j) + ": " + std::to_string(slots) +
                        " slots on ranks cannot serve " + std::to_string(left) + " sequences of degree " +
                        std::to_string(degree));
      }
      std::vector<std::vector<Rank>> sets;
      take_runs(counts, left, degree, sets);
      if (left > 0) take_wrapped(counts, left, sets);
      for (auto& ranks : sets) placed[g].push_back({static_cast<int>(j), std::move(ranks)});
    }
    if (placed[g].size() != problem.groups[g].members.size()) {
      throw Error(Code::internal, "plan.decode",
                  "group " + std::to_string(g) + " has " + std::to_string(problem.groups[g].members.size()) +
                      " members, the solution places " + std::to_string(placed[g].size()));
    }
  }
  return placed;
}

}  // namespace zellige
