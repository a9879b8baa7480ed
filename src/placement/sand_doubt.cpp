// SPDX-License-Identifier: Apache-2.0
#include "placement/sand_doubt.h"

#include <algorithm>

namespace zellige {
namespace {

using Kind = PatternQuestion::Kind;

// With these limits no product of a price and a room leaves 125 bits.
constexpr std::int64_t kMostPrice = std::int64_t{1} << 60;
constexpr std::int64_t kMostValue = std::int64_t{1} << 62;

class SandDoubt {
 public:
  SandDoubt(const PatternQuestion& question, std::size_t counted, std::int64_t& work)
      : question_(question), work_(work) {
    for (std::size_t g = 0; g < question.groups.size(); ++g) {
      bool starts = true;
      for (const Kind& kind : question.groups[g]) {
        if (kind.time_us > question.load_limit_us || kind.memory_bytes > question.memory_cap_bytes) continue;
        if (kind.exchange_us > question.load_limit_us) continue;
        if (kind.value <= 0 || kind.before_most <= 0 || kind.after_most <= 0) continue;  // worth nothing on any rank
        if (g >= counted) {
          sand_.push_back(kind);
        } else {
          kinds_.push_back(kind);
          starts_.push_back(starts);
          starts = false;
        }
      }
    }
  }

  PatternVerdict run(const std::vector<AnchorProof::Prices>& prices) {
    if (question_.mean < 0) return PatternVerdict::exists;
    if (question_.mean > kMostValue) return PatternVerdict::out_of_work;
    for (const AnchorProof::Prices& price : prices) {
      if (serves(price)) prices_.push_back(price);
    }
    if (prices_.empty()) return PatternVerdict::exists;
    set_rest();
    aim_ = Wide{question_.mean + 1} << AnchorProof::kPriceShift;
    return grow(0, 0, {question_.load_limit_us, question_.memory_cap_bytes, question_.load_limit_us}, 0, 0);
  }

 private:
  /// Of a rank. What sand exchanges is not counted, so that the answer can only be "exists" too often.
  struct Room {
    std::int64_t load_us, memory_bytes, exchange_us;
  };

  bool serves(const AnchorProof::Prices& price) const {
    if (price.per_us < 0 || price.per_byte < 0 || price.per_us > kMostPrice || price.per_byte > kMostPrice)
      return false;
    return std::all_of(sand_.begin(), sand_.end(), [&](const Kind& kind) { return beyond(kind, price) <= 0; });
  }

  /// What a piece is worth beyond its price.
  static Wide beyond(const Kind& kind, const AnchorProof::Prices& price) {
    return (Wide{kind.value} << AnchorProof::kPriceShift) - Wide{price.per_us} * kind.time_us -
           Wide{price.per_byte} * kind.memory_bytes;
  }

  /// For each kind and price, what the pieces of the kinds from it on may be worth beyond the price: of each group as
  /// many pieces as there may be of the shortest and of the smallest kind, each gaining what the kind that gains most
  /// does.
  void set_rest() {
    rest_.assign((kinds_.size() + 1) * prices_.size(), 0);
    for (std::size_t p = 0; p < prices_.size(); ++p) {
      Wide later = 0, gain = 0;  // of later groups; of a piece of this one
      std::int64_t count = 0, shortest_us = 0, smallest_bytes = 0, pieces = 0;
      for (std::size_t k = kinds_.size(); k-- > 0;) {
        const Kind& kind = kinds_[k];
        const bool is_last = k + 1 == kinds_.size() || starts_[k + 1];
        if (is_last) later += gain * pieces, gain = 0;
        count = is_last ? kind.after_most : std::max(count, kind.after_most);
        shortest_us = is_last ? kind.time_us : std::min(shortest_us, kind.time_us);
        smallest_bytes = is_last ? kind.memory_bytes : std::min(smallest_bytes, kind.memory_bytes);
        pieces = count;
        if (shortest_us > 0) pieces = std::min(pieces, question_.load_limit_us / shortest_us);
        if (smallest_bytes > 0) pieces = std::min(pieces, question_.memory_cap_bytes / smallest_bytes);
        gain = std::max(gain, beyond(kind, prices_[p]));
        rest_[k * prices_.size() + p] = later + gain * pieces;
      }
    }
  }

  PatternVerdict grow(std::size_t depth, Wide value, Room room, std::int64_t taken, std::int64_t left) {
    for (std::size_t i = 0; i < prices_.size(); ++i) {
      if (--work_ < 0) return PatternVerdict::out_of_work;
      const std::size_t p = i == 0 ? last_ : i == last_ ? 0 : i;
      if ((value << AnchorProof::kPriceShift) + Wide{prices_[p].per_us} * room.load_us +
              Wide{prices_[p].per_byte} * room.memory_bytes + rest_[depth * prices_.size() + p] <
          aim_) {
        last_ = p;
        return PatternVerdict::none;
      }
    }
    if (depth == kinds_.size()) return PatternVerdict::exists;
    const Kind& kind = kinds_[depth];
    if (starts_[depth]) taken = 0, left = kind.after_most;
    left = std::min(left, kind.after_most);
    std::int64_t pieces = std::min(left, kind.before_most - taken);
    if (kind.time_us > 0) pieces = std::min(pieces, room.load_us / kind.time_us);
    if (kind.memory_bytes > 0) pieces = std::min(pieces, room.memory_bytes / kind.memory_bytes);
    if (kind.exchange_us > 0) pieces = std::min(pieces, room.exchange_us / kind.exchange_us);
    for (pieces = std::max<std::int64_t>(0, pieces); pieces >= 0; --pieces) {
      const Room rest{room.load_us - pieces * kind.time_us, room.memory_bytes - pieces * kind.memory_bytes,
                      room.exchange_us - pieces * kind.exchange_us};
      const PatternVerdict verdict =
          grow(depth + 1, value + Wide{pieces} * kind.value, rest, taken + pieces, left - pieces);
      if (verdict != PatternVerdict::none) return verdict;
    }
    return PatternVerdict::none;
  }

  const PatternQuestion& question_;
  std::int64_t& work_;
  std::vector<Kind> kinds_, sand_;
  std::vector<bool> starts_;  // [kinds] whether it is its group's first
  std::vector<AnchorProof::Prices> prices_;
  std::vector<Wide> rest_;  // [kinds + 1][prices]
  Wide aim_ = 0;
  std::size_t last_ = 0;  // the price that refuted last
};

}  // namespace

PatternVerdict is_worth_more_over_sand(const PatternQuestion& question, std::size_t counted,
                                       const std::vector<AnchorProof::Prices>& prices, std::int64_t& work) {
  return SandDoubt(question, counted, work).run(prices);
}

}  // namespace zellige
