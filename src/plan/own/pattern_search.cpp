// SPDX-License-Identifier: Apache-2.0
#include "plan/own/pattern_search.h"

#include <algorithm>
#include <limits>

namespace zellige::own {
namespace {

constexpr double kWider = 1 + 1e-12;
constexpr double kNarrower = 1 - 1e-12;

}  // namespace

PatternSearch::PatternSearch(const Model& model) : model_(model), pieces_(model.num_types(), 0) {}

std::int64_t PatternSearch::steps_value(int type, std::int64_t pieces) const {
  std::int64_t value = 0;
  for (const StepValue& step : values_.steps) {
    if (step.type == type && pieces >= step.at_least) value += step.value;
  }
  return value;
}

void PatternSearch::make_levels(const Box& box, const PieceValues& values, std::int64_t load_limit_us) {
  values_ = values;
  levels_.clear();
  for (int g = 0; g < model_.num_groups(); ++g) {
    bool starts = true;
    for (int t = model_.first[g]; t < model_.first[g + 1]; ++t) {
      const PieceType& type = model_.types[t];
      if (box.most[t] == 0 || type.load_us() > load_limit_us) continue;
      Level level;
      level.type = t;
      level.time_us = type.time_us;
      level.memory_bytes = type.memory_bytes;
      level.exchange_us = type.exchange_us;
      level.value = values.piece[t];
      // Pieces of the types up to t: at most the sequences that do not have to be further along.
      const bool is_last = t + 1 == model_.first[g + 1];
      level.most = model_.count[g] - (is_last ? 0 : box.least[t + 1]);
      level.entry_most = box.most[t];
      if (level.most == 0) continue;
      level.best_value = static_cast<double>(level.value);
      for (const StepValue& step : values.steps) {
        if (step.type != t) continue;
        level.has_steps = true;
        const double average = static_cast<double>(level.value) +
                               static_cast<double>(steps_value(t, step.at_least)) / static_cast<double>(step.at_least);
        level.best_value = std::max(level.best_value, average);
      }
      if (level.best_value <= 0) continue;
      level.starts_group = starts;
      starts = false;
      levels_.push_back(level);
    }
  }
}

double PatternSearch::size_of(const Level& level, bool second) const {
  if (!second) return static_cast<double>(level.time_us);
  return per_us_ * static_cast<double>(level.time_us) + per_byte_ * static_cast<double>(level.memory_bytes);
}

/// The concave hull of one group's levels begin .. end - 1, from the origin.
void PatternSearch::make_hull(std::size_t begin, std::size_t end, bool second) {
  hull_.clear();
  double size = 0, value = 0;
  while (true) {
    double best_size = 0, best_value = 0;
    for (std::size_t other = begin; other < end; ++other) {
      const double step_size = size_of(levels_[other], second) - size;
      const double step_value = levels_[other].best_value - value;
      if (step_value <= 0) continue;
      if (step_size <= 0) {  // better and no larger: only at the origin, where sizes may be zero
        if (best_value == 0 || best_size > 0 || step_value > best_value) best_size = 0, best_value = step_value;
        continue;
      }
      if (best_value > 0 && best_size == 0) continue;
      const double gain = step_value * best_size - best_value * step_size;
      if (best_value == 0 || gain > 0 || (gain == 0 && step_size > best_size)) {
        best_size = step_size, best_value = step_value;
      }
    }
    if (best_value == 0) break;
    hull_.push_back({best_size, best_value, static_cast<double>(levels_[end - 1].most), true});
    size += best_size;
    value += best_value;
  }
}

/// Fills, for every level, the increments of its group from that level on and of all later groups, best ratio first.
void PatternSearch::make_increments(bool second) {
  std::vector<Increment>& all = second ? second_increments_ : load_increments_;
  all.clear();
  later_.clear();
  const auto better = [](const Increment& a, const Increment& b) { return a.value * b.size > b.value * a.size; };
  std::size_t group_end = levels_.size();
  for (std::size_t depth = levels_.size(); depth-- > 0;) {
    make_hull(depth, group_end, second);
    const int begin = static_cast<int>(all.size());
    std::size_t i = 0, j = 0;
    while (i < hull_.size() || j < later_.size()) {
      const bool take_later = i == hull_.size() || (j < later_.size() && better(later_[j], hull_[i]));
      all.push_back(take_later ? later_[j++] : hull_[i++]);
    }
    const int end = static_cast<int>(all.size());
    (second ? levels_[depth].second_begin : levels_[depth].load_begin) = begin;
    (second ? levels_[depth].second_end : levels_[depth].load_end) = end;
    if (levels_[depth].starts_group) {
      later_.assign(all.begin() + begin, all.end());
      for (Increment& increment : later_) increment.of_current_group = false;
      group_end = depth;
    }
  }
}

double PatternSearch::upper_value(int begin, int end, double room, double left) {
  const std::vector<Increment>& all = begin < 0 ? second_increments_ : load_increments_;
  if (begin < 0) begin = -begin - 1;
  double value = 0;
  for (int i = begin; i < end; ++i) {
    const Increment& increment = all[i];
    ++work_;
    const double copies = increment.of_current_group ? std::min(left, increment.copies) : increment.copies;
    const double size = copies * increment.size;
    if (size > room) return (value + increment.value * (room / increment.size)) * kWider;
    value += copies * increment.value;
    room -= size;
  }
  return value * kWider;
}

double PatternSearch::least_load(int begin, int end, double need, double left) {
  double load = 0;
  for (int i = begin; i < end; ++i) {
    const Increment& increment = load_increments_[i];
    ++work_;
    const double copies = increment.of_current_group ? std::min(left, increment.copies) : increment.copies;
    const double value = copies * increment.value * kWider;
    if (value >= need) return (load + increment.size * (need / (increment.value * kWider))) * kNarrower;
    need -= value;
    load += copies * increment.size;
  }
  return std::numeric_limits<double>::infinity();
}

/// Sets the second size; false when memory can't keep a pattern of this load from being.
bool PatternSearch::choose_second(std::int64_t load_limit_us) {
  if (load_limit_us <= memory_never_binds_us_ || levels_.empty()) return false;
  double most_bytes = 0;  // each microsecond of load needs so much at most
  for (const PieceType& type : model_.types) {
    most_bytes = std::max(most_bytes, static_cast<double>(type.memory_bytes) / static_cast<double>(type.time_us));
  }
  if (most_bytes * static_cast<double>(load_limit_us) * kWider <= static_cast<double>(model_.memory_cap_bytes)) {
    memory_never_binds_us_ = load_limit_us;
    return false;
  }
  const auto load = static_cast<double>(load_limit_us);
  const auto cap = static_cast<double>(model_.memory_cap_bytes);
  const auto bound_of = [&](double share) {
    per_us_ = (1 - share) / load;
    per_byte_ = share / cap;
    return root_upper_value();
  };
  // The bound is convex in the share, nearly: a search by thirds comes close enough.
  double low = 0, high = 1;
  for (int round = 0; round < 5; ++round) {
    const double left = low + (high - low) / 3, right = high - (high - low) / 3;
    if (bound_of(left) <= bound_of(right)) {
      high = right;
    } else {
      low = left;
    }
  }
  const double share = (low + high) / 2;
  per_us_ = (1 - share) / load;
  per_byte_ = share / cap;
  make_increments(true);
  return true;
}

/// The bound of the whole search by the second size.
double PatternSearch::root_upper_value() {
  later_.clear();
  std::size_t begin = 0;
  while (begin < levels_.size()) {
    std::size_t end = begin + 1;
    while (end < levels_.size() && !levels_[end].starts_group) ++end;
    make_hull(begin, end, true);
    later_.insert(later_.end(), hull_.begin(), hull_.end());
    begin = end;
  }
  std::sort(later_.begin(), later_.end(),
            [](const Increment& a, const Increment& b) { return a.value * b.size > b.value * a.size; });
  double value = 0, room = 1;
  for (const Increment& increment : later_) {
    const double size = increment.copies * increment.size;
    if (size > room) return value + increment.value * (room / increment.size);
    value += increment.copies * increment.value;
    room -= size;
  }
  work_ += static_cast<std::int64_t>(4 * levels_.size());
  return value;
}

void PatternSearch::prepare(const Box& box, const PieceValues& values, std::int64_t load_limit_us) {
  load_limit_us_ = load_limit_us;
  make_levels(box, values, load_limit_us);
  make_increments(false);
  memory_binds_ = choose_second(load_limit_us);
  work_ += static_cast<std::int64_t>(8 * levels_.size() * (1 + levels_.size() / 4));
}

std::int64_t PatternSearch::most_pieces(const Level& level, State& state, std::int64_t exchange_limit_us) const {
  if (level.starts_group) {
    state.left = level.entry_most;
    state.taken = 0;
  } else {
    state.left = std::min(state.left, level.entry_most);
  }
  std::int64_t most = std::min(state.left, level.most - state.taken);
  if (level.memory_bytes > 0 && most * level.memory_bytes > state.memory_left) {
    most = state.memory_left / level.memory_bytes;
  }
  if (level.exchange_us > 0) most = std::min(most, (exchange_limit_us - exchange_) / level.exchange_us);
  return most;
}

void PatternSearch::grow_max(std::size_t depth, State state) {
  if (stopped_) return;
  if (depth == levels_.size()) {
    if (state.value <= best_) return;
    best_ = state.value;
    work_end_ = std::min(work_end_, work_ + work_after_found_);
    if (found_ == nullptr) return;
    Pattern pattern{pieces_, load_limit_us_ - state.load_left, model_.memory_cap_bytes - state.memory_left, exchange_};
    found_->push_back(std::move(pattern));
    return;
  }
  if (++work_ > work_end_) {
    stopped_ = true;
    return;
  }
  const Level& level = levels_[depth];
  std::int64_t most = most_pieces(level, state, load_limit_us_);
  const auto aim = static_cast<double>(best_ + 1 - state.value);
  const auto left = static_cast<double>(state.left);
  if (upper_value(level.load_begin, level.load_end, static_cast<double>(state.load_left), left) + 0.5 < aim) return;
  if (memory_binds_) {
    const double room =
        (per_us_ * static_cast<double>(state.load_left) + per_byte_ * static_cast<double>(state.memory_left)) * kWider;
    if (upper_value(-level.second_begin - 1, level.second_end, room, left) + 0.5 < aim) return;
  }
  if (most * level.time_us > state.load_left) most = state.load_left / level.time_us;
  const bool only_most = depth + 1 == levels_.size() && !level.has_steps;
  const std::int64_t exchange_before = exchange_;
  for (std::int64_t pieces = most; pieces >= 0; --pieces) {
    State next{state.load_left - pieces * level.time_us, state.memory_left - pieces * level.memory_bytes,
               state.left - pieces, state.taken + pieces, state.value + pieces * level.value};
    exchange_ = exchange_before + pieces * level.exchange_us;
    if (level.has_steps) next.value += steps_value(level.type, pieces);
    pieces_[level.type] = static_cast<std::int32_t>(pieces);
    grow_max(depth + 1, next);
    if (only_most) break;
  }
  exchange_ = exchange_before;
  pieces_[level.type] = 0;
}

PatternSearch::Best PatternSearch::max_value(const Box& box, const PieceValues& values, std::int64_t load_limit_us,
                                             std::int64_t above, std::int64_t work_limit, std::int64_t work_after_found,
                                             std::vector<Pattern>* found) {
  prepare(box, values, load_limit_us);
  best_ = above;
  found_ = found;
  work_after_found_ = work_after_found;
  stopped_ = false;
  exchange_ = 0;
  work_end_ = work_ + work_limit;
  grow_max(0, {load_limit_us_, model_.memory_cap_bytes, 0, 0, 0});
  return {best_, !stopped_};
}

void PatternSearch::grow_min(std::size_t depth, std::int64_t load, State state) {
  if (stopped_) return;
  if (state.value <= 0) {  // nothing is needed any more, and taking nothing is always allowed
    best_ = std::min(best_, std::max(load, exchange_));
    return;
  }
  if (depth == levels_.size()) return;
  ++work_;
  if (work_ > work_end_) {
    stopped_ = true;
    return;
  }
  const Level& level = levels_[depth];
  if (exchange_ > best_ - 1) return;  // the best has come down since
  std::int64_t most = most_pieces(level, state, best_ - 1);
  const double extra = least_load(level.load_begin, level.load_end, static_cast<double>(state.value) - 0.5,
                                  static_cast<double>(state.left));
  if (static_cast<double>(load) + extra > static_cast<double>(best_ - 1)) return;
  if (memory_binds_) {
    const double room = per_byte_ * static_cast<double>(state.memory_left) * kWider;
    if (upper_value(-level.second_begin - 1, level.second_end, room, static_cast<double>(state.left)) + 0.5 <
        static_cast<double>(state.value)) {
      return;
    }
  }
  const std::int64_t room = best_ - 1 - load;
  if (most * level.time_us > room) most = room / level.time_us;
  const std::int64_t exchange_before = exchange_;
  for (std::int64_t pieces = most; pieces >= 0; --pieces) {
    State next{0, state.memory_left - pieces * level.memory_bytes, state.left - pieces, state.taken + pieces,
               state.value - pieces * level.value};
    exchange_ = exchange_before + pieces * level.exchange_us;
    if (level.has_steps) next.value -= steps_value(level.type, pieces);
    grow_min(depth + 1, load + pieces * level.time_us, next);
  }
  exchange_ = exchange_before;
}

PatternSearch::Best PatternSearch::min_load(const Box& box, const PieceValues& values, std::int64_t need,
                                            std::int64_t below_us, std::int64_t work_limit) {
  prepare(box, values, below_us - 1);
  best_ = below_us;
  found_ = nullptr;
  stopped_ = false;
  exchange_ = 0;
  work_end_ = work_ + work_limit;
  if (memory_binds_) {
    per_us_ = 0;
    per_byte_ = 1 / static_cast<double>(model_.memory_cap_bytes);
    make_increments(true);
  }
  grow_min(0, 0, {0, model_.memory_cap_bytes, 0, 0, need});
  return {best_, !stopped_};
}

}  // namespace zellige::own
