// SPDX-License-Identifier: Apache-2.0
#include "zellige/profile.h"

#include <algorithm>
#include <tuple>

#include "base/json.h"
#include "profile/price_rules.h"

namespace zellige {
namespace {

auto menu_order(const Price& price) { return std::tuple(price.config.degree(), price.config.q, price.config.h); }

std::string described(const Bucket& bucket) {
  return in_quotes(bucket.name) + " (" + std::string(name(bucket.kind)) + ", " + std::to_string(bucket.frames) + "x" +
         std::to_string(bucket.height) + "x" + std::to_string(bucket.width) + ", " +
         std::to_string(bucket.tokens.value) + " tokens)";
}

std::string described(const ModelGeometry& model) {
  return in_quotes(model.name) + " (" + std::to_string(model.layers) + " layers, " + std::to_string(model.heads) +
         " heads x " + std::to_string(model.head_dim) + ", ffn " + std::to_string(model.ffn) + ")";
}

[[noreturn]] void refuse_match(const std::string& message) { throw Error(Code::input, "profile.match", message); }

}  // namespace

std::string why_wrong(const ModelGeometry& model, const Bucket& bucket, const Price& price) {
  // Any number of ranks may come to use a profile: only the sequence and the heads limit its configurations.
  constexpr int kAnyRanks = 1 << 20;
  if (std::string reason = why_illegal(model, bucket.tokens, price.config, kAnyRanks); !reason.empty()) return reason;
  if (price.time.value < 1) return "time_us " + std::to_string(price.time.value) + " must be at least 1";
  if (price.exchange.value < 0 || price.exchange > price.time) {
    return "exchange_us " + std::to_string(price.exchange.value) + " must be between 0 and time_us " +
           std::to_string(price.time.value);
  }
  if (price.memory.value < 0) {
    return "memory_bytes " + std::to_string(price.memory.value) + " must not be negative";
  }
  if (price.spread && price.source != PriceSource::measured) {
    return "a spread belongs to measured prices, not to " + std::string(name(price.source)) + " ones";
  }
  if (price.error && price.source != PriceSource::interpolated && price.source != PriceSource::extrapolated) {
    return "an error belongs to interpolated and extrapolated prices, not to " + std::string(name(price.source)) +
           " ones";
  }
  return "";
}

std::string why_stale(const ProfileKey& measured, const ProfileKey& here) {
  if (measured.driver.empty()) return "";
  std::vector<std::string> differences;
  const auto compare = [&](const char* what, const std::string& there, const std::string& now) {
    if (!there.empty() && !now.empty() && there != now) {
      differences.push_back(std::string(what) + " " + in_quotes(there) + ", here " + in_quotes(now));
    }
  };
  const auto yes_or_no = [](bool value) { return std::string(value ? "on" : "off"); };
  compare("device", measured.device, here.device);
  compare("driver", measured.driver, here.driver);
  compare("executor", std::to_string(measured.executor), std::to_string(here.executor));
  compare("activation checkpointing", yes_or_no(measured.checkpointing), yes_or_no(here.checkpointing));
  compare("libtorch", measured.torch, here.torch);
  compare("precision", measured.precision, here.precision);
  const bool share_a_cpu = measured.device.starts_with("CPU");
  if (share_a_cpu && measured.ranks != 0 && here.ranks != 0) {
    compare("ranks", std::to_string(measured.ranks), std::to_string(here.ranks));
  }
  return differences.empty() ? "" : "measured with " + joined(differences);
}

void Profile::set_prices(BucketIndex bucket, std::vector<Price> prices) {
  if (bucket < 0 || static_cast<std::size_t>(bucket) >= catalog.buckets.size()) {
    throw Error(
        Code::input, "profile.set_prices",
        "bucket " + std::to_string(bucket) + " is not one of the catalog's " + std::to_string(catalog.buckets.size()));
  }
  const Bucket& priced = catalog.buckets[bucket];
  const auto refuse = [&](const std::string& reason) {
    throw Error(Code::input, "profile.set_prices", "bucket " + in_quotes(priced.name) + ": " + reason);
  };
  for (const Price& price : prices) {
    if (std::string reason = why_wrong(catalog.model, priced, price); !reason.empty()) refuse(reason);
  }
  std::sort(prices.begin(), prices.end(), [](const Price& a, const Price& b) { return menu_order(a) < menu_order(b); });
  const auto twice = std::adjacent_find(prices.begin(), prices.end(),
                                        [](const Price& a, const Price& b) { return a.config == b.config; });
  if (twice != prices.end()) refuse("configuration " + text(twice->config) + " has two prices");
  if (prices.empty() || !prices.front().config.is_whole()) {
    refuse("the price of [1, 1, 1], the whole sequence, is missing");
  }
  prices_.resize(catalog.buckets.size());
  prices_[bucket] = std::move(prices);
}

const Price* Profile::find(BucketIndex bucket, Configuration configuration) const {
  if (bucket < 0 || static_cast<std::size_t>(bucket) >= prices_.size()) return nullptr;
  const auto wanted = std::tuple(configuration.degree(), configuration.q, configuration.h);
  const std::vector<Price>& prices = prices_[bucket];
  const auto found = std::lower_bound(prices.begin(), prices.end(), wanted,
                                      [](const Price& price, const auto& order) { return menu_order(price) < order; });
  return found != prices.end() && found->config == configuration ? &*found : nullptr;
}

std::span<const Price> Profile::menu(BucketIndex bucket) const {
  if (bucket < 0 || static_cast<std::size_t>(bucket) >= prices_.size() || prices_[bucket].empty()) {
    throw Error(Code::input, "profile.menu", "bucket " + std::to_string(bucket) + " has no prices in the profile");
  }
  return prices_[bucket];
}

std::vector<BucketIndex> match_buckets(const Batch& batch, const Profile& profile) {
  if (batch.catalog.model != profile.catalog.model) {
    refuse_match("the batch is for model " + described(batch.catalog.model) + ", the profile for " +
                 described(profile.catalog.model));
  }
  constexpr BucketIndex kNone = -1;
  std::vector<BucketIndex> of_bucket;
  for (const Bucket& bucket : batch.catalog.buckets) {
    of_bucket.push_back(profile.catalog.find(bucket.name).value_or(kNone));
    if (of_bucket.back() == kNone) continue;
    const Bucket& priced = profile.catalog.buckets[of_bucket.back()];
    if (priced != bucket) {
      refuse_match("the batch's bucket " + described(bucket) + " is not the profile's " + described(priced));
    }
  }
  std::vector<BucketIndex> result;
  result.reserve(batch.sequences.size());
  for (const BatchSequence& sequence : batch.sequences) {
    const BucketIndex found = of_bucket.at(sequence.bucket);
    if (found == kNone) {
      std::vector<std::string> known;
      for (const Bucket& bucket : profile.catalog.buckets) known.push_back(bucket.name);
      refuse_match("sequence " + in_quotes(sequence.id) + ": bucket " +
                   described(batch.catalog.buckets[sequence.bucket]) +
                   " is not in the profile, which has: " + joined(known));
    }
    result.push_back(found);
  }
  return result;
}

std::string_view name(PriceSource source) {
  switch (source) {
    case PriceSource::measured: return "measured";
    case PriceSource::interpolated: return "interpolated";
    case PriceSource::extrapolated: return "extrapolated";
    case PriceSource::estimated: return "estimated";
  }
  return "estimated";
}

}  // namespace zellige
