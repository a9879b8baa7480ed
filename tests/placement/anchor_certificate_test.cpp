// SPDX-License-Identifier: Apache-2.0
#include "placement/anchor_certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "base/random.h"
#include "placement/anchor_proof_json.h"
#include "placement/proof_instances.h"
#include "zellige/error.h"

namespace zellige {
namespace {

using Node = AnchorProof::Node;
using ::testing::HasSubstr;

using proof_instances::below;
using proof_instances::random_instance;
using proof_instances::some_placement;

/// Any values at all: a leaf, or a branch of two leaves.
std::vector<Node> random_tree(RandomEngine& engine, const ProofInstance& instance, bool splits) {
  const auto random_option = [&]() -> AnchorProof::OptionRef {
    const int bucket = static_cast<int>(below(engine, static_cast<std::int64_t>(instance.groups.size())));
    const auto& options = instance.groups[bucket].options;
    return {bucket, options[below(engine, static_cast<std::int64_t>(options.size()))].config};
  };
  const bool has_branch = below(engine, 2) == 0;
  Node branch;
  branch.kind = below(engine, 2) == 0 ? Node::Kind::sequences : Node::Kind::holders;
  branch.option = random_option();
  branch.pieces = 1 + static_cast<int>(below(engine, 2));
  branch.at_most = below(engine, 3);
  const auto leaf = [&] {
    Node node;
    for (const auto& group : instance.groups) {
      // Near the sequence's area, where proofs are.
      std::int64_t area = 1000;
      for (const auto& option : group.options) area = std::min(area, option.time_us * option.degree);
      node.sequence_values.push_back(std::max<std::int64_t>(0, area + below(engine, 9) - 4));
    }
    if (has_branch && branch.kind == Node::Kind::sequences) {
      node.option_values.push_back({branch.option, below(engine, 11) - 5});
    }
    if (has_branch && branch.kind == Node::Kind::holders) {
      node.holder_values.push_back({branch.option, branch.pieces, below(engine, 11) - 5});
    }
    if (splits) node.split_value = below(engine, 12);
    return node;
  };
  if (!has_branch) return {leaf()};
  return {branch, leaf(), leaf()};
}

TEST(AnchorCertificate, ProvesNothingThatAPlacementRefutes) {
  int proved = 0, refused = 0, with_branch = 0;
  for (std::uint64_t seed = 1; seed <= 6000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const ProofInstance instance = random_instance(engine);
    if (std::any_of(instance.groups.begin(), instance.groups.end(), [](const auto& g) { return g.options.empty(); })) {
      continue;
    }
    const bool splits = below(engine, 2) == 0;
    const std::int64_t splits_most = splits ? below(engine, 3) : 1000;
    const std::vector<Node> tree = random_tree(engine, instance, splits);
    // Just below the area bound most proofs are at the brink.
    std::int64_t area = 0;
    for (const auto& group : instance.groups) {
      std::int64_t least = 1000;
      for (const auto& option : group.options) least = std::min(least, option.time_us * option.degree);
      area += least * group.count;
    }
    const std::int64_t load_limit = std::max<std::int64_t>(0, area / instance.ranks - 3 + below(engine, 10));
    std::int64_t work = 1'000'000;
    const std::optional<std::int64_t> most = splits ? std::optional(splits_most) : std::nullopt;
    const bool claims = why_not_proved(instance, tree, load_limit, most, work).empty();
    if (claims) {
      EXPECT_FALSE(some_placement(instance, load_limit, splits_most));
      ++proved;
      with_branch += tree.size() > 1;
    } else {
      ++refused;
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(proved, 300);
  EXPECT_GT(with_branch, 50);
  EXPECT_GT(refused, 300);
}

/// Two ranks, three sequences of 10: somebody holds two of them.
struct ThreeOnTwo {
  ProofInstance instance{2, 100, {{3, {{{1, 1, 1}, 1, 10, 1}}}}};
  Node leaf = [] {
    Node node;
    node.sequence_values = {1};
    return node;
  }();
  std::string why(const std::vector<Node>& tree, std::int64_t load_limit) const {
    std::int64_t work = 1000;
    return why_not_proved(instance, tree, load_limit, {}, work);
  }
};

TEST(AnchorCertificate, UsesThatMeansAreReachedByWholePieces) {
  const ThreeOnTwo it;
  EXPECT_EQ(it.why({it.leaf}, 19), "");  // the area bound proves 15 only
  EXPECT_THAT(it.why({it.leaf}, 20), HasSubstr("worth more than the mean"));
}

TEST(AnchorCertificate, RefusesBrokenTrees) {
  const ThreeOnTwo it;
  EXPECT_THAT(it.why({}, 19), HasSubstr("ends before"));
  EXPECT_THAT(it.why({it.leaf, it.leaf}, 19), HasSubstr("of which the first 1"));
  Node branch;
  branch.kind = Node::Kind::sequences;
  branch.option = {0, {1, 1, 1}};
  branch.at_most = 1;
  EXPECT_THAT(it.why({branch, it.leaf}, 19), HasSubstr("ends before"));
  EXPECT_EQ(it.why({branch, it.leaf, it.leaf}, 19), "");
  branch.option.config = {2, 1, 1};
  EXPECT_THAT(it.why({branch, it.leaf, it.leaf}, 19), HasSubstr("no sequence needs"));
  Node many = it.leaf;
  many.sequence_values.push_back(1);
  EXPECT_THAT(it.why({many}, 19), HasSubstr("sequence_values"));
  Node nothing = it.leaf;
  nothing.sequence_values = {0};
  EXPECT_THAT(it.why({nothing}, 19), HasSubstr("worth nothing"));
  Node splits = it.leaf;
  splits.split_value = 1;
  EXPECT_THAT(it.why({splits}, 19), HasSubstr("split_value"));
  Node huge = it.leaf;
  huge.sequence_values = {std::int64_t{1} << 62};
  EXPECT_THAT(it.why({huge}, 19), HasSubstr("too large"));
}

TEST(AnchorCertificate, StopsWhenVerifyingTakesTooLong) {
  const ThreeOnTwo it;
  std::int64_t work = 0;
  EXPECT_THAT(why_not_proved(it.instance, {it.leaf}, 19, {}, work), HasSubstr("too long"));
}

TEST(AnchorCertificate, IsReadAsItWasWritten) {
  AnchorProof proof;
  proof.menu = Menu::all;
  proof.buckets = {"a", "b"};
  Node branch;
  branch.kind = Node::Kind::holders;
  branch.option = {1, {2, 1, 1}};
  branch.pieces = 3;
  branch.at_most = 4;
  Node leaf;
  leaf.sequence_values = {5, 6};
  leaf.option_values = {{{0, {1, 2, 1}}, -7}};
  leaf.holder_values = {{{1, {2, 1, 1}}, 3, 8}};
  Node other = branch;
  other.kind = Node::Kind::sequences;
  other.pieces = 1;
  proof.load = {branch, leaf, leaf};
  leaf.split_value = 9;
  proof.split = {other, leaf, leaf};
  proof.split_limit = {10};
  const std::string text = to_json(proof).dump();
  EXPECT_EQ(read_anchor_proof(JsonDocument::from_text(text, "x").root()), proof);
  const auto read = [](const std::string& json) { read_anchor_proof(JsonDocument::from_text(json, "x").root()); };
  std::string wrong = text;
  wrong.replace(wrong.find("\"at_most\""), 9, "\"at_mots\"");
  EXPECT_THROW(read(wrong), Error);
  wrong = text;
  wrong.replace(wrong.find("\"bucket\":1"), 10, "\"bucket\":2");
  EXPECT_THROW(read(wrong), Error);
  wrong = text;
  wrong.replace(wrong.find("\"all\""), 5, "\"odd\"");
  EXPECT_THROW(read(wrong), Error);
}

}  // namespace
}  // namespace zellige
