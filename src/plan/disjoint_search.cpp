// SPDX-License-Identifier: Apache-2.0
#include "plan/disjoint_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace zellige {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

bool can_run(const GroupInstance& instance, std::size_t kind, std::size_t lot) {
  return instance.kinds[kind].time_us[lot] != kCannotRun &&
         instance.kinds[kind].memory_bytes[lot] <= instance.cap_bytes;
}

/// Integer weights of the groups, and for each lot its least weighted time: the dual side of the bound.
struct Dual {
  std::vector<std::int64_t> weight;  // [kinds]
  std::int64_t total_weight = 0;     // over groups
  std::vector<Wide> least;           // [lots], min over groups of weight * time

  /// The bound times total_weight, before rounding up; -1 when a lot can run nowhere.
  Wide value(const GroupInstance& instance) const {
    Wide sum = 0;
    for (std::size_t lot = 0; lot < least.size(); ++lot) {
      if (instance.counts[lot] == 0) continue;
      if (least[lot] < 0) return -1;
      sum += least[lot] * instance.counts[lot];
    }
    return sum;
  }
};

Dual make_dual(const GroupInstance& instance, const std::vector<double>& weights) {
  constexpr double kScale = 1 << 20;
  Dual dual;
  const double largest = *std::max_element(weights.begin(), weights.end());
  for (const double weight : weights) dual.weight.push_back(std::llround(weight / largest * kScale));
  for (const std::size_t kind : instance.groups) dual.total_weight += dual.weight[kind];
  dual.least.assign(instance.counts.size(), -1);
  for (std::size_t lot = 0; lot < instance.counts.size(); ++lot) {
    for (const std::size_t kind : instance.groups) {
      if (!can_run(instance, kind, lot)) continue;
      const Wide weighted = Wide{dual.weight[kind]} * instance.kinds[kind].time_us[lot];
      if (dual.least[lot] < 0 || weighted < dual.least[lot]) dual.least[lot] = weighted;
    }
  }
  return dual;
}

/// Searches good weights: from the groups' sizes on, a group to which the weights send more than its share grows.
Dual best_dual(const GroupInstance& instance) {
  constexpr int kSteps = 200;
  std::vector<double> groups_of(instance.kinds.size(), 0);
  for (const std::size_t kind : instance.groups) groups_of[kind] += 1;
  std::vector<double> weights(instance.kinds.size(), 0);
  for (std::size_t kind = 0; kind < weights.size(); ++kind) {
    if (groups_of[kind] > 0) weights[kind] = instance.kinds[kind].size;
  }
  std::vector<double> best = weights;
  double best_value = -1;
  for (int step = 1; step <= kSteps; ++step) {
    std::vector<double> load(weights.size(), 0);
    double value = 0, total_weight = 0;
    for (std::size_t lot = 0; lot < instance.counts.size(); ++lot) {
      std::size_t cheapest = weights.size();
      double least = 0;
      for (std::size_t kind = 0; kind < weights.size(); ++kind) {
        if (groups_of[kind] == 0 || !can_run(instance, kind, lot)) continue;
        const double weighted = weights[kind] * static_cast<double>(instance.kinds[kind].time_us[lot]);
        if (cheapest == weights.size() || weighted < least) {
          cheapest = kind;
          least = weighted;
        }
      }
      if (cheapest == weights.size()) continue;
      const auto count = static_cast<double>(instance.counts[lot]);
      value += least * count;
      load[cheapest] += static_cast<double>(instance.kinds[cheapest].time_us[lot]) * count / groups_of[cheapest];
    }
    for (std::size_t kind = 0; kind < weights.size(); ++kind) total_weight += weights[kind] * groups_of[kind];
    value /= total_weight;
    if (value > best_value) {
      best_value = value;
      best = weights;
    }
    if (value <= 0) break;
    for (std::size_t kind = 0; kind < weights.size(); ++kind) {
      weights[kind] *= std::exp(0.5 / std::sqrt(step) * std::clamp(load[kind] / value - 1, -1.0, 1.0));
    }
  }
  return make_dual(instance, best);
}

