// SPDX-License-Identifier: Apache-2.0
#include "plan/whole_lp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "plan/wide.h"

namespace zellige {
namespace {

constexpr double kTolerance = 1e-9;
constexpr int kMostIterations = 600;
constexpr std::int64_t kWorkAfterFound = 4'000;

double as_double(std::int64_t value) { return static_cast<double>(value); }

}  // namespace

TailBox whole_tails(const ProofInstance& instance) {
  TailBox box;
  for (const auto& group : instance.groups) {
    box.least.emplace_back(group.options.size(), 0);
    box.most.emplace_back(group.options.size(), group.count);
    if (!group.options.empty()) box.least.back()[0] = group.count;
  }
  return box;
}

WholeLp::WholeLp(const ProofInstance& instance, std::size_t counted) : instance_(instance), counted_(counted) {
  for (const auto& group : instance.groups) {
    for (const auto& option : group.options) {
      unit_ = std::min(std::lcm(unit_, std::int64_t{option.degree}), std::int64_t{1} << 24);
    }
  }
}

void WholeLp::set_rows(const TailBox& box) {
  rows_.clear();
  std::vector<own::CoverLp::Row> rows;
  for (std::size_t g = 0; g < instance_.groups.size(); ++g) {
    const std::int64_t count = instance_.groups[g].count;
    rows_.push_back({static_cast<int>(g), 0, true});
    rows.push_back({true, as_double(count)});
    for (std::size_t j = 1; j < instance_.groups[g].options.size(); ++j) {
      // A bound that follows from a neighbour's needs no row of its own.
      const std::int64_t least = box.least[g][j], most = box.most[g][j];
      const std::int64_t later = j + 1 < box.least[g].size() ? box.least[g][j + 1] : 0;
      if (least > later) {
        rows_.push_back({static_cast<int>(g), static_cast<int>(j), true});
        rows.push_back({true, as_double(least)});
      }
      if (most > 0 && most < box.most[g][j - 1]) {
        rows_.push_back({static_cast<int>(g), static_cast<int>(j), false});
        rows.push_back({false, as_double(most)});
      }
    }
  }
  lp_.start(std::move(rows), 1e4 * instance_.ranks);
}

double WholeLp::tail(const Pattern& pattern, int group, int option) const {
  const auto& options = instance_.groups[group].options;
  double sum = 0;
  for (std::size_t j = option; j < options.size(); ++j) sum += pattern.pieces[group][j] / options[j].degree;
  return group < static_cast<int>(counted_) ? sum : sum * pattern.scale;
}

bool WholeLp::is_allowed(const Pattern& pattern, const TailBox& box) const {
  for (std::size_t g = 0; g < counted_; ++g) {
    const std::size_t size = instance_.groups[g].options.size();
    double before = 0, after = 0;
    for (std::size_t j = 0; j < size; ++j) {
      before += pattern.pieces[g][j];
      after += pattern.pieces[g][size - 1 - j];
      const std::int64_t later = j + 1 < size ? box.least[g][j + 1] : 0;
      if (pattern.pieces[g][j] > 0 && before > as_double(instance_.groups[g].count - later) + 0.5) return false;
      if (pattern.pieces[g][size - 1 - j] > 0 && after > as_double(box.most[g][size - 1 - j]) + 0.5) return false;
    }
  }
  return true;
}

void WholeLp::add_pattern(Pattern pattern) {
  pattern.counted_us = pattern.sand_us = pattern.exchange_us = 0;
  for (std::size_t g = 0; g < instance_.groups.size(); ++g) {
    for (std::size_t j = 0; j < pattern.pieces[g].size(); ++j) {
      const double time = pattern.pieces[g][j] * as_double(instance_.groups[g].options[j].time_us);
      (g < counted_ ? pattern.counted_us : pattern.sand_us) += time;
      if (g < counted_)
        pattern.exchange_us += pattern.pieces[g][j] * as_double(instance_.groups[g].options[j].exchange_us);
    }
  }
  pool_.push_back(std::move(pattern));
}

/// As many pieces of one option as a rank may hold: every group can be covered from the start.
void WholeLp::add_starts() {
  Pattern empty;
  for (const auto& group : instance_.groups) empty.pieces.emplace_back(group.options.size(), 0);
  for (std::size_t g = 0; g < instance_.groups.size(); ++g) {
    for (std::size_t j = 0; j < instance_.groups[g].options.size(); ++j) {
      const auto& option = instance_.groups[g].options[j];
      if (option.load_us() > limit_us_) continue;
      double most = as_double(limit_us_) / as_double(option.load_us());
      if (option.memory_bytes > 0) {
        most = std::min(most, as_double(instance_.memory_cap_bytes) / as_double(option.memory_bytes));
      }
      Pattern pattern = empty;
      pattern.pieces[g][j] = g < counted_ ? std::floor(std::min(most, as_double(instance_.groups[g].count))) : most;
      add_pattern(std::move(pattern));
    }
  }
}

void WholeLp::set_kinds(const TailBox& box) {
  kinds_.clear();
  sand_.clear();
  const auto cap = as_double(std::max<std::int64_t>(1, instance_.memory_cap_bytes));
  for (std::size_t g = 0; g < instance_.groups.size(); ++g) {
    const auto& options = instance_.groups[g].options;
    for (std::size_t j = 0; j < options.size(); ++j) {
      if (options[j].load_us() > limit_us_) continue;
      const std::int64_t later = j + 1 < options.size() ? box.least[g][j + 1] : 0;
      const Kind kind{static_cast<int>(g),
                      static_cast<int>(j),
                      as_double(options[j].time_us) / as_double(limit_us_),
                      as_double(options[j].memory_bytes) / cap,
                      as_double(options[j].exchange_us) / as_double(limit_us_),
                      0,
                      instance_.groups[g].count - later,
                      box.most[g][j]};
      if (g < counted_) {
        kinds_.push_back(kind);
      } else {
        sand_.push_back(kind);
      }
    }
  }
}

/// What the rows' duals make a sequence worth that takes an option, and a piece of it.
void WholeLp::set_values() {
  values_.clear();
  for (const auto& group : instance_.groups) values_.emplace_back(group.options.size(), 0);
  for (std::size_t i = 0; i < rows_.size(); ++i) values_[rows_[i].group][rows_[i].option] += lp_.duals()[i];
  for (auto& group : values_) std::partial_sum(group.begin(), group.end(), group.begin());
  for (auto* kinds : {&kinds_, &sand_}) {
    for (Kind& kind : *kinds) {
      kind.value = values_[kind.group][kind.option] / instance_.groups[kind.group].options[kind.option].degree;
    }
  }
}

/// The corners of { prices >= 0 : every kind costs what it is worth or more }: with sizes per unit of worth that is the
/// lower left hull of points.
std::vector<WholeLp::Prices> WholeLp::hull(const std::vector<Kind>& kinds) const {
  struct Point {
    double x, y;
    int kind;
  };
  std::vector<Point> points;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Kind& kind = kinds[i];
    if (kind.value > 1e-12) points.push_back({kind.time / kind.value, kind.memory / kind.value, static_cast<int>(i)});
  }
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
  std::vector<Point> corners;
  for (const Point& point : points) {
    if (!corners.empty() && point.y >= corners.back().y) continue;
    while (corners.size() >= 2) {
      const Point& a = corners[corners.size() - 2];
      const Point& b = corners.back();
      if ((b.x - a.x) * (point.y - a.y) - (b.y - a.y) * (point.x - a.x) > 0) break;
      corners.pop_back();
    }
    corners.push_back(point);
  }
  if (corners.empty()) return {Prices{}};
  std::vector<Prices> result{{1 / corners.front().x, 0, -1, corners.front().kind}};
  for (std::size_t i = 0; i + 1 < corners.size(); ++i) {
    const Point &a = corners[i], &b = corners[i + 1];
    const double determinant = a.x * b.y - a.y * b.x;
    if (determinant == 0) continue;
    const double load = (b.y - a.y) / determinant, memory = (a.x - b.x) / determinant;
    if (load < 0 || memory < 0) continue;
    result.push_back({load, memory, a.kind, b.kind});
  }
  if (corners.back().y > 0) result.push_back({0, 1 / corners.back().y, corners.back().kind, -1});
  return result;
}

