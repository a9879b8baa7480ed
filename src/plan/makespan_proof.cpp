// SPDX-License-Identifier: Apache-2.0
#include "plan/makespan_proof.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/settings.h"

namespace zellige {
namespace {

/// Groups of which a rank may hold more pieces than this within the limit are sand.
constexpr std::int64_t kMostCounted = 24;
/// Bisection ends when the open interval is this part of the bound; with branches five times that.
constexpr double kFine = 2e-5;
constexpr int kMostNodes = 400;
constexpr int kDeepest = 60;
/// With branches a limit may take one in so many of the steps that are left.
constexpr std::int64_t kShareOfALimit = 4;

ProofInstance instance_of(const Problem& whole) {
  ProofInstance instance{whole.ranks, whole.memory_cap_bytes, {}};
  for (const Group& group : whole.groups) {
    std::vector<ProofInstance::Option> options;
    for (const Option& option : group.options) {
      options.push_back({option.config, option.degree, option.time_us, option.memory_bytes, option.exchange_us});
    }
    instance.groups.push_back({group.count(), needed_options(options, whole.memory_cap_bytes)});
  }
  return instance;
}

/// Groups come dearest first.
std::size_t groups_to_count(const ProofInstance& instance, std::int64_t about_us) {
  std::size_t counted = 0;
  for (const auto& group : instance.groups) {
    if (group.options.empty() || group.options.front().time_us * kMostCounted < about_us) break;
    ++counted;
  }
  return counted;
}

}  // namespace

MakespanProver::MakespanProver(const Problem& whole, std::int64_t about_us, const Deadline& deadline)
    : whole_(whole),
      deadline_(deadline),
      instance_(instance_of(whole)),
      counted_(groups_to_count(instance_, about_us)),
      lp_(instance_, counted_) {}

bool MakespanProver::prove(std::int64_t bound_us, std::int64_t work) {
  return bound_us <= bound_us_ || refute(bound_us - 1, 1, work);
}

void MakespanProver::raise(std::int64_t least_us, std::int64_t enough_us, std::int64_t work) {
  const std::int64_t end = this->work() + work;
  const auto left = [&] { return end - this->work(); };
  const auto proved = [&] { return std::max(least_us, bound_us_); };
  const auto is_done = [&] { return proved() >= enough_us || left() <= 0 || deadline_.is_over(); };
  const auto is_fine = [&](std::int64_t open_us, double part) {
    return open_us - proved() <= static_cast<std::int64_t>(part * static_cast<double>(open_us));
  };
  std::int64_t open = fits_us_ > 0 ? std::min(enough_us, fits_us_) : enough_us;
  while (!is_done() && !is_fine(open, kFine)) {
    const std::int64_t limit = proved() + (open - proved()) / 2;
    if (!refute(limit, 1, left())) open = limit;
  }
  std::int64_t limit = enough_us - 1;
  while (!is_done() && !refute(limit, kMostNodes, std::max<std::int64_t>(1, left() / kShareOfALimit))) {
    if (is_fine(limit, 5 * kFine)) break;
    limit = proved() + (limit - proved()) / 2;
  }
}

AnchorProof MakespanProver::proof(const Profile& profile, Menu menu) const {
  AnchorProof proof;
  proof.menu = menu;
  for (const Group& group : whole_.groups) proof.buckets.push_back(profile.catalog.buckets[group.bucket].name);
  proof.counted = static_cast<int>(counted_);
  proof.load = proved_;
  return proof;
}

/// Tries to refute a limit with a tree of so many nodes.
bool MakespanProver::refute(std::int64_t limit_us, int nodes, std::int64_t work) {
  if (limit_us < bound_us_) return true;
  if (limit_us < 1 || instance_.groups.empty()) return false;
  tree_.clear();
  nodes_left_ = nodes;
  if (!refute_box(whole_tails(instance_), limit_us, 0, lp_.work() + work)) return false;
  std::int64_t verify = std::max<std::int64_t>(work, 1);
  const bool holds = why_not_proved(instance_, tree_, limit_us, {}, verify, counted_).empty();
  verify_work_ += std::max<std::int64_t>(work, 1) - std::max<std::int64_t>(0, verify);
  if (!holds) return false;
  bound_us_ = limit_us + 1;
  proved_ = std::move(tree_);
  return true;
}

/// Appends to tree_ a proof that the box has no placement within the limit.
bool MakespanProver::refute_box(const TailBox& box, std::int64_t limit_us, int depth, std::int64_t end) {
  if (nodes_left_-- <= 0 || deadline_.is_over()) return false;
  const WholeLp::Answer answer = lp_.ask(box, limit_us, end - lp_.work());
  if (answer == WholeLp::Answer::refuted) {
    tree_.push_back(lp_.leaf());
    return true;
  }
  if (answer == WholeLp::Answer::unclear) return false;
  if (depth == 0) fits_us_ = fits_us_ == 0 ? limit_us : std::min(fits_us_, limit_us);
  if (nodes_left_ < 2 || depth >= kDeepest) return false;
  // The count that is furthest from a whole number, among the counted groups.
  const auto tails = lp_.tails();
  std::size_t group = 0, option = 0;
  double furthest = 1e-4;
  for (std::size_t g = 0; g < counted_; ++g) {
    for (std::size_t j = 1; j < tails[g].size(); ++j) {
      const double part = std::fabs(tails[g][j] - std::round(tails[g][j]));
      if (part > furthest) furthest = part, group = g, option = j;
    }
  }
  if (option == 0) return false;
  const auto at_most = static_cast<std::int64_t>(std::floor(tails[group][option]));
  AnchorProof::Node node;
  node.kind = AnchorProof::Node::Kind::sequences;
  node.option = {static_cast<int>(group), instance_.groups[group].options[option].config};
  node.at_most = at_most;
  tree_.push_back(std::move(node));
  TailBox below = box, above = box;
  for (std::size_t j = option; j < box.most[group].size(); ++j) {
    below.most[group][j] = std::min(below.most[group][j], at_most);
  }
  for (std::size_t j = 0; j <= option; ++j) above.least[group][j] = std::max(above.least[group][j], at_most + 1);
  return refute_box(below, limit_us, depth + 1, end) && refute_box(above, limit_us, depth + 1, end);
}

std::int64_t bound_enough_for(std::int64_t makespan_us) {
  auto bound = static_cast<std::int64_t>(static_cast<double>(makespan_us) / (1 + kRepairTolerance)) - 2;
  while (relaxed_load(bound, kRepairTolerance) < makespan_us) ++bound;
  return bound;
}

}  // namespace zellige
