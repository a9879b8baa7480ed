// SPDX-License-Identifier: Apache-2.0
#include "placement/rank_sums.h"

#include <algorithm>

#include "base/json.h"
#include "zellige/error.h"

namespace zellige {

PriceLookup::PriceLookup(const Profile& profile) : profile_(profile) {
  for (std::size_t i = 0; i < profile.catalog.buckets.size(); ++i) {
    by_name_.emplace(profile.catalog.buckets[i].name, static_cast<BucketIndex>(i));
  }
}

BucketIndex PriceLookup::bucket(const PlacedSequence& sequence) const {
  const auto found = by_name_.find(sequence.bucket);
  if (found == by_name_.end()) {
    throw Error(Code::input, "placement",
                "sequence " + in_quotes(sequence.id) + " is in bucket " + in_quotes(sequence.bucket) +
                    ", which the profile's catalog does not have");
  }
  return found->second;
}

const Price& PriceLookup::price(const PlacedSequence& sequence) const {
  // Legality on some number of ranks: a configuration that is none has no degree to look up.
  constexpr int kAnyRanks = 1 << 20;
  const std::string illegal = why_illegal(profile_.catalog.model, sequence.tokens, sequence.config, kAnyRanks);
  if (!illegal.empty()) {
    throw Error(Code::input, "placement", "sequence " + in_quotes(sequence.id) + ": " + illegal);
  }
  const Price* price = profile_.find(bucket(sequence), sequence.config);
  if (price == nullptr) {
    throw Error(Code::input, "placement",
                "sequence " + in_quotes(sequence.id) + ": the profile has no price for " + text(sequence.config) +
                    " in bucket " + in_quotes(sequence.bucket));
  }
  return *price;
}

const Price& PriceLookup::whole(const PlacedSequence& sequence) const { return profile_.whole(bucket(sequence)); }

void add_checked(std::int64_t& total, std::int64_t value) {
  if (__builtin_add_overflow(total, value, &total)) {
    throw Error(Code::input, "placement",
                "a sum of prices goes beyond 64 bits when " + std::to_string(value) + " is added");
  }
}

RankSums rank_sums(const Placement& placement, const PriceLookup& prices, const LoadModel& model) {
  const std::size_t num_ranks = static_cast<std::size_t>(std::max(placement.ranks, 0));
  RankSums sums{.load = std::vector<Microseconds>(num_ranks),
                .exchange = std::vector<Microseconds>(num_ranks),
                .memory = std::vector<Bytes>(num_ranks),
                .makespan = {}};
  for (const PlacedSequence& sequence : placement.sequences) {
    const Price& price = prices.price(sequence);
    const Charge charged = charge(price, model);
    const int degree = sequence.config.degree();
    if (sequence.ranks.size() != static_cast<std::size_t>(degree)) {
      throw Error(Code::input, "placement",
                  "sequence " + in_quotes(sequence.id) + " is on " + std::to_string(sequence.ranks.size()) +
                      " ranks; " + text(sequence.config) + " needs " + std::to_string(degree));
    }
    if (degree > 1) ++sums.split_count;
    for (const Rank rank : sequence.ranks) {
      if (rank < 0 || rank >= placement.ranks) {
        throw Error(Code::input, "placement",
                    "sequence " + in_quotes(sequence.id) + " is on rank " + std::to_string(rank) +
                        "; ranks go from 0 to " + std::to_string(placement.ranks - 1));
      }
      const auto at = static_cast<std::size_t>(rank);
      add_checked(sums.load[at].value, charged.time.value);
      add_checked(sums.exchange[at].value, price.exchange.value);
      add_checked(sums.memory[at].value, price.memory.value);
    }
  }
  for (std::size_t at = 0; at < num_ranks; ++at) {
    if (model.is_overlapped()) sums.load[at] = std::max(sums.load[at], sums.exchange[at]);
    sums.makespan = std::max(sums.makespan, sums.load[at]);
  }
  return sums;
}

}  // namespace zellige