void WholeLp::make_prices() {
  prices_ = hull(sand_);
  sand_prices_ = prices_.size();
  // Prices that pay for everything: with these nothing is to be gained beyond them.
  std::vector<Kind> all = sand_;
  all.insert(all.end(), kinds_.begin(), kinds_.end());
  for (const Prices& prices : hull(all)) prices_.push_back(prices);
  rest_.assign(kinds_.size() + 1, std::vector<double>(prices_.size(), 0));
  for (std::size_t k = 0; k < prices_.size(); ++k) {
    double later = 0, gain = 0, pieces = 0;  // of later groups; of a piece of this one
    double count = 0, shortest = 0, smallest = 0;
    for (std::size_t depth = kinds_.size(); depth-- > 0;) {
      const Kind& kind = kinds_[depth];
      const bool is_last = depth + 1 == kinds_.size() || kinds_[depth + 1].group != kind.group;
      if (is_last) later += gain * pieces, gain = 0;
      count = is_last ? as_double(kind.after_most) : std::max(count, as_double(kind.after_most));
      shortest = is_last ? kind.time : std::min(shortest, kind.time);
      smallest = is_last ? kind.memory : std::min(smallest, kind.memory);
      pieces = std::min(count, std::floor((1 + 1e-12) / shortest));
      if (smallest > 0) pieces = std::min(pieces, std::floor((1 + 1e-12) / smallest));
      gain = std::max(gain, kind.value - prices_[k].load * kind.time - prices_[k].memory * kind.memory);
      rest_[depth][k] = later + gain * pieces;
    }
  }
  work_ += static_cast<std::int64_t>(kinds_.size() * prices_.size());
}

