// SPDX-License-Identifier: Apache-2.0
#include "plan/own/branch_and_bound.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace zellige::own {
namespace {

/// Work limits of single steps, so that none of them eats a whole solve.
constexpr std::int64_t kLpWork = 400'000;
constexpr std::int64_t kLeastLpWork = 20'000;
constexpr std::int64_t kLoadWork = 40'000;
constexpr double kFraction = 1e-6;

}  // namespace

BranchAndBound::BranchAndBound(const Model& model, PatternSearch& search, PatternLp& lp, BinCompletion& completion)
    : model_(model), search_(search), lp_(lp), completion_(completion) {}

std::int64_t BranchAndBound::value_of(const Packing& packing) const {
  return objective_ == Objective::load ? packing.largest_load() : num_split(model_, packing.counts);
}

std::int64_t BranchAndBound::spent() const { return search_.work() + lp_.work() + completion_.work() + other_work_; }

void BranchAndBound::take(const Packing& packing) {
  if (on_packing) on_packing(packing);
  if (objective_ == Objective::splits && packing.largest_load() > load_limit_us_) return;
  if (best_ && value_of(packing) >= value_of(*best_)) return;
  best_ = packing;
}

void BranchAndBound::start(Objective objective, std::int64_t load_limit_us, std::int64_t bound,
                           std::optional<Packing> best, const Multipliers* prover) {
  objective_ = objective;
  load_limit_us_ = load_limit_us;
  bound_ = bound;
  stuck_bound_ = kNoLimit;
  num_stuck_ = 0;
  best_.reset();
  nodes_.clear();
  open_ = {};
  tried_.clear();
  tried_patterns_.clear();
  if (best) take(*best);
  Node root;
  root.question.box = whole_box(model_);
  root.bound = bound;
  if (prover != nullptr) {
    root.prover = 0;
    root.multipliers = *prover;
  }
  nodes_.push_back(std::move(root));
}

PatternLp::Answer BranchAndBound::ask(const Node& node, std::int64_t bound) {
  const std::int64_t work = std::clamp<std::int64_t>(work_end_ - spent(), kLeastLpWork, kLpWork);
  if (objective_ == Objective::load) return lp_.ask(node.question, bound, work);
  Question question = node.question;
  question.splits_most = bound;
  return lp_.ask(question, load_limit_us_, work);
}

/// After a refutation: takes the multipliers, and the largest bound that they prove.
bool BranchAndBound::raise_bound(int index) {
  Node& node = nodes_[index];
  const Multipliers& multipliers = lp_.multipliers();
  std::int64_t bound;
  const Wide128 total = total_value(model_, node.question, multipliers);
  if (objective_ == Objective::load) {
    // Some rank is worth the mean or more, so its load is at least the least load of such a pattern.
    const auto need = static_cast<std::int64_t>((total + model_.ranks - 1) / model_.ranks);
    const PieceValues values = piece_values(model_, node.question, multipliers);
    const std::int64_t below = best_ ? goal() : load_limit_us_;
    const PatternSearch::Best least = search_.min_load(node.question.box, values, need, below, kLoadWork);
    bound = least.is_exact ? least.value : node.bound + 1;
    // Out of work: ask for single limits instead, the one that settles the node first.
    for (std::int64_t share = 1; !least.is_exact && share <= 8; share *= 2) {
      const std::int64_t limit = node.bound + (below - 1 - node.bound) / share;
      if (limit <= bound) break;
      const PatternSearch::Best most =
          search_.max_value(node.question.box, values, limit, need - 1, kLoadWork, 0, nullptr);
      if (most.is_exact && most.value < need) {
        bound = limit + 1;
        break;
      }
    }
    if (!best_ && bound >= below) bound = kNoLimit;
  } else {
    if (multipliers.split == 0) {
      bound = kNoLimit;
    } else {
      const Wide128 spare = total - static_cast<Wide128>(lp_.refuting_value()) * model_.ranks;
      const Wide128 each = static_cast<Wide128>(multipliers.split) * model_.unit;
      bound = spare <= 0 ? 0 : static_cast<std::int64_t>((spare + each - 1) / each);
    }
  }
  if (bound <= node.bound) return false;
  node.bound = bound;
  node.prover = index;
  node.multipliers = multipliers;
  return true;
}

