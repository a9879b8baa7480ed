// SPDX-License-Identifier: Apache-2.0
#include "placement/anchor_certificate.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/json.h"
#include "placement/pattern_doubt.h"
#include "placement/sand_doubt.h"

namespace zellige {
namespace {

using Node = AnchorProof::Node;

constexpr std::int64_t kMostUnit = std::int64_t{1} << 24;
constexpr Wide kMostValue = static_cast<Wide>(1) << 62;
constexpr std::int64_t kVerifyWork = 50'000'000;

/// What the branches above a leaf say.
struct Limits {
  struct Holders {
    int group, option, pieces;
    std::int64_t least, most;
  };
  // [group][option] sequences that take the option or a later one
  std::vector<std::vector<std::int64_t>> least, most;
  std::vector<Holders> holders;
};

/// The question of a leaf: may a rank hold pieces worth more than the mean?
PatternQuestion question_of(const ProofInstance& instance, std::int64_t load_limit_us, const Limits& limits,
                            const std::vector<std::vector<std::int64_t>>& piece_values,
                            const std::vector<AnchorProof::HolderValue>& steps, const std::vector<int>& step_options,
                            std::int64_t step_unit, std::int64_t mean) {
  PatternQuestion question{load_limit_us, instance.memory_cap_bytes, {}, mean};
  for (std::size_t g = 0; g < instance.groups.size(); ++g) {
    const auto& group = instance.groups[g];
    auto& kinds = question.groups.emplace_back();
    for (std::size_t j = 0; j < group.options.size(); ++j) {
      auto& kind = kinds.emplace_back();
      kind.time_us = group.options[j].time_us;
      kind.memory_bytes = group.options[j].memory_bytes;
      kind.exchange_us = group.options[j].exchange_us;
      kind.value = piece_values[g][j];
      kind.before_most = group.count - (j + 1 < group.options.size() ? limits.least[g][j + 1] : 0);
      kind.after_most = limits.most[g][j];
      for (std::size_t s = 0; s < steps.size(); ++s) {
        if (steps[s].option.bucket != static_cast<int>(g) || step_options[s] != static_cast<int>(j)) continue;
        kind.steps.emplace_back(steps[s].pieces, steps[s].value * step_unit);
      }
    }
  }
  return question;
}

class TreeCheck {
 public:
  TreeCheck(const ProofInstance& instance, const std::vector<Node>& tree, std::int64_t load_limit_us,
            std::optional<std::int64_t> splits_most, std::optional<std::size_t> counted, std::int64_t& work)
      : instance_(instance),
        tree_(tree),
        load_limit_us_(load_limit_us),
        splits_most_(splits_most),
        counted_(counted),
        work_(work) {
    for (const auto& group : instance.groups) {
      for (const auto& option : group.options) {
        unit_ = std::lcm(unit_, static_cast<std::int64_t>(option.degree));
        if (unit_ > kMostUnit) break;
      }
      if (unit_ > kMostUnit) break;
    }
    unit_ = std::min(unit_, kMostUnit);
  }

  std::string run() {
    Limits limits;
    for (const auto& group : instance_.groups) {
      limits.least.emplace_back(group.options.size(), 0);
      limits.most.emplace_back(group.options.size(), group.count);
      if (!group.options.empty()) limits.least.back()[0] = group.count;
    }
    std::string why = visit(limits, 0);
    if (why.empty() && next_ != tree_.size()) {
      why = "it has " + std::to_string(tree_.size()) + " nodes, of which the first " + std::to_string(next_) +
            " are a whole tree";
    }
    return why;
  }

 private:
  std::string at(std::size_t node, const std::string& what) { return "node " + std::to_string(node) + ": " + what; }

  /// Index of an option among the group's needed ones, or -1.
  int find(const AnchorProof::OptionRef& ref) const {
    if (ref.bucket < 0 || ref.bucket >= static_cast<int>(instance_.groups.size())) return -1;
    const auto& options = instance_.groups[ref.bucket].options;
    for (std::size_t j = 0; j < options.size(); ++j) {
      if (options[j].config == ref.config) return static_cast<int>(j);
    }
    return -1;
  }