/// Appends the pattern under way, with the sand that is best on what is left.
void WholeLp::note(const Room& room) {
  Pattern pattern;
  for (const auto& group : instance_.groups) pattern.pieces.emplace_back(group.options.size(), 0);
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    pattern.pieces[kinds_[i].group][kinds_[i].option] = as_double(pieces_[i]);
  }
  std::size_t least = 0;
  const auto cost = [&](const Prices& prices) { return prices.load * room.load + prices.memory * room.memory; };
  for (std::size_t k = 1; k < sand_prices_; ++k) {
    if (cost(prices_[k]) < cost(prices_[least])) least = k;
  }
  const Prices& prices = prices_[least];
  const auto put = [&](int kind, double pieces) {
    if (kind >= 0) pattern.pieces[sand_[kind].group][sand_[kind].option] += std::max(0.0, pieces);
  };
  if (prices.left >= 0 && prices.right >= 0) {
    const Kind &a = sand_[prices.left], &b = sand_[prices.right];
    const double determinant = a.time * b.memory - a.memory * b.time;
    put(prices.left, (room.load * b.memory - room.memory * b.time) / determinant);
    put(prices.right, (room.memory * a.time - room.load * a.memory) / determinant);
  } else if (prices.right >= 0) {
    put(prices.right, room.load / sand_[prices.right].time);
  } else if (prices.left >= 0) {
    put(prices.left, room.memory / sand_[prices.left].memory);
  }
  found_.push_back(std::move(pattern));
}

