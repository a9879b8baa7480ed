// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <vector>

#include "plan/own/bin_completion.h"
#include "plan/own/pattern_lp.h"
#include "plan/own/proof.h"

namespace zellige::own {

inline constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

/// How much a search may do. Work is counted in elementary steps, so that results repeat; `is_over` is a safety net.
struct Effort {
  std::int64_t work = 0;          ///< steps left
  std::function<bool()> is_over;  ///< deadline or cancellation; may be empty
  std::int64_t used = 0;
};

/// Best-first branch and bound on one of the two objectives of Eq. 7: the largest load, or the split count at loads
/// <= a limit. Every bound of a node is proved by integer multipliers, its own or an ancestor's.
class BranchAndBound {
 public:
  enum class Objective { load, splits };
  BranchAndBound(const Model& model, PatternSearch& search, PatternLp& lp, BinCompletion& completion);

  /// Sets what is looked for.
  /// @param load_limit_us  splits: the limit; load: no placement above it is wanted
  /// @param bound          proved already by `prover`; 0: nothing
  /// @param best           the best placement known; may be none
  void start(Objective objective, std::int64_t load_limit_us, std::int64_t bound, std::optional<Packing> best,
             const Multipliers* prover);

  /// Searches until the bound meets the best, or is within `gap` of it, or the effort is spent.
  void run(Effort& effort, double gap);

  std::int64_t bound() const { return bound_; }  ///< proved; kNoLimit: nothing keeps the limits
  bool has_best() const { return best_.has_value(); }
  const Packing& best() const { return *best_; }
  std::int64_t best_value() const { return best_ ? value_of(*best_) : kNoLimit; }
  /// Every placement seen goes here.
  std::function<void(const Packing&)> on_packing;
  /// The proof of bound().
  Proof proof() const;
  std::int64_t num_nodes() const { return static_cast<std::int64_t>(nodes_.size()); }
  std::int64_t num_stuck() const { return num_stuck_; }

 private:
  struct Node {
    Question question;
    int parent = -1;
    int depth = 0;
    std::int64_t bound = 0;
    int prover = -1;          // node whose multipliers prove the bound; -1: known from outside
    Multipliers multipliers;  // own
    bool is_leaf = true;
    ProofNode::Kind kind = ProofNode::Kind::leaf;
    int type = 0;
    std::int32_t at_least = 1;
    std::int64_t limit = 0;
    int below = -1, above = -1;
    std::vector<double> counts;
    std::vector<PatternLp::Share> shares;
    std::vector<Pattern> share_patterns;
  };
  std::int64_t value_of(const Packing& packing) const;
  void take(const Packing& packing);
  std::int64_t spent() const;
  bool is_spent() const { return spent() > work_end_ || (is_over_ && is_over_()); }
  PatternLp::Answer ask(const Node& node, std::int64_t bound);
  bool raise_bound(int index);
  void evaluate(int index);
  void round_counts(const Node& node);
  void try_counts(const Node& node, const TypeCounts& counts, bool thorough);
  std::optional<std::int64_t> ask_fixed(const Node& node, const TypeCounts& counts);
  void try_patterns(const Node& node, const TypeCounts& counts);
  bool pack_rest(const TypeCounts& counts, const std::vector<Pattern>& fixed, std::int64_t load_limit_us);
  bool pack_at(const TypeCounts& counts, std::int64_t load_limit_us, std::int64_t work_limit);
  bool branch(int index);
  bool branch_on_tail(int index);
  bool branch_on_holders(int index);
  void divide(int index, ProofNode::Kind kind, int type, std::int32_t at_least, std::int64_t limit);
  void update_bound();
  std::int64_t goal() const { return best_value(); }

  const Model& model_;
  PatternSearch& search_;
  PatternLp& lp_;
  BinCompletion& completion_;
  Objective objective_ = Objective::load;
  std::int64_t load_limit_us_ = kNoLimit;
  std::int64_t bound_ = 0;
  std::int64_t stuck_bound_ = kNoLimit;
  std::int64_t num_stuck_ = 0;
  std::int64_t other_work_ = 0;
  std::int64_t work_end_ = kNoLimit;
  std::function<bool()> is_over_;
  std::optional<Packing> best_;
  std::vector<Node> nodes_;
  struct Order {
    std::int64_t bound;
    int depth, index;
    bool operator<(const Order& other) const {
      if (bound != other.bound) return bound > other.bound;
      if (depth != other.depth) return depth < other.depth;
      return index < other.index;
    }
  };
  std::priority_queue<Order> open_;
  std::set<TypeCounts> tried_, tried_patterns_;
};

}  // namespace zellige::own