/// Raises the node's bound until the linear program fits, or the node is not needed any more, or it goes too slowly.
void BranchAndBound::evaluate(int index) {
  const auto keep_solution = [&] {
    Node& node = nodes_[index];
    node.counts = lp_.counts();
    node.shares = lp_.shares();
    node.share_patterns.clear();
    for (const PatternLp::Share& share : node.shares) node.share_patterns.push_back(*share.pattern);
  };
  const auto raise = [&] {
    if (raise_bound(index)) return true;
    Node& node = nodes_[index];  // the multipliers prove no more than one step
    node.multipliers = lp_.multipliers();
    node.prover = index;
    ++node.bound;
    return false;
  };
  constexpr int kRounds = 8;
  for (int round = 0; round < kRounds && nodes_[index].bound < goal(); ++round) {
    const PatternLp::Answer answer = ask(nodes_[index], nodes_[index].bound);
    keep_solution();
    if (answer != PatternLp::Answer::refuted || !raise() || is_spent()) return;
    if (round == 0 || !best_ || nodes_[index].bound >= goal() - 1) continue;
    // A step or two did not settle it: is the node needed at all? Else halve what is between.
    const std::int64_t share = std::int64_t{1} << (round - 1);
    const std::int64_t probe = nodes_[index].bound + (goal() - 1 - nodes_[index].bound) / share;
    if (probe <= nodes_[index].bound || ask(nodes_[index], probe) != PatternLp::Answer::refuted) continue;
    nodes_[index].bound = probe;
    keep_solution();
    raise();
  }
}

void BranchAndBound::divide(int index, ProofNode::Kind kind, int type, std::int32_t at_least, std::int64_t limit) {
  nodes_[index].is_leaf = false;
  nodes_[index].kind = kind;
  nodes_[index].type = type;
  nodes_[index].at_least = at_least;
  nodes_[index].limit = limit;
  for (const bool above : {false, true}) {
    Node child;
    const Node& parent = nodes_[index];
    child.question = parent.question;
    child.parent = index;
    child.depth = parent.depth + 1;
    child.bound = parent.bound;
    child.prover = parent.prover;
    bool is_empty = false;
    if (kind == ProofNode::Kind::tail) {
      if (above) {
        child.question.box.least[type] = std::max(child.question.box.least[type], limit + 1);
      } else {
        child.question.box.most[type] = std::min(child.question.box.most[type], limit);
      }
      is_empty = !tighten(model_, child.question.box);
    } else {
      auto& holders = child.question.holders;
      auto it = std::find_if(holders.begin(), holders.end(), [&](const HolderLimit& known) {
        return known.type == type && known.at_least == at_least;
      });
      if (it == holders.end()) it = holders.insert(holders.end(), {type, at_least, 0, model_.ranks});
      if (above) {
        it->least = std::max(it->least, limit + 1);
      } else {
        it->most = std::min(it->most, limit);
      }
      is_empty = it->least > it->most;
    }
    const int child_index = static_cast<int>(nodes_.size());
    (above ? nodes_[index].above : nodes_[index].below) = child_index;
    nodes_.push_back(std::move(child));
    if (is_empty) {
      nodes_.back().bound = kNoLimit;  // nothing is in it: no proof needed beyond the limits themselves
      nodes_.back().prover = child_index;
      nodes_.back().multipliers = {std::vector<std::int64_t>(model_.num_groups(), 0),
                                   std::vector<std::int64_t>(model_.num_types(), 0),
                                   std::vector<std::int64_t>(nodes_.back().question.holders.size(), 0), 0};
      continue;
    }
    evaluate(child_index);
    if (nodes_[child_index].bound < goal()) {
      round_counts(nodes_[child_index]);
      open_.push({nodes_[child_index].bound, nodes_[child_index].depth, child_index});
    }
  }
}

bool BranchAndBound::branch_on_tail(int index) {
  const Node& node = nodes_[index];
  int best_type = -1;
  double best_score = kFraction;
  std::int64_t best_limit = 0;
  for (int g = 0; g < model_.num_groups(); ++g) {
    double tail = 0;
    for (int t = model_.first[g + 1] - 1; t > model_.first[g]; --t) {
      tail += node.counts[t];
      const double below = std::floor(tail);
      const double fraction = std::min(tail - below, below + 1 - tail);
      const double score = fraction;
      if (score > best_score && node.question.box.least[t] < node.question.box.most[t]) {
        best_score = score, best_type = t, best_limit = static_cast<std::int64_t>(below);
      }
    }
  }
  if (best_type < 0) {
    // Whole counts that cannot be packed (or were not): part with them, one limit at a time.
    for (int g = 0; g < model_.num_groups() && best_type < 0; ++g) {
      double tail = 0;
      for (int t = model_.first[g + 1] - 1; t > model_.first[g]; --t) {
        tail += node.counts[t];
        const auto whole = static_cast<std::int64_t>(std::llround(tail));
        if (node.question.box.least[t] == node.question.box.most[t]) continue;
        best_type = t;
        best_limit = node.question.box.most[t] > whole ? whole : whole - 1;
        break;
      }
    }
  }
  if (best_type < 0) return false;
  best_limit = std::clamp(best_limit, node.question.box.least[best_type], node.question.box.most[best_type] - 1);
  divide(index, ProofNode::Kind::tail, best_type, 1, best_limit);
  return true;
}