/// Largest time of a lot's cheapest place: one sequence is one piece.
std::int64_t largest_piece(const GroupInstance& instance) {
  std::int64_t largest = 0;
  for (std::size_t lot = 0; lot < instance.counts.size(); ++lot) {
    std::int64_t least = kUnlimited;
    for (const std::size_t kind : instance.groups) {
      if (can_run(instance, kind, lot)) least = std::min(least, instance.kinds[kind].time_us[lot]);
    }
    if (instance.counts[lot] > 0) largest = std::max(largest, least);
  }
  return largest;
}

std::int64_t bound_of(const GroupInstance& instance, const Dual& dual) {
  const std::int64_t piece = largest_piece(instance);
  if (piece == kUnlimited) return kUnlimited;
  const Wide area = (dual.value(instance) + dual.total_weight - 1) / dual.total_weight;
  return std::max(piece, static_cast<std::int64_t>(area));
}

class Search {
 public:
  Search(const GroupInstance& instance, std::int64_t below, SearchBudget& budget)
      : instance_(instance),
        budget_(budget),
        limit_(below == kUnlimited ? kUnlimited - 1 : below - 1),
        dual_(best_dual(instance)),
        least_possible_(bound_of(instance, dual_)),
        load_(instance.groups.size()),
        memory_(instance.groups.size()),
        taken_(instance.groups.size(), std::vector<std::int64_t>(instance.counts.size())) {
    for (std::size_t lot = 0; lot < instance.counts.size(); ++lot) {
      if (instance.counts[lot] > 0) order_.push_back(lot);
    }
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return dual_.least[a] != dual_.least[b] ? dual_.least[a] > dual_.least[b] : a < b;
    });
    const auto most = std::max_element(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return instance.counts[a] < instance.counts[b];
    });
    if (most != order_.end()) std::rotate(most, most + 1, order_.end());
  }

  std::optional<GroupAssignment> run() {
    if (order_.empty() && limit_ >= 0) return GroupAssignment{taken_, 0};
    if (order_.empty() || least_possible_ > limit_) return std::nullopt;
    start_greedily();
    weighted_ = dual_.value(instance_);
    place(0, 0, instance_.counts[order_.front()]);
    return std::move(best_);
  }

 private:
  std::size_t num_groups() const { return instance_.groups.size(); }
  std::int64_t time(std::size_t group, std::size_t lot) const {
    return instance_.kinds[instance_.groups[group]].time_us[lot];
  }
  std::int64_t memory(std::size_t group, std::size_t lot) const {
    return instance_.kinds[instance_.groups[group]].memory_bytes[lot];
  }

  /// How many more of a lot the group can take and still end at `end_us` or earlier.
  std::int64_t room(std::size_t group, std::size_t lot, std::int64_t end_us) const {
    if (!can_run(instance_, instance_.groups[group], lot) || load_[group] > end_us) return 0;
    const std::int64_t in_time = time(group, lot) > 0 ? (end_us - load_[group]) / time(group, lot) : kUnlimited;
    const std::int64_t need = memory(group, lot);
    const std::int64_t in_memory = need > 0 ? (instance_.cap_bytes - memory_[group]) / need : kUnlimited;
    return std::min({in_time, in_memory, instance_.counts[lot]});
  }

  void take(std::size_t group, std::size_t lot, std::int64_t count) {
    taken_[group][lot] += count;
    load_[group] += count * time(group, lot);
    memory_[group] += count * memory(group, lot);
    // What the dual promised for these was its least; what they weigh here may be more.
    weighted_ += (Wide{dual_.weight[instance_.groups[group]]} * time(group, lot) - dual_.least[lot]) * count;
  }

  void record(std::int64_t makespan) {
    best_ = GroupAssignment{taken_, makespan};
    limit_ = makespan - 1;
  }

  /// A first plan: every sequence where it ends earliest.
  void start_greedily() {
    bool complete = true;
    for (const std::size_t lot : order_) {
      for (std::int64_t i = 0; i < instance_.counts[lot] && complete; ++i) {
        std::size_t earliest = num_groups();
        for (std::size_t group = 0; group < num_groups(); ++group) {
          if (room(group, lot, limit_) == 0) continue;
          if (earliest == num_groups() || load_[group] + time(group, lot) < load_[earliest] + time(earliest, lot)) {
            earliest = group;
          }
        }
        complete = earliest != num_groups();
        if (complete) take(earliest, lot, 1);
      }
    }
    if (complete) record(*std::max_element(load_.begin(), load_.end()));
    std::fill(load_.begin(), load_.end(), 0);
    std::fill(memory_.begin(), memory_.end(), 0);
    for (std::vector<std::int64_t>& counts : taken_) std::fill(counts.begin(), counts.end(), 0);
  }

  bool is_over() {
    if (budget_.spent || least_possible_ > limit_) return true;
    if (--budget_.nodes_left <= 0 || (budget_.nodes_left % 4096 == 0 && budget_.stop())) budget_.spent = true;
    return budget_.spent;
  }

  /// Whether two neighbouring groups are alike in everything that was decided before order_[position].
  bool are_alike(std::size_t group, std::size_t position) const {
    if (group == 0 || instance_.groups[group] != instance_.groups[group - 1]) return false;
    return std::all_of(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(position),
                       [&](std::size_t lot) { return taken_[group][lot] == taken_[group - 1][lot]; });
  }

  /// Decides how many of the `left` sequences of lot order_[position] go to `group`, then to the groups after it.
  void place(std::size_t position, std::size_t group, std::int64_t left) {
    if (is_over() || weighted_ > Wide{limit_} * dual_.total_weight) return;
    const std::size_t lot = order_[position];
    if (position + 1 == order_.size()) return finish(lot);
    if (group == num_groups()) {
      if (left == 0) place(position + 1, 0, instance_.counts[order_[position + 1]]);
      return;
    }
    std::int64_t room_behind = 0;
    for (std::size_t other = group + 1; other < num_groups() && room_behind < left; ++other) {
      room_behind += room(other, lot, limit_);
    }
    std::int64_t most = std::min(left, room(group, lot, limit_));
    if (are_alike(group, position)) most = std::min(most, taken_[group - 1][lot]);
    for (std::int64_t count = most; count >= std::max<std::int64_t>(0, left - room_behind); --count) {
      if (count > room(group, lot, limit_)) continue;  // the limit has fallen meanwhile
      if (count > 0) take(group, lot, count);
      place(position, group + 1, left - count);
      if (count > 0) take(group, lot, -count);
      if (budget_.spent) return;
    }
  }

  /// The last lot: the earliest end at which the groups have room for all of it, by bisection.
  void finish(std::size_t lot) {
    const std::int64_t all = instance_.counts[lot];
    const auto holds = [&](std::int64_t end_us) {
      std::int64_t sum = 0;
      for (std::size_t group = 0; group < num_groups() && sum < all; ++group) sum += room(group, lot, end_us);
      return sum >= all;
    };
    std::int64_t least = std::max(least_possible_, *std::max_element(load_.begin(), load_.end()));
    std::int64_t most = limit_;
    if (least > most || !holds(most)) return;
    while (least < most) {
      const std::int64_t middle = least + (most - least) / 2;
      if (holds(middle)) {
        most = middle;
      } else {
        least = middle + 1;
      }
    }
    std::vector<std::int64_t> counts(num_groups());
    std::int64_t left = all;
    for (std::size_t group = 0; group < num_groups(); ++group) {
      counts[group] = std::min(left, room(group, lot, least));
      left -= counts[group];
      take(group, lot, counts[group]);
    }
    record(*std::max_element(load_.begin(), load_.end()));
    for (std::size_t group = 0; group < num_groups(); ++group) take(group, lot, -counts[group]);
  }

  const GroupInstance& instance_;
  SearchBudget& budget_;
  std::int64_t limit_;  // a new assignment must end by then
  Dual dual_;
  std::int64_t least_possible_;
  std::vector<std::size_t> order_;                // lots, in the order of decisions
  std::vector<std::int64_t> load_;                // [groups]
  std::vector<std::int64_t> memory_;              // [groups]
  std::vector<std::vector<std::int64_t>> taken_;  // [groups][lots]
  Wide weighted_ = 0;  // the dual's sum for what is placed and what is not yet; at most limit * total weight
  std::optional<GroupAssignment> best_;
};

}  // namespace

std::int64_t group_lower_bound(const GroupInstance& instance) { return bound_of(instance, best_dual(instance)); }

std::optional<GroupAssignment> best_assignment(const GroupInstance& instance, std::int64_t below,
                                               SearchBudget& budget) {
  return Search(instance, below, budget).run();
}

}  // namespace zellige
