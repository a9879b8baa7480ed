// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/own/pattern_model.h"

namespace zellige::own {

/// A value that a pattern earns once when it holds at least `at_least` pieces of a type.
struct StepValue {
  int type = 0;
  std::int32_t at_least = 1;
  std::int64_t value = 0;
};

/// What the pieces of a pattern are worth, in integers: sums are exact.
struct PieceValues {
  std::vector<std::int64_t> piece;  ///< [types], each piece
  std::vector<StepValue> steps;
};

/// Exact searches over the patterns of a box: the knapsack with group limits behind pricing and every lower bound.
/// Exchange is a second sum that keeps the load limit; only the counts heed it, bounds do without.
/// Depth first, counts falling; a node is left when even the concave hulls of what is left cannot reach the aim.
/// Bounds are computed in double and widened by more than their rounding error (at most 2^7 operations on integers
/// below 2^53), so that no pattern is missed.
class PatternSearch {
 public:
  explicit PatternSearch(const Model& model);

  struct Best {
    std::int64_t value = 0;
    bool is_exact = true;  ///< false: the work limit ended the search, and the value is only the best seen
  };
  /// The largest value of a pattern of `box` with load <= `load_limit_us`, or `above` when none exceeds it.
  /// @param work_after_found  ends the search so long after each find; then it is not exact
  /// @param found             patterns that were the best so far are appended to it; may be null
  Best max_value(const Box& box, const PieceValues& values, std::int64_t load_limit_us, std::int64_t above,
                 std::int64_t work_limit, std::int64_t work_after_found, std::vector<Pattern>* found);

  /// The least load of a pattern of `box` worth `need` or more, or `below_us` when none has less than that.
  Best min_load(const Box& box, const PieceValues& values, std::int64_t need, std::int64_t below_us,
                std::int64_t work_limit);

  /// Elementary steps done so far, over all searches.
  std::int64_t work() const { return work_; }

 private:
  /// Going from one hull point of a group to the next.
  struct Increment {
    double size = 0, value = 0;
    double copies = 0;
    bool of_current_group = false;
  };
  struct Level {
    int type = 0;
    std::int64_t time_us = 0, memory_bytes = 0, exchange_us = 0, value = 0;
    double best_value = 0;  // of one piece, steps spread over the pieces they need
    std::int64_t entry_most = 0;
    std::int64_t most = 0;
    bool starts_group = false;
    bool has_steps = false;
    int load_begin = 0, load_end = 0;      // increments by load
    int second_begin = 0, second_end = 0;  // increments by the second size
  };
  struct State {
    std::int64_t load_left, memory_left, left, taken, value;
  };

  void prepare(const Box& box, const PieceValues& values, std::int64_t load_limit_us);
  void make_levels(const Box& box, const PieceValues& values, std::int64_t load_limit_us);
  void make_hull(std::size_t begin, std::size_t end, bool second);
  void make_increments(bool second);
  double root_upper_value();
  double size_of(const Level& level, bool second) const;
  double upper_value(int begin, int end, double room, double left);
  double least_load(int begin, int end, double need, double left);
  bool choose_second(std::int64_t load_limit_us);
  std::int64_t steps_value(int type, std::int64_t pieces) const;
  void grow_max(std::size_t depth, State state);
  void grow_min(std::size_t depth, std::int64_t load, State state);
  std::int64_t most_pieces(const Level& level, State& state, std::int64_t exchange_limit_us) const;

  const Model& model_;
  std::vector<Level> levels_;
  std::vector<Increment> load_increments_, second_increments_, hull_, later_, merged_;
  PieceValues values_;
  std::int64_t load_limit_us_ = 0;
  std::int64_t memory_never_binds_us_ = -1;  // up to this load
  bool memory_binds_ = false;
  double per_us_ = 0, per_byte_ = 0;  // the second size of a piece

  std::vector<std::int32_t> pieces_;
  std::int64_t exchange_ = 0;  // of the pieces taken; beside State, which every step copies
  std::int64_t best_ = 0;
  std::int64_t work_ = 0, work_end_ = 0, work_after_found_ = 0;
  bool stopped_ = false;
  std::vector<Pattern>* found_ = nullptr;
};

}  // namespace zellige::own
