// SPDX-License-Identifier: Apache-2.0
#include "plan/own_anchor.h"

#include <algorithm>
#include <utility>

#include "placement/anchor_certificate.h"
#include "plan/bounds.h"
#include "plan/settings.h"

namespace zellige {
namespace {

class ProofWriter {
 public:
  ProofWriter(const Problem& problem, const own::Model& model) : problem_(problem), model_(model) {}

  /// In preorder, as own proofs are already.
  std::vector<AnchorProof::Node> written(const own::Proof& proof) const {
    std::vector<AnchorProof::Node> tree;
    for (const own::ProofNode& node : proof) tree.push_back(written(node));
    return tree;
  }

 private:
  AnchorProof::OptionRef option(int type) const {
    const int group = model_.source[model_.group_of(type)];
    return {group, problem_.groups[group].options[model_.types[type].option].config};
  }

  AnchorProof::Node written(const own::ProofNode& node) const {
    using Kind = AnchorProof::Node::Kind;
    AnchorProof::Node result;
    if (node.kind != own::ProofNode::Kind::leaf) {
      result.kind = node.kind == own::ProofNode::Kind::tail ? Kind::sequences : Kind::holders;
      result.option = option(node.type);
      result.pieces = node.at_least;
      result.at_most = node.limit;
      return result;
    }
    result.sequence_values.assign(problem_.groups.size(), 0);
    for (int g = 0; g < static_cast<int>(node.multipliers.group.size()); ++g) {
      result.sequence_values[model_.source[g]] = node.multipliers.group[g];
    }
    for (int t = 0; t < static_cast<int>(node.multipliers.tail.size()); ++t) {
      if (node.multipliers.tail[t] != 0) result.option_values.push_back({option(t), node.multipliers.tail[t]});
    }
    for (std::size_t h = 0; h < node.multipliers.holders.size(); ++h) {
      if (node.multipliers.holders[h] == 0) continue;
      result.holder_values.push_back(
          {option(node.holders[h].type), node.holders[h].at_least, node.multipliers.holders[h]});
    }
    result.split_value = node.multipliers.split;
    return result;
  }

