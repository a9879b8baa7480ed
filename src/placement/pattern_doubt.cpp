// SPDX-License-Identifier: Apache-2.0
// Two lists of partial patterns, each over some of the groups, grow a group at a time: the shorter one takes the next.
// A partial pattern stays when no other one is worth as much at no higher load, need and count, and when the linear
// relaxation of everything else may still bring it above the mean. In the end the lists are matched.
#include "placement/pattern_doubt.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "placement/relaxation.h"

namespace zellige {
namespace {

using Kind = PatternQuestion::Kind;

// Worths are values in units of 2^-shift, so that a price of memory can be taken off them. With these limits no product
// of a worth and a load, or of a price and a need, leaves 127 bits.
constexpr int kMostShift = 16;
constexpr int kWorthBits = 70;
constexpr std::int64_t kMostLoad = std::int64_t{1} << 50;
constexpr std::int64_t kMostMemory = std::int64_t{1} << 56;
constexpr Wide kMostPricedMemory = static_cast<Wide>(1) << 110;

/// Steps of a partial pattern that is sorted, beside that of making it.
constexpr std::int64_t kSortedWork = 2;
constexpr std::size_t kMostPartials = std::size_t{1} << 20;

/// What some pieces of a rank add up to; of the group under way, how many there are and how many may still come.
struct Partial {
  std::int64_t load_us = 0, memory_bytes = 0, value = 0;
  std::int64_t taken = 0, left = 0;
  std::int64_t exchange_us = 0;
  Wide worth = 0;  // by which it is compared
};

class Doubt {
 public:
  Doubt(const PatternQuestion& question, std::int64_t& work) : question_(question), work_(work) {
    for (const auto& group : question.groups) {
      std::vector<Kind> kinds;
      for (const Kind& kind : group) {
        if (kind.time_us > question.load_limit_us || kind.memory_bytes > question.memory_cap_bytes) continue;
        if (kind.exchange_us > question.load_limit_us) continue;
        if (best_value(kind) <= 0 || kind.before_most <= 0 || kind.after_most <= 0) continue;
        kinds.push_back(kind);
      }
      if (!kinds.empty()) groups_.push_back(std::move(kinds));
    }
  }

  PatternVerdict run() {
    if (question_.mean < 0) return PatternVerdict::exists;  // an empty rank is worth more
    if (question_.load_limit_us > kMostLoad || question_.memory_cap_bytes > kMostMemory || !choose_shift()) {
      return PatternVerdict::out_of_work;
    }
    prices_ = {0};
    const bool has_memory = may_exceed(&Kind::memory_bytes, question_.memory_cap_bytes);
    const bool has_exchange = may_exceed(&Kind::exchange_us, question_.load_limit_us);
    if (!has_memory && !has_exchange) return search();
    // Memory at a price and no cap first, and no exchange: then times alone decide, and what is worth too little so is
    // worth too little.
    const Wide price = has_memory ? best_price() : 0;
    prices_ = {price};
    const PatternVerdict priced = search();
    if (priced == PatternVerdict::none || work_ < 0) return priced;
    counts_all_ = true;
    counts_exchange_ = has_exchange;
    prices_ = {0};
    if (has_memory) prices_.push_back(price);
    return search();
  }

 private:
  struct List {
    std::vector<Partial> partials{Partial{}};
    std::vector<bool> has;  // [groups]
  };

  /// False when values are too large for any.
  bool choose_shift() {
    Wide most = 1;  // that any pattern is worth
    for (const auto& kinds : groups_) {
      for (const Kind& kind : kinds) {
        Wide pieces = kind.after_most;
        if (kind.time_us > 0) pieces = std::min<Wide>(pieces, question_.load_limit_us / kind.time_us);
        most += pieces * best_value(kind);
        for (const auto& [least, bonus] : kind.steps) most += bonus < 0 ? -bonus : bonus;
      }
    }
    int bits = 0;
    while (most >> bits != 0) ++bits;
    if (bits > 62) return false;
    shift_ = std::min(kMostShift, kWorthBits - bits);
    return true;
  }

  /// Whether some pattern whose time keeps the limit may hold more of a resource than `most`.
  bool may_exceed(std::int64_t Kind::*resource, std::int64_t most) const {
    Relaxation held(0, question_.load_limit_us);
    for (std::vector<Kind> kinds : groups_) {
      for (Kind& kind : kinds) kind.value = kind.*resource, kind.steps.clear();
      held.add(kinds.data(), kinds.data() + kinds.size(), kinds.front().after_most, 0);
    }
    held.finish();
    constexpr double kWider = 1 + 1e-9;
    return held.about(question_.load_limit_us) * kWider > static_cast<double>(most);
  }

  Relaxation relaxation(const std::vector<bool>& without, Wide price) const {
    Relaxation result(shift_, question_.load_limit_us);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (without[g]) continue;
      const auto& kinds = groups_[g];
      result.add(kinds.data(), kinds.data() + kinds.size(), kinds.front().after_most, price);
    }
    return result;
  }