bool BranchAndBound::branch_on_holders(int index) {
  const Node& node = nodes_[index];
  int best_type = -1;
  std::int32_t best_at_least = 1;
  double best_score = 1e-4;
  std::int64_t best_limit = 0;
  for (int t = 0; t < model_.num_types(); ++t) {
    std::int32_t most = 0;
    for (const Pattern& pattern : node.share_patterns) most = std::max(most, pattern.pieces[t]);
    for (std::int32_t at_least = 1; at_least <= most; ++at_least) {
      double ranks = 0;
      for (std::size_t i = 0; i < node.shares.size(); ++i) {
        if (node.share_patterns[i].pieces[t] >= at_least) ranks += node.shares[i].ranks;
      }
      const double below = std::floor(ranks);
      const double fraction = std::min(ranks - below, below + 1 - ranks);
      if (fraction > best_score) {
        best_score = fraction, best_type = t, best_at_least = at_least, best_limit = static_cast<std::int64_t>(below);
      }
    }
  }
  if (best_type < 0) return false;
  divide(index, ProofNode::Kind::holders, best_type, best_at_least, best_limit);
  return true;
}

bool BranchAndBound::branch(int index) {
  if (branch_on_tail(index)) return true;
  TypeCounts counts(model_.num_types(), 0);
  for (int t = 0; t < model_.num_types(); ++t) {
    const bool is_last = t + 1 == model_.first[model_.group_of(t) + 1];
    counts[t] = nodes_[index].question.box.least[t] - (is_last ? 0 : nodes_[index].question.box.least[t + 1]);
  }
  if (nodes_[index].question.holders.empty()) {
    try_counts(nodes_[index], counts, true);
    if (nodes_[index].bound >= goal()) return true;
  }
  return branch_on_holders(index);
}

void BranchAndBound::update_bound() {
  std::int64_t least = std::min(stuck_bound_, goal());
  if (!open_.empty()) least = std::min(least, open_.top().bound);
  bound_ = std::max(bound_, least);
}

void BranchAndBound::run(Effort& effort, double gap) {
  const std::int64_t from = spent();
  work_end_ = from + effort.work;
  is_over_ = effort.is_over;
  if (open_.empty() && nodes_.size() == 1) {
    evaluate(0);
    if (nodes_[0].bound < goal()) {
      round_counts(nodes_[0]);
      open_.push({nodes_[0].bound, 0, 0});
    }
  }
  update_bound();
  while (!open_.empty()) {
    update_bound();
    const std::int64_t least = open_.top().bound;
    if (least >= goal()) break;
    if (best_ && static_cast<double>(goal() - std::min(least, stuck_bound_)) <= gap * static_cast<double>(goal()) &&
        gap > 0) {
      break;
    }
    if (is_spent()) break;
    const int index = open_.top().index;
    open_.pop();
    if (!branch(index)) {
      stuck_bound_ = std::min(stuck_bound_, nodes_[index].bound);
      ++num_stuck_;
    }
    nodes_[index].share_patterns = {};
  }
  update_bound();
  const std::int64_t used = spent() - from;
  effort.work -= used;
  effort.used += used;
}

Proof BranchAndBound::proof() const {
  Proof proof;
  const auto emit = [&](auto& self, int index) -> int {
    const Node& node = nodes_[index];
    const int place = static_cast<int>(proof.size());
    proof.emplace_back();
    if (node.prover >= 0 && (node.bound >= bound_ || node.is_leaf)) {
      const Node& prover = nodes_[node.prover];
      proof[place].multipliers = prover.multipliers;
      proof[place].holders = prover.question.holders;
      return place;
    }
    if (node.is_leaf) return place;
    proof[place].kind = node.kind;
    proof[place].type = node.type;
    proof[place].at_least = node.at_least;
    proof[place].limit = node.limit;
    const int below = self(self, node.below);
    const int above = self(self, node.above);
    proof[place].below = below;
    proof[place].above = above;
    return place;
  };
  emit(emit, 0);
  return proof;
}

}  // namespace zellige::own
