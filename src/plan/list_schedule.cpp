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

}  // namespace

ListScheduler::ListScheduler(const Problem& problem) : problem_(problem), solution_(problem) {
  scale_us_ = std::max<std::int64_t>(1, load_lower_bound(problem, kNoLoadLimit));
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    for (std::size_t j = 0; j < problem.groups[g].options.size(); ++j) by_load_.push_back({g, j});
  }
  by_tighter_ = by_load_;
  const auto option = [&](const Type& type) -> const Option& {
    return problem_.groups[type.group].options[type.option];
  };
  std::stable_sort(by_load_.begin(), by_load_.end(), [&](const Type& a, const Type& b) {
    return std::tuple(-option(a).time_us, -option(a).memory_bytes) <
           std::tuple(-option(b).time_us, -option(b).memory_bytes);
  });
  std::stable_sort(by_tighter_.begin(), by_tighter_.end(), [&](const Type& a, const Type& b) {
    return key(Rule::tighter_resource, option(a).time_us, option(a).memory_bytes) >
           key(Rule::tighter_resource, option(b).time_us, option(b).memory_bytes);
  });
}

Wide ListScheduler::key(Rule rule, std::int64_t load, std::int64_t memory) const {
  if (rule == Rule::load) return load;
  return std::max(static_cast<Wide>(load) * problem_.memory_cap_bytes, static_cast<Wide>(memory) * scale_us_);
}

ScheduleValue ListScheduler::run(const Counts& counts) {
  const ScheduleValue value = run_by(counts, Rule::load);
  if (value.excess_bytes == 0) return value;
  CountSolution first = solution_;
  const ScheduleValue second = run_by(counts, Rule::tighter_resource);
  if (second < value) return second;
  solution_ = std::move(first);
  return value;
}

ScheduleValue ListScheduler::run_by(const Counts& counts, Rule rule) {
  load_.assign(problem_.ranks, 0);
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
    heap.clear();
    for (Rank r = 0; r < problem_.ranks; ++r) {
      if (has_room(r)) heap.push_back({key(rule, load_[r], memory_[r]), r});
    }
    std::make_heap(heap.begin(), heap.end(), is_worse);
    std::int64_t left = option.degree * z;
    steps_ += left + problem_.ranks;
    for (; left > 0 && !heap.empty(); --left) {
      std::pop_heap(heap.begin(), heap.end(), is_worse);
      const Rank r = heap.back().rank;
      ++on_rank[r];
      load_[r] += option.time_us;
      memory_[r] += option.memory_bytes;
      if (has_room(r)) {
        heap.back().key = key(rule, load_[r], memory_[r]);
        std::push_heap(heap.begin(), heap.end(), is_worse);
      } else {
        heap.pop_back();
      }
    }
    value.excess_bytes += left * option.memory_bytes;
    value.area_us += (option.degree * z - left) * option.time_us;
  }
  value.load_us = *std::max_element(load_.begin(), load_.end());
  return value;
}

}  // namespace zellige