  /// The price of a byte under which the relaxation is least: any one bounds, a good one saves time.
  Wide best_price() const {
    const std::vector<bool> none(groups_.size(), false);
    const auto bound = [&](Wide price) {
      Relaxation all = relaxation(none, price);
      all.finish();
      return all.about(question_.load_limit_us) +
             static_cast<double>(price) * static_cast<double>(question_.memory_cap_bytes);
    };
    Wide low = 0, high = 1;
    for (const auto& kinds : groups_) {
      for (const Kind& kind : kinds) {
        if (kind.memory_bytes > 0) high = std::max(high, (best_value(kind) << shift_) / kind.memory_bytes + 1);
      }
    }
    high = std::min(high, kMostPricedMemory / std::max<std::int64_t>(1, question_.memory_cap_bytes));
    while (high - low > 2) {  // convex
      const Wide left = low + (high - low) / 3, right = high - (high - low) / 3;
      if (bound(left) <= bound(right)) {
        high = right;
      } else {
        low = left;
      }
    }
    return low + (high - low) / 2;
  }

  /// What a partial is worth at a price of memory.
  Wide worth(const Partial& partial, Wide price) const {
    return (Wide{partial.value} << shift_) - price * partial.memory_bytes;
  }
  /// Worth that a whole pattern must reach.
  Wide need(Wide price) const { return ((question_.mean + 1) << shift_) - price * question_.memory_cap_bytes; }

  PatternVerdict search() {
    List lists[2];
    for (List& list : lists) list.has.assign(groups_.size(), false);
    // The dearest pieces from one end, the smallest from the other.
    std::size_t first = 0, last = groups_.size();
    while (first < last) {
      const bool front = lists[0].partials.size() <= lists[1].partials.size();
      const std::size_t group = front ? first++ : --last;
      if (!grow(lists[front ? 0 : 1], group)) return PatternVerdict::out_of_work;
      if (lists[front ? 0 : 1].partials.empty()) return PatternVerdict::none;
    }
    return matched(lists[0].partials, lists[1].partials);
  }

  bool grow(List& list, std::size_t group) {
    const std::vector<Kind>& kinds = groups_[group];
    list.has[group] = true;
    const std::int64_t count = kinds.front().after_most;
    const auto is_free = [&](const Kind& kind) { return kind.before_most >= count && kind.after_most >= count; };
    const bool is_simple = std::all_of(kinds.begin(), kinds.end(), is_free);  // then left = count - taken
    for (Partial& partial : list.partials) partial.taken = 0, partial.left = count;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      const Kind& kind = kinds[k];
      std::vector<Relaxation> rest;
      std::vector<Wide> needs;
      for (const Wide price : prices_) {
        needs.push_back(need(price));
        rest.push_back(relaxation(list.has, price));
        if (k + 1 < kinds.size()) {
          rest.back().add(kinds.data() + k + 1, kinds.data() + kinds.size(), kinds[k + 1].after_most, price);
        }
        rest.back().finish();
      }
      for (const auto& each : groups_) work_ -= static_cast<std::int64_t>(each.size() * prices_.size());
      grown_.clear();
      for (const Partial& partial : list.partials) {
        const std::int64_t left = std::min(partial.left, kind.after_most);
        std::int64_t most = std::min(left, kind.before_most - partial.taken);
        if (kind.time_us > 0) most = std::min(most, (question_.load_limit_us - partial.load_us) / kind.time_us);
        if (counts_all_ && kind.memory_bytes > 0) {
          most = std::min(most, (question_.memory_cap_bytes - partial.memory_bytes) / kind.memory_bytes);
        }
        if (counts_exchange_ && kind.exchange_us > 0) {
          most = std::min(most, (question_.load_limit_us - partial.exchange_us) / kind.exchange_us);
        }
        for (std::int64_t pieces = 0; pieces <= most; ++pieces) {
          Partial next{partial.load_us + pieces * kind.time_us,
                       partial.memory_bytes + pieces * kind.memory_bytes,
                       partial.value + pieces * kind.value,
                       partial.taken + pieces,
                       left - pieces,
                       partial.exchange_us + pieces * kind.exchange_us};
          for (const auto& [least, bonus] : kind.steps) next.value += pieces >= least ? bonus : 0;
          if (--work_ < 0) return false;
          bool may_exceed = true;
          for (std::size_t p = 0; may_exceed && p < prices_.size(); ++p) {
            may_exceed = rest[p].reaches(needs[p] - worth(next, prices_[p]), question_.load_limit_us - next.load_us);
          }
          if (may_exceed) grown_.push_back(next);
        }
        if (grown_.size() > kMostPartials) return false;
      }
      if (k + 1 == kinds.size()) {
        for (Partial& partial : grown_) partial.taken = partial.left = 0;
      }
      keep_best(is_simple);
      list.partials.swap(grown_);
    }
    return true;
  }