  std::string visit(const Limits& limits, int depth) {
    if (next_ == tree_.size()) return "it ends before all branches are closed";
    if (depth > kDeepest) return at(next_, "the tree is deeper than " + std::to_string(kDeepest));
    const std::size_t index = next_++;
    const Node& node = tree_[index];
    if (node.kind == Node::Kind::leaf) return is_empty(limits) ? "" : leaf(index, limits);
    const int option = find(node.option);
    if (option < 0) return at(index, "it parts by an option that no sequence needs");
    for (const bool more : {false, true}) {
      Limits part = limits;
      if (node.kind == Node::Kind::sequences) {
        auto& least = part.least[node.option.bucket];
        auto& most = part.most[node.option.bucket];
        if (more) {
          for (int j = 0; j <= option; ++j) least[j] = std::max(least[j], node.at_most + 1);
        } else {
          for (std::size_t j = option; j < most.size(); ++j) most[j] = std::min(most[j], node.at_most);
        }
      } else {
        auto it = std::find_if(part.holders.begin(), part.holders.end(), [&](const Limits::Holders& known) {
          return known.group == node.option.bucket && known.option == option && known.pieces == node.pieces;
        });
        if (it == part.holders.end()) {
          it = part.holders.insert(part.holders.end(), {node.option.bucket, option, node.pieces, 0, instance_.ranks});
        }
        if (more) {
          it->least = std::max(it->least, node.at_most + 1);
        } else {
          it->most = std::min(it->most, node.at_most);
        }
      }
      if (std::string why = visit(part, depth + 1); !why.empty()) return why;
    }
    return "";
  }

  static bool is_empty(const Limits& limits) {
    for (std::size_t g = 0; g < limits.least.size(); ++g) {
      for (std::size_t j = 0; j < limits.least[g].size(); ++j) {
        if (limits.least[g][j] > limits.most[g][j]) return true;
      }
    }
    return std::any_of(limits.holders.begin(), limits.holders.end(),
                       [](const Limits::Holders& holders) { return holders.least > holders.most; });
  }

  std::string leaf(std::size_t index, const Limits& limits) {
    const Node& node = tree_[index];
    if (node.sequence_values.size() != instance_.groups.size()) {
      return at(index, "sequence_values has " + std::to_string(node.sequence_values.size()) + " values for " +
                           std::to_string(instance_.groups.size()) + " buckets");
    }
    if (node.split_value < 0) return at(index, "split_value is negative");
    if (node.split_value != 0 && !splits_most_) return at(index, "split_value counts only where splits are limited");
    // What all sequences are worth at least.
    Wide total = 0;
    std::vector<std::vector<Wide>> values;
    for (std::size_t g = 0; g < instance_.groups.size(); ++g) {
      const auto& group = instance_.groups[g];
      total += static_cast<Wide>(node.sequence_values[g]) * group.count;
      values.emplace_back(group.options.size(), node.sequence_values[g]);
    }
    for (const auto& [ref, value] : node.option_values) {
      const int option = find(ref);
      if (option < 0) return at(index, "it values an option that no sequence needs");
      total += static_cast<Wide>(value) * (value > 0 ? limits.least : limits.most)[ref.bucket][option];
      for (std::size_t j = option; j < values[ref.bucket].size(); ++j) values[ref.bucket][j] += value;
    }
    std::vector<int> step_options;
    for (const auto& [ref, pieces, value] : node.holder_values) {
      const int option = find(ref);
      if (option < 0 || pieces < 1) return at(index, "it values holders of what no rank holds");
      step_options.push_back(option);
      const auto it = std::find_if(limits.holders.begin(), limits.holders.end(),
                                   [&, p = pieces, r = ref](const Limits::Holders& known) {
                                     return known.group == r.bucket && known.option == option && known.pieces == p;
                                   });
      const bool known = it != limits.holders.end();
      total += static_cast<Wide>(value) * (value > 0 ? (known ? it->least : 0) : (known ? it->most : instance_.ranks));
    }
    if (splits_most_) total -= static_cast<Wide>(node.split_value) * *splits_most_;
    total *= unit_;
    // What a piece is worth.
    std::vector<std::vector<std::int64_t>> piece_values;
    Wide largest = 0;
    for (std::size_t g = 0; g < instance_.groups.size(); ++g) {
      piece_values.emplace_back();
      for (std::size_t j = 0; j < values[g].size(); ++j) {
        const int degree = instance_.groups[g].options[j].degree;
        const Wide worth = (values[g][j] - (degree > 1 ? node.split_value : 0)) * unit_;
        const Wide piece = worth >= 0 ? (worth + degree - 1) / degree : -(-worth / degree);
        largest += (piece < 0 ? -piece : piece) * instance_.groups[g].count;
        if (largest > kMostValue) return at(index, "its values are too large to be verified");
        piece_values.back().push_back(static_cast<std::int64_t>(piece));
      }
    }
    for (const auto& step : node.holder_values) {
      const Wide bonus = static_cast<Wide>(step.value) * unit_;
      largest += bonus < 0 ? -bonus : bonus;
    }
    if (total > kMostValue || total < -kMostValue || largest > kMostValue) {
      return at(index, "its values are too large to be verified");
    }
    if (total <= 0) return at(index, "its sequences are worth nothing, so nothing is refuted");
    const auto mean = static_cast<std::int64_t>((total - 1) / instance_.ranks);
    const PatternQuestion question =
        question_of(instance_, load_limit_us_, limits, piece_values, node.holder_values, step_options, unit_, mean);
    if (counted_ && !node.holder_values.empty()) return at(index, "holders have no value beside sand");
    switch (counted_ ? is_worth_more_over_sand(question, *counted_, node.prices, work_)
                     : is_worth_more(question, work_)) {
      case PatternVerdict::none: return "";
      case PatternVerdict::exists:
        return at(index, "a rank may hold pieces worth more than the mean of " + std::to_string(mean));
      case PatternVerdict::out_of_work: break;
    }
    return at(index, "verifying it takes too long");
  }

