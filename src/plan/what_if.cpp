// SPDX-License-Identifier: Apache-2.0
#include "plan/what_if.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace zellige {
namespace {

double modelled_bytes(const ModelGeometry& model, Tokens length, Configuration configuration, bool checkpointing) {
  return static_cast<double>(
      memory_terms(model, length, configuration, {.checkpointing = checkpointing}).total().value);
}

Bytes scaled(Bytes need, double ratio) { return {std::llround(static_cast<double>(need.value) * ratio)}; }

/// A price of `length` tokens derived from a known one of `known_length` tokens, maybe of another configuration.
Price derived(const ModelGeometry& model, const Price& known, Tokens known_length, bool known_checkpointing,
              Tokens length, Configuration configuration, bool checkpointing) {
  Price price = known;
  price.config = configuration;
  const double tokens = static_cast<double>(length.value) / static_cast<double>(known_length.value);
  const double share = tokens * known.config.degree() / configuration.degree();
  price.time.value = std::max<std::int64_t>(1, std::llround(static_cast<double>(known.time.value) * share));
  price.exchange = std::min(price.exchange, price.time);
  price.memory = scaled(known.memory, modelled_bytes(model, length, configuration, checkpointing) /
                                          modelled_bytes(model, known_length, known.config, known_checkpointing));
  price.source = PriceSource::estimated;
  price.spread.reset();
  return price;
}

/// Legal configurations of up to min(ranks, 16) ranks, and over exactly `ranks` ranks.
std::vector<Configuration> configurations(const ModelGeometry& model, Tokens length, int ranks) {
  std::vector<Configuration> all = menu(model, length, ranks, Menu::all);
  for (int q = 1; ranks > kLargestMenuDegree && q <= ranks; ++q) {
    for (int h = 1; ranks % q == 0 && h <= ranks / q; ++h) {
      const Configuration c{q, h, ranks / q / h};
      if (c.degree() == ranks && why_illegal(model, length, c, ranks).empty()) all.push_back(c);
    }
  }
  return all;
}

}  // namespace

Profile what_if(const Profile& profile, const WhatIf& change) {
  Profile changed = profile;
  const ModelGeometry& model = profile.catalog.model;
  const bool before = profile.key.checkpointing;
  const bool after = change.checkpointing.value_or(before);
  changed.key.checkpointing = after;
  for (std::size_t b = 0; b < profile.catalog.buckets.size(); ++b) {
    const auto bucket = static_cast<BucketIndex>(b);
    const Tokens length = profile.catalog.buckets[b].tokens;
    std::vector<Price> prices(profile.menu(bucket).begin(), profile.menu(bucket).end());
    if (after != before) {
      for (Price& price : prices) {
        price.memory = scaled(price.memory, modelled_bytes(model, length, price.config, after) /
                                                modelled_bytes(model, length, price.config, before));
      }
    }
    const Price& whole = profile.whole(bucket);
    for (const Configuration& c : configurations(model, length, change.ranks)) {
      if (profile.find(bucket, c) == nullptr) {
        prices.push_back(derived(model, whole, length, before, length, c, after));
      }
    }
    changed.set_prices(bucket, std::move(prices));
  }
  return changed;
}

Profile with_cut_bucket(const Profile& profile, BucketIndex like, int frames) {
  Profile changed = profile;
  const Bucket& known = profile.catalog.buckets[static_cast<std::size_t>(like)];
  Bucket cut = known;
  cut.name.append("@").append(std::to_string(frames));
  cut.frames = frames;
  cut.tokens = sequence_tokens(profile.catalog.model, frames, known.height, known.width);
  changed.catalog.buckets.push_back(cut);
  std::vector<Price> prices;
  for (const Price& price : profile.menu(like)) {
    constexpr int kAnyRanks = 1 << 20;
    if (!why_illegal(profile.catalog.model, cut.tokens, price.config, kAnyRanks).empty()) continue;
    prices.push_back(derived(profile.catalog.model, price, known.tokens, profile.key.checkpointing, cut.tokens,
                             price.config, profile.key.checkpointing));
  }
  changed.set_prices(static_cast<BucketIndex>(changed.catalog.buckets.size() - 1), std::move(prices));
  return changed;
}

const Price* least_need(const Profile& profile, BucketIndex bucket, int ranks, Menu which) {
  const Price* least = nullptr;
  const Tokens length = profile.catalog.buckets[static_cast<std::size_t>(bucket)].tokens;
  for (const Configuration& c : menu(profile.catalog.model, length, ranks, which)) {
    const Price* price = profile.find(bucket, c);
    if (price != nullptr && (least == nullptr || price->memory < least->memory)) least = price;
  }
  return least;
}

}  // namespace zellige
