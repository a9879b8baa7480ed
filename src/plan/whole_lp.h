// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "placement/anchor_certificate.h"
#include "plan/own/cover_lp.h"
#include "zellige/anchor_proof.h"

namespace zellige {

/// How many sequences of a group take an option or a later one: least and most, [group][option]. What branching
/// decides.
struct TailBox {
  std::vector<std::vector<std::int64_t>> least, most;
};
TailBox whole_tails(const ProofInstance& instance);

/// The linear program over patterns for a whole batch: the fewest ranks that hold everything when patterns and counts
/// may be fractions, and the pieces of the later groups are sand: a rank may hold any fraction of them, within its load
/// and its memory. So a pattern is a few pieces of the first groups, searched exactly, and the best sand on what they
/// leave, which a handful of prices of load and memory bound (docs/concepts/makespan_bound.md). Threads: one at a time.
class WholeLp {
 public:
  /// @param counted  groups whose pieces are counted one by one; those after them are sand
  WholeLp(const ProofInstance& instance, std::size_t counted);

  enum class Answer {
    fits,     ///< a fractional placement exists
    refuted,  ///< leaf() proves that there is none, up to rounding: to be verified
    unclear,  ///< neither, within tolerance or work
  };
  /// Is there a placement in the box with loads <= `limit_us`?
  Answer ask(const TailBox& box, std::int64_t limit_us, std::int64_t work_limit);

  /// After refuted: values and prices in integers.
  const AnchorProof::Node& leaf() const { return leaf_; }
  /// After fits: sequences that take an option or a later one, [group][option].
  std::vector<std::vector<double>> tails() const;

  std::size_t counted() const { return counted_; }
  std::int64_t work() const { return work_; }

 private:
  struct Kind {
    int group, option;
    double time, memory, exchange, value;  // shares of the limit, of the cap, of the limit; worth of a piece
    std::int64_t before_most, after_most;
  };
  /// What a share of load and a share of memory cost, so that no sand is worth more than it costs; between the two
  /// kinds of sand that are worth just that (-1: none).
  struct Prices {
    double load = 0, memory = 0;
    int left = -1, right = -1;
  };
  struct Pattern {
    std::vector<std::vector<double>> pieces;
    double counted_us = 0, sand_us = 0, exchange_us = 0;  // exchanges of counted pieces
    double scale = 1;                                     // of the sand, so that the load keeps the limit asked about
    bool is_usable = true;
  };
  struct Row {
    int group, option;
    bool is_cover;
  };

  void set_rows(const TailBox& box);
  bool is_allowed(const Pattern& pattern, const TailBox& box) const;
  double tail(const Pattern& pattern, int group, int option) const;
  void add_pattern(Pattern pattern);
  void add_starts();
  void set_kinds(const TailBox& box);
  void set_values();
  std::vector<Prices> hull(const std::vector<Kind>& kinds) const;
  void make_prices();
  /// The most that a pattern is worth, or `above`; what is better on the way goes to found_.
  double max_value(double above, std::int64_t work_end);
  /// Shares of a rank that are left. What sand exchanges is not counted.
  struct Room {
    double load, memory, exchange;
  };
  void grow(std::size_t depth, double value, Room room, std::int64_t taken, std::int64_t left);
  void note(const Room& room);
  void round_leaf();

  const ProofInstance& instance_;
  std::size_t counted_;
  std::int64_t limit_us_ = 0;
  std::int64_t unit_ = 1;
  own::CoverLp lp_;
  std::vector<Row> rows_;
  std::vector<Pattern> pool_;
  std::vector<std::vector<double>> values_;  // [group][option] of a sequence
  std::vector<Kind> kinds_, sand_;
  std::vector<Prices> prices_;  // the first sand_prices_ are corners of what sand may cost
  std::size_t sand_prices_ = 0;
  std::vector<std::vector<double>> rest_;  // [depth][price] that the kinds from depth on may be worth beyond it
  std::vector<std::int64_t> pieces_;
  double best_ = 0;
  std::vector<Pattern> found_;
  std::int64_t work_ = 0, work_end_ = 0;
  bool stopped_ = false;
  std::size_t last_pruner_ = 0;
  AnchorProof::Node leaf_;
};

}  // namespace zellige