  const Problem& problem_;
  const own::Model& model_;
};

}  // namespace

own::AnchorProblem own_problem(const Problem& problem) {
  own::AnchorProblem result;
  result.ranks = problem.ranks;
  result.memory_cap_bytes = problem.memory_cap_bytes;
  for (const Group& group : problem.groups) {
    own::GroupCosts costs;
    costs.count = group.count();
    for (const Option& option : group.options) {
      costs.options.push_back({option.degree, option.time_us, option.memory_bytes, option.exchange_us});
    }
    result.groups.push_back(std::move(costs));
  }
  return result;
}

CountSolution counted(const Problem& problem, const own::Model& model, const own::Packing& packing) {
  CountSolution result(problem);
  for (int t = 0; t < model.num_types(); ++t) {
    const int group = model.source[model.group_of(t)];
    const int option = model.types[t].option;
    result.z[group][option] = packing.counts[t];
    for (int r = 0; r < problem.ranks; ++r) {
      result.x[group][option][r] = packing.patterns[r].pieces[t];
    }
  }
  return result;
}

AnchorProof anchor_proof(const Problem& problem, const own::AnchorSolution& solution, const Profile& profile,
                         Menu menu) {
  const ProofWriter writer(problem, solution.model);
  AnchorProof proof;
  proof.menu = menu;
  for (const Group& group : problem.groups) proof.buckets.push_back(profile.catalog.buckets[group.bucket].name);
  proof.load = writer.written(solution.load_proof);
  proof.split_limit = {solution.load_limit_us};
  proof.split = writer.written(solution.split_proof);
  return proof;
}

AnchorResult place_anchors_own(const Problem& problem, const Profile& profile, const PlanOptions& options,
                               const Deadline& deadline) {
  AnchorResult result;
  if (deadline.cancelled()) {
    result.status = AnchorResult::Status::timeout;
    result.reason = "cancelled before a placement was found";
    return result;
  }
  own::SolverLimits limits = own::default_limits(problem.ranks);
  limits.epsilon = options.epsilon;
  limits.is_over = [&] { return deadline.is_over(); };
  own::AnchorSolution solution = own::solve_anchors(own_problem(problem), limits);
  if (solution.status == own::SolverStatus::infeasible) result.status = AnchorResult::Status::infeasible;
  if (solution.status != own::SolverStatus::solved) return result;

  // Only what the proofs prove is claimed.
  ProofInstance instance{problem.ranks, problem.memory_cap_bytes, {}};
  for (const Group& group : problem.groups) {
    std::vector<ProofInstance::Option> choices;
    for (const Option& option : group.options) {
      choices.push_back({option.config, option.degree, option.time_us, option.memory_bytes, option.exchange_us});
    }
    instance.groups.push_back({group.count(), needed_options(choices, problem.memory_cap_bytes)});
  }
  AnchorProof proof = anchor_proof(problem, solution, profile, options.menu);
  std::int64_t work = verify_work(problem.ranks);
  bool is_shown = !problem.groups.empty();
  if (!problem.groups.empty() && !why_not_proved(instance, proof.load, solution.load_bound_us - 1, {}, work).empty()) {
    const own::SimpleBound simple = own::simple_bound(solution.model);
    solution.load_bound_us = simple.bound_us;
    solution.load_proof = {own::ProofNode{}};
    solution.load_proof.front().multipliers = simple.multipliers;
    proof = anchor_proof(problem, solution, profile, options.menu);
    // The limit of round 2 follows from the bound; a higher one is no limit that was asked for.
    solution.limit_is_from_bound = false;
    work = verify_work(problem.ranks);
    // Thousands of anchors on a rank: the checker's knapsack is too large even for the area's multipliers. Then the
    // plan carries no proof, and the bound is the one that needs none.
    is_shown = why_not_proved(instance, proof.load, solution.load_bound_us - 1, {}, work).empty();
    if (!is_shown) {
      solution.load_bound_us = load_lower_bound(problem, solution.least_load_us);
      const std::int64_t limit = relaxed_load(solution.least_load_us, options.epsilon);
      solution.split_bound = std::min(solution.split_count, split_lower_bound(problem, limit));
    }
  }
  work = verify_work(problem.ranks);
  if (is_shown && solution.split_bound > 0 &&
      !why_not_proved(instance, proof.split, solution.load_limit_us, solution.split_bound - 1, work).empty()) {
    solution.split_bound = 0;
    proof.split.clear();
  }

  Certificate& certificate = result.certificate;
  const bool is_balanced = solution.load_bound_us == solution.least_load_us;
  certificate.anchor_load = Microseconds{solution.least_load_us};
  certificate.anchor_bound = Microseconds{solution.load_bound_us};
  certificate.anchor_status = is_balanced ? SolveStatus::optimal : SolveStatus::feasible;
  certificate.split_count = static_cast<int>(solution.split_count);
  certificate.split_bound = static_cast<int>(solution.split_bound);
  const bool is_fewest = solution.limit_is_from_bound && solution.split_bound == solution.split_count;
  certificate.split_status = is_fewest ? SolveStatus::optimal : SolveStatus::feasible;
  if (is_shown) certificate.duals = std::move(proof);
  result.status = AnchorResult::Status::solved;
  if (problem.groups.empty()) {
    result.solution = CountSolution(problem);
    return result;
  }
  result.solution = canonical(problem, counted(problem, solution.model, solution.packing));
  if (solution.packing.largest_load() > solution.least_load_us) {
    result.balanced = counted(problem, solution.model, solution.balanced);
  }
  return result;
}

void prove_bounds(Certificate& certificate, const Problem& problem, const Profile& profile, const PlanOptions& options,
                  const Deadline& deadline) {
  if (!certificate.anchor_bound || !certificate.split_bound || !certificate.anchor_load) return;
  AnchorResult own = place_anchors_own(problem, profile, options, deadline);
  if (own.status != AnchorResult::Status::solved || !own.certificate.duals) return;
  // A proof refutes smaller limits, too. The limit of round 2 is the one that the certificate's bounds are about.
  const bool is_from_bound = certificate.split_status == SolveStatus::optimal;
  const Microseconds limit = {
      relaxed_load((is_from_bound ? *certificate.anchor_bound : *certificate.anchor_load).value, options.epsilon)};
  if (own.certificate.anchor_bound < certificate.anchor_bound) return;
  if (own.certificate.split_bound < certificate.split_bound) return;
  if (*certificate.split_bound > 0 && own.certificate.duals->split_limit < limit) return;
  certificate.duals = std::move(own.certificate.duals);
  certificate.duals->split_limit = limit;
  if (*certificate.split_bound == 0) certificate.duals->split.clear();
}

}  // namespace zellige
