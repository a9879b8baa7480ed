// SPDX-License-Identifier: Apache-2.0
#include "plan/own_anchor.h"

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
      costs.options.push_back({option.degree, option.time_us, option.memory_bytes});
    }
    result.groups.push_back(std::move(costs));
  }
  return result;
}

CountSolution counted(const Problem& problem, const own::AnchorSolution& solution) {
  CountSolution result(problem);
  const own::Model& model = solution.model;
  for (int t = 0; t < model.num_types(); ++t) {
    const int group = model.source[model.group_of(t)];
    const int option = model.types[t].option;
    result.z[group][option] = solution.packing.counts[t];
    for (int r = 0; r < problem.ranks; ++r) {
      result.x[group][option][r] = solution.packing.patterns[r].pieces[t];
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

}  // namespace zellige