  static constexpr int kDeepest = 400;
  const ProofInstance& instance_;
  const std::vector<Node>& tree_;
  std::int64_t load_limit_us_;
  std::optional<std::int64_t> splits_most_;
  std::optional<std::size_t> counted_;
  std::int64_t& work_;
  std::int64_t unit_ = 1;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<ProofInstance::Option> needed_options(const std::vector<ProofInstance::Option>& options,
                                                  std::int64_t memory_cap_bytes) {
  std::vector<ProofInstance::Option> needed;
  for (const auto& option : options) {
    if (option.memory_bytes > memory_cap_bytes) continue;
    const auto covers = [](const ProofInstance::Option& a, const ProofInstance::Option& b) {
      return a.degree <= b.degree && a.time_us <= b.time_us && a.memory_bytes <= b.memory_bytes &&
             a.exchange_us <= b.exchange_us;
    };
    // Kept options that come earlier win ties; later ones must be strictly better to push an earlier one out.
    if (std::any_of(needed.begin(), needed.end(), [&](const auto& kept) { return covers(kept, option); })) continue;
    std::erase_if(needed, [&](const auto& kept) { return covers(option, kept); });
    needed.push_back(option);
  }
  std::stable_sort(needed.begin(), needed.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.degree, -a.time_us) < std::tuple(b.degree, -b.time_us);
  });
  return needed;
}

std::string why_not_proved(const ProofInstance& instance, const std::vector<AnchorProof::Node>& tree,
                           std::int64_t load_limit_us, std::optional<std::int64_t> splits_most, std::int64_t& work,
                           std::optional<std::size_t> counted) {
  if (load_limit_us < 0 || (splits_most && *splits_most < 0)) return "";  // nothing is below zero
  if (std::any_of(instance.groups.begin(), instance.groups.end(), [](const auto& g) { return g.options.empty(); })) {
    return "";  // a sequence that fits no rank
  }
  return TreeCheck(instance, tree, load_limit_us, splits_most, counted, work).run();
}

namespace {

/// What a proof of the plan is about, and why it is about nothing that the checker can read.
class ProofReader {
 public:
  /// @param field  in the certificate
  ProofReader(const Plan& plan, const AnchorProof& proof, std::string field, Findings& findings)
      : plan_(plan), proof_(proof), field_(std::move(field)), findings_(findings) {}

  bool refuse(const std::string& what) {
    findings_.add(Violation::false_bound, "certificate." + field_ + ": " + what);
    return false;
  }

  /// @param wanted  [buckets of the profile] whose sequences the proof must be about, all of them
  bool read(const Batch& batch, const Profile& profile, const std::vector<BucketIndex>& bucket_of,
            const std::vector<bool>& wanted) {
    if (proof_.menu != Menu::powers_of_two && proof_.menu != Menu::all) {
      return refuse("menu is number " + std::to_string(static_cast<int>(proof_.menu)));
    }
    const auto& buckets = profile.catalog.buckets;
    instance.ranks = batch.ranks;
    instance.memory_cap_bytes = profile.memory_cap().value;
    std::vector<int> group_of(buckets.size(), -1);
    for (std::size_t g = 0; g < proof_.buckets.size(); ++g) {
      const auto it = std::find_if(buckets.begin(), buckets.end(),
                                   [&](const Bucket& bucket) { return bucket.name == proof_.buckets[g]; });
      if (it == buckets.end()) return refuse("the profile has no bucket " + in_quotes(proof_.buckets[g]));
      const auto bucket = static_cast<BucketIndex>(it - buckets.begin());
      if (!wanted[bucket]) return refuse("bucket " + in_quotes(it->name) + " is no anchors'");
      if (group_of[bucket] >= 0) return refuse("bucket " + in_quotes(it->name) + " comes twice");
      group_of[bucket] = static_cast<int>(g);
      std::vector<ProofInstance::Option> options;
      const auto& allowed =
          menus_.emplace(it->name, menu(profile.catalog.model, it->tokens, batch.ranks, proof_.menu)).first->second;
      for (const Configuration config : allowed) {
        const Price* price = profile.find(bucket, config);
        if (price == nullptr) continue;
        const PieceLoads piece = piece_loads(*price, plan_.load_model);
        options.push_back({config, config.degree(), piece.time_us, price->memory.value, piece.exchange_us});
      }
      instance.groups.push_back({0, needed_options(options, instance.memory_cap_bytes)});
    }
    for (const BucketIndex bucket : bucket_of) {
      if (!wanted[bucket]) continue;
      if (group_of[bucket] < 0)
        return refuse("the sequences of bucket " + in_quotes(buckets[bucket].name) + " are missing");
      ++instance.groups[group_of[bucket]].count;
    }
    return true;
  }

