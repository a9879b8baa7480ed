// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "base/json.h"
#include "placement/check_claims.h"

namespace zellige {
namespace {

/// Eq. 4 for the buckets before and from `cut` on: the logarithms' squared distances from their means.
long double dispersion(const std::vector<long double>& logs, std::size_t cut) {
  long double result = 0;
  for (const auto& [first, last] : {std::pair{std::size_t{0}, cut}, std::pair{cut, logs.size()}}) {
    long double mean = 0;
    for (std::size_t i = first; i < last; ++i) mean += logs[i] / static_cast<long double>(last - first);
    for (std::size_t i = first; i < last; ++i) result += (logs[i] - mean) * (logs[i] - mean);
  }
  return result;
}

/// Holds `certificate.anchor_placement` to what it stands for.
class WitnessCheck {
 public:
  WitnessCheck(const Plan& plan, const Batch& batch, const Profile& profile, const std::vector<BucketIndex>& bucket_of,
               const std::vector<bool>& is_anchor, Choice choice)
      : witness_(plan.certificate.anchor_placement),
        batch_(batch),
        profile_(profile),
        load_model_(plan.load_model),
        choice_(choice) {
    for (const BucketIndex bucket : bucket_of) {
      if (is_anchor[bucket]) ++sequences_[bucket];
    }
  }

  /// Its largest load, or why it is no placement of the anchors.
  std::string run(Wide& largest_load_us) {
    largest_load_us = 0;
    Wide ranks = 0;
    for (const RankContent& content : witness_) {
      ranks += content.ranks;
      if (std::string why = read(content, largest_load_us); !why.empty()) return why;
    }
    if (ranks != batch_.ranks) return "it is for " + text(ranks) + " ranks; there are " + std::to_string(batch_.ranks);
    std::map<BucketIndex, Wide> placed;
    for (const auto& [option, total] : pieces_) {
      const auto& [bucket, config] = option;
      const Wide taken = total / config.degree();
      if (total % config.degree() != 0) {
        return text(total) + " pieces of " + shown(option) + " are no whole number of sequences";
      }
      // A rank holds a sequence once, so at most as many pieces as sequences take the option; and such counts can
      // always be dealt out to distinct ranks.
      if (most_[option] > taken) {
        return "a rank holds " + std::to_string(most_[option]) + " pieces of " + shown(option) + ", which only " +
               text(taken) + " sequences take";
      }
      placed[bucket] += taken;
    }
    for (const auto& [bucket, count] : sequences_) {
      if (placed[bucket] == count) continue;
      return "it places " + text(placed[bucket]) + " sequences of bucket " +
             in_quotes(profile_.catalog.buckets[bucket].name) + "; the batch has " + std::to_string(count);
    }
    return "";
  }

 private:
  using Option = std::pair<BucketIndex, Configuration>;

  std::string shown(const Option& option) const {
    return text(option.second) + " of bucket " + in_quotes(profile_.catalog.buckets[option.first].name);
  }

  std::string read(const RankContent& content, Wide& largest_load_us) {
    if (content.ranks < 1) return "one of its entries is for " + std::to_string(content.ranks) + " ranks";
    Wide load = 0, exchange = 0, memory = 0;
    std::map<Option, std::int64_t> here;
    for (const RankContent::Pieces& held : content.holds) {
      const auto bucket = profile_.catalog.find(held.bucket);
      if (!bucket || !sequences_.contains(*bucket))
        return "the batch has no anchor in bucket " + in_quotes(held.bucket);
      const Price* price = profile_.find(*bucket, held.config);
      const Tokens tokens = profile_.catalog.buckets[*bucket].tokens;
      if (price == nullptr || !why_illegal(batch_.catalog.model, tokens, held.config, batch_.ranks).empty() ||
          !is_chosen(choice_, held.config.degree())) {
        return text(held.config) + " is no option of bucket " + in_quotes(held.bucket);
      }
      if (held.pieces < 0) return "a rank holds " + std::to_string(held.pieces) + " pieces";
      const PieceLoads piece = piece_loads(*price, load_model_);
      load += Wide{piece.time_us} * held.pieces;
      exchange += Wide{piece.exchange_us} * held.pieces;
      memory += Wide{price->memory.value} * held.pieces;
      here[{*bucket, held.config}] += held.pieces;
    }
    for (const auto& [option, pieces] : here) {
      pieces_[option] += Wide{pieces} * content.ranks;
      most_[option] = std::max(most_[option], pieces);
    }
    if (memory > profile_.memory_cap().value) {
      return "a rank needs " + text(memory) + " bytes; the cap is " + std::to_string(profile_.memory_cap().value);
    }
    largest_load_us = std::max({largest_load_us, load, exchange});
    return "";
  }

  const std::vector<RankContent>& witness_;
  const Batch& batch_;
  const Profile& profile_;
  const LoadModel& load_model_;
  Choice choice_;
  std::map<BucketIndex, std::int64_t> sequences_;
  std::map<Option, Wide> pieces_;
  std::map<Option, std::int64_t> most_;
};

}  // namespace

std::vector<bool> anchors_of(const Plan& plan, const Profile& profile) {
  const auto& buckets = profile.catalog.buckets;
  const std::size_t size = buckets.size();
  if (const auto& named = plan.certificate.anchor_buckets) {
    std::vector<bool> is_anchor(size, false);
    for (const std::string& name : *named) {
      if (const auto bucket = profile.catalog.find(name)) is_anchor[static_cast<std::size_t>(*bucket)] = true;
    }
    return is_anchor;
  }
  const bool has_cut = plan.method == "zellige" || plan.method == "two-stage" || plan.method == "zellige-no-ecf";
  if (!has_cut || size < 2) return std::vector<bool>(size, true);
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) {
      return std::tuple(profile.whole(static_cast<BucketIndex>(i)).time, buckets[i].tokens, buckets[i].name);
    };
    return key(a) < key(b);
  });
  std::vector<long double> logs;
  for (const std::size_t i : order) {
    logs.push_back(std::log(static_cast<long double>(profile.whole(static_cast<BucketIndex>(i)).time.value)));
  }
  constexpr long double kTie = 1e-12L;
  std::size_t best = 1;
  long double least = dispersion(logs, 1);
  for (std::size_t cut = 2; cut < size; ++cut) {
    const long double here = dispersion(logs, cut);
    if (here < least - kTie * std::max(here, least)) least = here, best = cut;
  }
  std::vector<bool> is_anchor(size, false);
  for (std::size_t i = best; i < size; ++i) is_anchor[order[i]] = true;
  return is_anchor;
}

std::string why_no_witness(const Plan& plan, const Batch& batch, const Profile& profile,
                           const std::vector<BucketIndex>& bucket_of, const std::vector<bool>& is_anchor, Choice choice,
                           Wide& largest_load_us) {
  return WitnessCheck(plan, batch, profile, bucket_of, is_anchor, choice).run(largest_load_us);
}

}  // namespace zellige