void WholeLp::grow(std::size_t depth, double value, Room room, std::int64_t taken, std::int64_t left) {
  if (++work_ > work_end_) stopped_ = true;
  if (stopped_) return;
  double most = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < prices_.size(); ++i) {
    const std::size_t k = i == 0 ? last_pruner_ : i == last_pruner_ ? 0 : i;
    const double bound = value + prices_[k].load * room.load + prices_[k].memory * room.memory + rest_[depth][k];
    if (bound <= best_) {
      last_pruner_ = k;
      return;
    }
    most = std::min(most, bound);
  }
  if (depth == kinds_.size()) {
    best_ = most;
    note(room);
    work_end_ = std::min(work_end_, work_ + kWorkAfterFound);
    return;
  }
  const Kind& kind = kinds_[depth];
  if (depth == 0 || kinds_[depth - 1].group != kind.group) taken = 0, left = kind.after_most;
  left = std::min(left, kind.after_most);
  constexpr double kRoom = 1e-12;
  auto pieces = std::min(left, kind.before_most - taken);
  pieces = std::min(pieces, static_cast<std::int64_t>((room.load + kRoom) / kind.time));
  if (kind.memory > 0) pieces = std::min(pieces, static_cast<std::int64_t>((room.memory + kRoom) / kind.memory));
  if (kind.exchange > 0) pieces = std::min(pieces, static_cast<std::int64_t>((room.exchange + kRoom) / kind.exchange));
  if (kind.value <= 0) pieces = 0;
  for (pieces = std::max<std::int64_t>(0, pieces); pieces >= 0; --pieces) {
    pieces_[depth] = pieces;
    const double count = as_double(pieces);
    grow(depth + 1, value + count * kind.value,
         {room.load - count * kind.time, room.memory - count * kind.memory, room.exchange - count * kind.exchange},
         taken + pieces, left - pieces);
    if (stopped_) return;
  }
}

double WholeLp::max_value(double above, std::int64_t work_end) {
  make_prices();
  best_ = above;
  found_.clear();
  pieces_.assign(kinds_.size(), 0);
  work_end_ = work_end;
  stopped_ = false;
  last_pruner_ = 0;
  grow(0, 0, {1, 1, 1}, 0, 0);
  return best_;
}

/// Values and prices as integers, prices raised where rounding left a kind of sand too cheap.
void WholeLp::round_leaf() {
  constexpr int kShift = AnchorProof::kPriceShift;
  leaf_ = {};
  const auto limit = as_double(limit_us_);
  const auto cap = as_double(std::max<std::int64_t>(1, instance_.memory_cap_bytes));
  double dearest = 1e-9;
  for (const Prices& prices : prices_) dearest = std::max({dearest, prices.load / limit, prices.memory / cap});
  double largest = 1;
  for (const double dual : lp_.duals()) largest = std::max(largest, std::fabs(dual));
  // Integers that JSON readers hold exactly, below 2^53; sums over all ranks below 2^60.
  const double scale = std::min({0x1p44, 0x1p52 / largest, 0x1p52 / (dearest * as_double(unit_) * 0x1p20),
                                 0x1p58 / (as_double(unit_) * instance_.ranks * (1 + largest))});
  static_assert(kShift == 20);
  leaf_.sequence_values.assign(instance_.groups.size(), 0);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    std::int64_t value = std::llround(lp_.duals()[i] * scale);
    value = rows_[i].is_cover ? std::max<std::int64_t>(0, value) : std::min<std::int64_t>(0, value);
    if (rows_[i].option == 0) {
      leaf_.sequence_values[rows_[i].group] = value;
    } else if (value != 0) {
      const Configuration config = instance_.groups[rows_[i].group].options[rows_[i].option].config;
      leaf_.option_values.push_back({{rows_[i].group, config}, value});
    }
  }
  for (const Prices& prices : prices_) {
    AnchorProof::Prices exact{std::llround(std::ceil(prices.load / limit * scale * as_double(unit_) * 0x1p20)),
                              std::llround(std::ceil(prices.memory / cap * scale * as_double(unit_) * 0x1p20))};
    for (const Kind& kind : sand_) {
      const auto& option = instance_.groups[kind.group].options[kind.option];
      const Wide worth = Wide{leaf_.sequence_values[kind.group]} * unit_;
      const Wide piece = (worth + option.degree - 1) / option.degree;
      const Wide missing =
          (piece << kShift) - Wide{exact.per_us} * option.time_us - Wide{exact.per_byte} * option.memory_bytes;
      if (missing > 0) exact.per_us += static_cast<std::int64_t>((missing + option.time_us - 1) / option.time_us);
    }
    if (std::find(leaf_.prices.begin(), leaf_.prices.end(), exact) == leaf_.prices.end()) leaf_.prices.push_back(exact);
  }
}