  /// Drops from grown_ what another one is at least as good as.
  void keep_best(bool is_simple) {
    // By memory at its price the need does not count by itself.
    const Wide price = counts_all_ ? 0 : prices_.back();
    const auto second = [&](const Partial& p) { return counts_all_ ? p.memory_bytes : is_simple ? p.taken : 0; };
    // What leaves the group in another state is not compared, but for the count where all else follows from it.
    // Nor is what exchanges another time: few pieces exchange at all, so the times are few.
    const bool has_bins = counts_all_ || !is_simple;
    const auto is_other_bin = [&](const Partial& a, const Partial& b) {
      return a.taken != b.taken || a.left != b.left || (counts_exchange_ && a.exchange_us != b.exchange_us);
    };
    for (Partial& partial : grown_) partial.worth = worth(partial, price);
    std::sort(grown_.begin(), grown_.end(), [&](const Partial& a, const Partial& b) {
      if (has_bins && a.taken != b.taken) return a.taken < b.taken;
      if (has_bins && a.left != b.left) return a.left < b.left;
      if (counts_exchange_ && a.exchange_us != b.exchange_us) return a.exchange_us < b.exchange_us;
      if (a.load_us != b.load_us) return a.load_us < b.load_us;
      if (a.worth != b.worth) return a.worth > b.worth;
      return second(a) < second(b);
    });
    work_ -= kSortedWork * static_cast<std::int64_t>(grown_.size());
    std::map<std::int64_t, Wide> stairs;  // second -> worth, both rising: the best at no higher load so far
    std::size_t kept = 0;
    Partial last;
    for (std::size_t i = 0; i < grown_.size(); ++i) {
      const Partial partial = grown_[i];
      if (has_bins && i > 0 && is_other_bin(partial, last)) stairs.clear();
      last = partial;
      const std::int64_t at = second(partial);
      const Wide here = partial.worth;
      auto after = stairs.upper_bound(at);
      if (after != stairs.begin() && std::prev(after)->second >= here) continue;
      while (after != stairs.end() && after->second <= here) after = stairs.erase(after);
      stairs[at] = here;
      grown_[kept++] = partial;
    }
    grown_.resize(kept);
  }

  PatternVerdict matched(std::vector<Partial>& a, std::vector<Partial>& b) {
    const Wide price = prices_.back();
    const auto by_load = [](const Partial& x, const Partial& y) { return x.load_us < y.load_us; };
    std::sort(a.begin(), a.end(), by_load);
    std::sort(b.begin(), b.end(), by_load);
    if (!counts_all_) {
      Wide best = std::numeric_limits<std::int64_t>::min();
      std::size_t next = 0;
      for (std::size_t i = a.size(); i-- > 0;) {  // room grows
        --work_;
        while (next < b.size() && a[i].load_us + b[next].load_us <= question_.load_limit_us) {
          best = std::max(best, worth(b[next++], price));
        }
        if (next > 0 && worth(a[i], price) + best >= need(price)) return PatternVerdict::exists;
      }
      return PatternVerdict::none;
    }
    // Load at a price, too: then only pairs near the best have to be looked at.
    const Wide per_us = load_price(price);
    const auto left_over = [&](const Partial& p) { return worth(p, price) - per_us * p.load_us; };
    std::sort(b.begin(), b.end(), [&](const Partial& x, const Partial& y) { return left_over(x) > left_over(y); });
    std::vector<Wide> left_overs;
    for (const Partial& partial : b) left_overs.push_back(left_over(partial));
    const Wide all = need(price) - per_us * question_.load_limit_us;
    for (const Partial& partial : a) {
      const Wide least = all - left_over(partial);
      for (std::size_t i = 0; i < b.size() && left_overs[i] >= least; ++i) {
        if (--work_ < 0) return PatternVerdict::out_of_work;
        if (partial.load_us + b[i].load_us > question_.load_limit_us) continue;
        if (partial.memory_bytes + b[i].memory_bytes > question_.memory_cap_bytes) continue;
        if (counts_exchange_ && partial.exchange_us + b[i].exchange_us > question_.load_limit_us) continue;
        if (Wide{partial.value} + b[i].value > question_.mean) return PatternVerdict::exists;
      }
    }
    return PatternVerdict::none;
  }

  /// What a microsecond more is worth at the limit.
  Wide load_price(Wide price) const {
    Relaxation all = relaxation(std::vector<bool>(groups_.size(), false), price);
    all.finish();
    const std::int64_t limit = question_.load_limit_us;
    const std::int64_t step = std::max<std::int64_t>(1, limit / 4096);
    return limit < step ? 0
                        : static_cast<Wide>((all.about(limit) - all.about(limit - step)) / static_cast<double>(step));
  }

  const PatternQuestion& question_;
  std::int64_t& work_;
  std::vector<std::vector<Kind>> groups_;
  int shift_ = 0;
  std::vector<Wide> prices_;
  bool counts_all_ = false;  // memory and counts by themselves, not at a price
  bool counts_exchange_ = false;
  std::vector<Partial> grown_;
};

}  // namespace

PatternVerdict is_worth_more(const PatternQuestion& question, std::int64_t& work) {
  return Doubt(question, work).run();
}

}  // namespace zellige
