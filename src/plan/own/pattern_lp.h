// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/own/cover_lp.h"
#include "plan/own/pattern_model.h"
#include "plan/own/pattern_search.h"

namespace zellige::own {

/// A limit on how many ranks hold `at_least` or more pieces of a type.
struct HolderLimit {
  int type = 0;
  std::int32_t at_least = 1;
  std::int64_t least = 0, most = 0;
};

/// What a node of a search asks: is there a placement with these counts, these holders, loads <= the limit, and at most
/// so many split sequences?
struct Question {
  Box box;
  std::vector<HolderLimit> holders;
  std::optional<std::int64_t> splits_most;  // K
};

/// Integer multipliers that prove an answer "no": what a whole sequence is worth, by what limits it.
struct Multipliers {
  std::vector<std::int64_t> group;    ///< [groups] for n_g
  std::vector<std::int64_t> tail;     ///< [types] for the number that takes its options from this type on: positive
                                      ///< with Box::least, negative with Box::most
  std::vector<std::int64_t> holders;  ///< [Question::holders] likewise
  std::int64_t split = 0;             ///< for the split count, >= 0
};
/// What pieces are worth under the multipliers.
PieceValues piece_values(const Model& model, const Question& question, const Multipliers& multipliers);
/// What all ranks together have to hold, in the same unit, without the split count's share.
/// @note  subtract unit * split * K where splits are limited
__extension__ typedef __int128 Wide128;
Wide128 total_value(const Model& model, const Question& question, const Multipliers& multipliers);

/// The linear program over patterns: the fewest ranks that hold everything when patterns and counts may be fractions.
/// One row a group, so it is tiny; patterns come from a pool and from PatternSearch. Threads: one at a time.
class PatternLp {
 public:
  PatternLp(const Model& model, PatternSearch& search);

  enum class Answer {
    fits,     ///< a fractional placement exists
    refuted,  ///< multipliers() prove that there is none, exactly
    unclear,  ///< neither, within tolerance or work
  };
  /// Answers a question at a load limit.
  Answer ask(const Question& question, std::int64_t load_limit_us, std::int64_t work_limit);

  /// How many sequences take each type, in fractions: [types].
  const std::vector<double>& counts() const { return counts_; }
  /// Patterns and how many ranks hold each; more than there are when refuted.
  struct Share {
    const Pattern* pattern;
    double ranks;
  };
  const std::vector<Share>& shares() const { return shares_; }
  /// After refuted.
  const Multipliers& multipliers() const { return multipliers_; }
  /// After refuted: the most that a pattern is worth.
  std::int64_t refuting_value() const { return refuting_value_; }
  /// Fewest ranks found.
  double ranks() const { return lp_.objective(); }

  void add_pattern(const Pattern& pattern);
  std::int64_t work() const { return work_; }

 private:
  struct Row {
    enum class Kind { group, tail, holders, split } kind;
    int index;  // group, type, or holder limit
    bool is_cover;
    double right;
  };
  struct PoolPattern {
    Pattern pattern;
    std::vector<std::pair<int, double>> pieces;  // type, pieces
    std::vector<double> tail;                    // [types] sequences' worth from the type on
    double split = 0;
  };
  void make_rows(const Question& question);
  bool is_allowed(const PoolPattern& pattern, const Question& question, std::int64_t load_limit_us) const;
  double coefficient(const Row& row, const PoolPattern& pattern, const Question& question) const;
  void read();
  Multipliers rounded(const Question& question) const;

  const Model& model_;
  PatternSearch& search_;
  std::vector<PoolPattern> pool_;
  std::vector<Row> rows_;
  CoverLp lp_;  // its columns are named by their place in the pool
  std::vector<int> usable_, candidates_, last_basis_;
  std::vector<std::pair<double, int>> gains_;
  std::vector<Pattern> found_;
  std::vector<double> counts_;
  std::vector<Share> shares_;
  Multipliers multipliers_;
  std::int64_t refuting_value_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace zellige::own