  /// The bounds are bounds of this plan only when the plan takes its options from the menu.
  bool keeps_menu() {
    for (const PlacedSequence& sequence : plan_.placement.sequences) {
      const auto menu_of = menus_.find(sequence.bucket);
      if (menu_of == menus_.end()) continue;
      const std::vector<Configuration>& allowed = menu_of->second;
      if (std::find(allowed.begin(), allowed.end(), sequence.config) == allowed.end()) {
        return refuse("sequence " + in_quotes(sequence.id) + " takes " + text(sequence.config) +
                      ", which is not on the menu that the bounds are for");
      }
    }
    return true;
  }

  ProofInstance instance;

 private:
  const Plan& plan_;
  const AnchorProof& proof_;
  std::string field_;
  Findings& findings_;
  std::unordered_map<std::string_view, std::vector<Configuration>> menus_;
};

}  // namespace

bool check_anchor_proof(const Plan& plan, const Batch& batch, const Profile& profile,
                        const std::vector<BucketIndex>& bucket_of, const std::vector<bool>& is_anchor,
                        Findings& findings) {
  if (!plan.certificate.duals) return false;
  const AnchorProof& proof = *plan.certificate.duals;
  const Certificate& certificate = plan.certificate;
  ProofReader reader(plan, proof, "duals", findings);
  if (!reader.read(batch, profile, bucket_of, is_anchor)) return false;
  if (proof.counted) return reader.refuse("counted is for makespan_duals only");
  std::int64_t work = kVerifyWork;
  bool is_proved = true;
  if (certificate.anchor_bound && certificate.anchor_bound->value > 0) {
    const std::string why = why_not_proved(reader.instance, proof.load, certificate.anchor_bound->value - 1, {}, work);
    if (!why.empty()) {
      is_proved = reader.refuse("load does not prove anchor_bound_us " +
                                std::to_string(certificate.anchor_bound->value) + ": " + why);
    }
  }
  if (certificate.split_bound && *certificate.split_bound > 0) {
    const std::string why = why_not_proved(reader.instance, proof.split, proof.split_limit.value,
                                           std::int64_t{*certificate.split_bound} - 1, work);
    if (!why.empty()) {
      reader.refuse("split does not prove split_bound " + std::to_string(*certificate.split_bound) +
                    " at loads up to " + std::to_string(proof.split_limit.value) + ": " + why);
    }
  }
  return reader.keeps_menu() && is_proved;
}

bool check_makespan_proof(const Plan& plan, const Batch& batch, const Profile& profile,
                          const std::vector<BucketIndex>& bucket_of, Findings& findings) {
  if (!plan.certificate.makespan_duals) return false;
  const AnchorProof& proof = *plan.certificate.makespan_duals;
  ProofReader reader(plan, proof, "makespan_duals", findings);
  if (!plan.certificate.makespan_bound) return reader.refuse("there is no makespan_bound_us that they prove");
  const std::vector<bool> all(profile.catalog.buckets.size(), true);
  if (!reader.read(batch, profile, bucket_of, all)) return false;
  const auto buckets = static_cast<int>(proof.buckets.size());
  if (proof.counted && (*proof.counted < 0 || *proof.counted > buckets)) {
    return reader.refuse("counted is " + std::to_string(*proof.counted) + " of " + std::to_string(buckets) +
                         " buckets");
  }
  std::optional<std::size_t> counted;
  if (proof.counted) counted = static_cast<std::size_t>(*proof.counted);
  std::int64_t work = kVerifyWork;
  const Microseconds bound = *plan.certificate.makespan_bound;
  const std::string why = why_not_proved(reader.instance, proof.load, bound.value - 1, {}, work, counted);
  if (!why.empty()) {
    return reader.refuse("load does not prove makespan_bound_us " + std::to_string(bound.value) + ": " + why);
  }
  return reader.keeps_menu();
}

}  // namespace zellige