WholeLp::Answer WholeLp::ask(const TailBox& box, std::int64_t limit_us, std::int64_t work_limit) {
  limit_us_ = limit_us;
  const std::int64_t end = work_ + work_limit;
  if (pool_.empty()) add_starts();
  for (Pattern& pattern : pool_) {
    const double room = as_double(limit_us) - pattern.counted_us;
    pattern.is_usable = room >= 0 && pattern.exchange_us <= as_double(limit_us) && is_allowed(pattern, box);
    pattern.scale = pattern.sand_us > room ? std::max(0.0, room) / pattern.sand_us : 1;
  }
  set_rows(box);
  set_kinds(box);
  const auto size = static_cast<std::int64_t>(rows_.size());
  std::vector<double> column(rows_.size());
  std::vector<std::pair<double, int>> gains;
  for (int iteration = 0; iteration < kMostIterations; ++iteration) {
    work_ += size * size;
    if (!lp_.has_artificial() && lp_.objective() <= instance_.ranks + kTolerance) return Answer::fits;
    if (work_ > end) return Answer::unclear;
    if (const int slack = lp_.entering_slack(); slack >= 0) {
      lp_.enter_slack(slack);
      continue;
    }
    set_values();
    const auto worth = [&](const Pattern& pattern) {
      double sum = 0;
      for (std::size_t g = 0; g < values_.size(); ++g) {
        double group = 0;
        for (std::size_t j = 0; j < values_[g].size(); ++j) {
          group += pattern.pieces[g][j] * values_[g][j] / instance_.groups[g].options[j].degree;
        }
        sum += g < counted_ ? group : group * pattern.scale;
      }
      return sum;
    };
    int entering = -1;
    double best = 1 + kTolerance;
    for (std::size_t p = 0; p < pool_.size(); ++p) {
      if (!pool_[p].is_usable) continue;
      if (const double value = worth(pool_[p]); value > best) best = value, entering = static_cast<int>(p);
    }
    work_ += static_cast<std::int64_t>(4 * pool_.size());
    if (entering < 0) {
      // A rank must be worth the mean: where no pattern is, the question is refuted; else that pattern helps.
      const double mean = std::max(1.0, lp_.objective() / instance_.ranks) - 1e-9;
      max_value(mean, end);
      if (found_.empty()) {
        if (stopped_) return Answer::unclear;
        if (mean <= 1) return Answer::fits;  // by a rounding error
        round_leaf();
        return Answer::refuted;
      }
      const std::size_t from = found_.size() > 3 ? found_.size() - 3 : 0;
      for (std::size_t i = from; i < found_.size(); ++i) add_pattern(std::move(found_[i]));
      entering = static_cast<int>(pool_.size()) - 1;
      if (worth(pool_.back()) <= 1 + kTolerance) return Answer::unclear;
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) column[i] = tail(pool_[entering], rows_[i].group, rows_[i].option);
    lp_.enter(column, entering);
  }
  return Answer::unclear;
}

std::vector<std::vector<double>> WholeLp::tails() const {
  std::vector<std::vector<double>> result;
  for (const auto& group : instance_.groups) result.emplace_back(group.options.size(), 0);
  for (const auto& [name, ranks] : lp_.values()) {
    for (std::size_t g = 0; g < result.size(); ++g) {
      for (std::size_t j = 0; j < result[g].size(); ++j) {
        result[g][j] += ranks * tail(pool_[name], static_cast<int>(g), static_cast<int>(j));
      }
    }
  }
  return result;
}

}  // namespace zellige
