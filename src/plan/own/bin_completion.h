// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "plan/own/pattern_model.h"

namespace zellige::own {

/// Packs given pieces onto ranks within a load limit: rank by rank, each taking the largest piece left, patterns
/// enumerated with falling counts. Nodes are left when too little load, memory or value would be used for the rest to
/// fit. An upper-bound heuristic: nothing is claimed from its failures.
class BinCompletion {
 public:
  explicit BinCompletion(const Model& model) : model_(model) {}

  struct Task {
    TypeCounts pieces;  ///< [types] pieces to place
    TypeCounts most;    ///< [types] on one rank: the number of sequences that take the type
    int ranks = 1;
    std::int64_t load_limit_us = 0;
    /// [types] worth of a piece such that no pattern is worth more than 1; empty: unknown
    std::vector<double> worth;
  };
  enum class Outcome { packed, none, out_of_work };
  Outcome pack(const Task& task, std::int64_t work_limit);

  /// After packed: [ranks of the task].
  const std::vector<Pattern>& patterns() const { return patterns_; }
  std::int64_t work() const { return work_; }

 private:
  struct Piece {
    int type;
    std::int64_t time_us, memory_bytes, exchange_us, most, left;
    double worth;
  };
  bool place_rank(int ranks_left);
  /// Of the pieces chosen for the rank under way.
  struct Sums {
    std::int64_t load = 0, memory = 0, exchange = 0;
    double worth = 0;
  };
  bool choose(std::size_t index, int ranks_left, const Sums& sums, bool forced);
  std::uint64_t state_hash(int ranks_left) const;

  const Model& model_;
  std::vector<Piece> pieces_;
  std::vector<std::int64_t> chosen_;
  std::vector<Pattern> patterns_;
  std::unordered_set<std::uint64_t> failed_;
  std::int64_t load_limit_us_ = 0;
  std::int64_t load_spare_ = 0;    // limit x ranks left - pieces left
  std::int64_t memory_spare_ = 0;  // cap x ranks left - pieces left
  double worth_spare_ = 0;         // ranks left - worth of pieces left
  bool has_worth_ = false;
  std::int64_t work_ = 0, work_end_ = 0;
  bool stopped_ = false;
};

/// List scheduling: dearest type first, each piece on the least loaded rank that may take it. With a load limit far
/// above what is needed it finds a packing whenever memory does not bind.
/// @return  whether every piece found a rank
bool list_schedule(const Model& model, const TypeCounts& counts, Packing& packing);

/// The same for what is still missing of `packing.counts` on ranks that hold something already.
bool schedule_missing(const Model& model, Packing& packing);

}  // namespace zellige::own
