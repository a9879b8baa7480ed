// SPDX-License-Identifier: Apache-2.0
#include "plan/list_schedule.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "plan/bounds.h"

namespace zellige {
namespace {

struct Candidate {
  Wide key;
  Rank rank;
};
/// For the heap functions, which keep the largest on top: the least loaded rank, ties to the lowest. An object, so that
/// the comparison is compiled into them.
struct IsWorse {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.key != b.key ? a.key > b.key : a.rank > b.rank;
  }
};
constexpr IsWorse is_worse;

/// Poured over the pieces, sand levels the ranks or stays below the highest of them; where memory is full before that,
/// what is left goes over the others. A rank's room is taken to hold sand of average grain.
struct Level {
  std::int64_t us = 0;
  bool meets_the_cap = false;  ///< some rank is full before it is level
};
Level level_of(const std::vector<std::int64_t>& load, const std::vector<std::int64_t>& memory,
               std::int64_t memory_cap_bytes, const Sand& sand) {
  const std::int64_t highest = *std::max_element(load.begin(), load.end());
  if (sand.time_us == 0) return {highest, false};
  const double time_a_byte =
      sand.memory_bytes > 0 ? static_cast<double>(sand.time_us) / static_cast<double>(sand.memory_bytes) : 0;
  Wide above = sand.time_us;  // of the ranks that are not full: their loads, and the sand that is theirs
  for (const std::int64_t each : load) above += each;
  std::vector<bool> is_full(load.size(), false);
  auto left = static_cast<Wide>(load.size());
  auto level = static_cast<std::int64_t>((above + left - 1) / left);
  for (bool changed = sand.memory_bytes > 0; changed;) {
    changed = false;
    for (std::size_t r = 0; r < load.size(); ++r) {
      const auto holds = static_cast<std::int64_t>(
          static_cast<double>(std::max<std::int64_t>(0, memory_cap_bytes - memory[r])) * time_a_byte);
      if (is_full[r] || level - load[r] <= holds) continue;
      is_full[r] = true;
      above -= load[r] + holds;
      changed = true;
      if (--left == 0) return {highest, true};  // no room for all of it: that counts as excess
    }
    level = static_cast<std::int64_t>((above + left - 1) / left);
  }
  return {std::max(highest, level), left < static_cast<Wide>(load.size())};
}

}  // namespace

std::int64_t sand_level(const Problem& problem, const CountSolution& solution, const Sand& sand) {
  const auto exchanges = rank_exchanges(problem, solution);
  const Level level =
      level_of(rank_times(problem, solution), rank_memory(problem, solution), problem.memory_cap_bytes, sand);
  return std::max(level.us, *std::max_element(exchanges.begin(), exchanges.end()));
}

ListScheduler::ListScheduler(const Problem& problem, const Sand& sand)
    : problem_(problem), sand_(sand), solution_(problem) {
  scale_us_ = std::max<std::int64_t>(1, load_lower_bound(problem, kNoLoadLimit));
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    for (std::size_t j = 0; j < problem.groups[g].options.size(); ++j) by_load_.push_back({g, j});
  }
  by_tighter_ = by_load_;
  const auto option = [&](const Type& type) -> const Option& {
    return problem_.groups[type.group].options[type.option];
  };
  std::stable_sort(by_load_.begin(), by_load_.end(), [&](const Type& a, const Type& b) {
    return std::tuple(-option(a).load_us(), -option(a).memory_bytes) <
           std::tuple(-option(b).load_us(), -option(b).memory_bytes);
  });
  std::stable_sort(by_tighter_.begin(), by_tighter_.end(), [&](const Type& a, const Type& b) {
    return key(Rule::tighter_resource, option(a).load_us(), option(a).memory_bytes) >
           key(Rule::tighter_resource, option(b).load_us(), option(b).memory_bytes);
  });
}

Wide ListScheduler::key(Rule rule, std::int64_t load, std::int64_t memory) const {
  if (rule == Rule::load) return load;
  return std::max(static_cast<Wide>(load) * problem_.memory_cap_bytes, static_cast<Wide>(memory) * scale_us_);
}

ScheduleValue ListScheduler::run(const Counts& counts) {
  const ScheduleValue value = run_by(counts, Rule::load);
  if (value.excess_bytes == 0 && !sand_meets_the_cap_) return value;
  CountSolution first = solution_;
  const ScheduleValue second = run_by(counts, Rule::tighter_resource);
  if (second < value) return second;
  solution_ = std::move(first);
  return value;
}

ScheduleValue ListScheduler::run_by(const Counts& counts, Rule rule) {
  load_.assign(problem_.ranks, 0);
  exchange_.assign(problem_.ranks, 0);
  memory_.assign(problem_.ranks, 0);
  ScheduleValue value;
  std::vector<Candidate> heap;
  for (const Type& type : rule == Rule::load ? by_load_ : by_tighter_) {
    const Option& option = problem_.groups[type.group].options[type.option];
    const std::int64_t z = counts[type.group][type.option];
    solution_.z[type.group][type.option] = z;
    auto& on_rank = solution_.x[type.group][type.option];
    std::fill(on_rank.begin(), on_rank.end(), 0);
    if (z == 0) continue;
    const auto has_room = [&](Rank r) {
      return on_rank[r] < z && memory_[r] + option.memory_bytes <= problem_.memory_cap_bytes;
    };
    // The load that the next piece would bring a rank to, less what every rank gets alike.
    const auto load = [&](Rank r) { return std::max(load_[r], exchange_[r] + option.exchange_us - option.time_us); };
    heap.clear();
    for (Rank r = 0; r < problem_.ranks; ++r) {
      if (has_room(r)) heap.push_back({key(rule, load(r), memory_[r]), r});
    }
    std::make_heap(heap.begin(), heap.end(), is_worse);
    std::int64_t left = option.degree * z;
    steps_ += left + problem_.ranks;
    for (; left > 0 && !heap.empty(); --left) {
      std::pop_heap(heap.begin(), heap.end(), is_worse);
      const Rank r = heap.back().rank;
      ++on_rank[r];
      load_[r] += option.time_us;
      exchange_[r] += option.exchange_us;
      memory_[r] += option.memory_bytes;
      if (has_room(r)) {
        heap.back().key = key(rule, load(r), memory_[r]);
        std::push_heap(heap.begin(), heap.end(), is_worse);
      } else {
        heap.pop_back();
      }
    }
    value.excess_bytes += left * option.memory_bytes;
    value.area_us += (option.degree * z - left) * option.time_us;
  }
  const Level level = level_of(load_, memory_, problem_.memory_cap_bytes, sand_);
  value.load_us = std::max(level.us, *std::max_element(exchange_.begin(), exchange_.end()));
  sand_meets_the_cap_ = level.meets_the_cap;
  if (sand_.memory_bytes > 0) {
    Wide room = static_cast<Wide>(problem_.memory_cap_bytes) * problem_.ranks - sand_.memory_bytes;
    for (const std::int64_t held : memory_) room -= held;
    if (room < 0) value.excess_bytes += static_cast<std::int64_t>(-room);
  }
  return value;
}

}  // namespace zellige
