// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/json.h"
#include "base/sha256.h"
#include "catalog/catalog_json.h"
#include "profile/price_rules.h"
#include "zellige/profile.h"

namespace zellige {
namespace {

constexpr const char* kFormat = "zellige.profile";
constexpr int kVersion = 1;
constexpr std::int64_t kMostOfAnything = 1 << 20;  // factors, heads, counts

std::string text_in(const JsonValue& value) {
  if (value.string().empty()) value.refuse("it must not be empty");
  return value.string();
}

int small_integer(const JsonValue& value, std::int64_t least) {
  return static_cast<int>(value.integer(least, kMostOfAnything));
}

std::string one_of(const JsonValue& value, const std::vector<std::string>& allowed) {
  for (const std::string& word : allowed) {
    if (value.string() == word) return word;
  }
  value.refuse("it must be one of: " + joined(allowed));
}

Configuration configuration_from(const JsonValue& value) {
  const std::vector<JsonValue> items = value.array();
  if (items.size() != 3) value.refuse("it must have three factors: query, head, key/value");
  return {small_integer(items[0], 1), small_integer(items[1], 1), small_integer(items[2], 1)};
}

PriceSource source_from(const JsonValue& value) {
  std::vector<std::string> allowed;
  for (PriceSource source :
       {PriceSource::measured, PriceSource::interpolated, PriceSource::extrapolated, PriceSource::estimated}) {
    if (value.string() == name(source)) return source;
    allowed.emplace_back(name(source));
  }
  value.refuse("it must be one of: " + joined(allowed));
}

struct PricedBucket {
  BucketIndex bucket;
  Price price;
};

PricedBucket price_from(const JsonValue& value, const Catalog& catalog) {
  JsonObject object(value);
  PricedBucket row;
  const JsonValue bucket = object.at("bucket");
  const auto found = catalog.find(bucket.string());
  if (!found) {
    std::vector<std::string> names;
    for (const Bucket& known : catalog.buckets) names.push_back(known.name);
    bucket.refuse("the profile's catalog has no such bucket; it has: " + joined(names));
  }
  row.bucket = *found;
  const JsonValue config = object.at("config");
  row.price.config = configuration_from(config);
  row.price.time.value = object.at("time_us").integer(1);
  row.price.exchange.value = object.at("exchange_us").integer(0);
  row.price.memory.value = object.at("memory_bytes").integer(0);
  row.price.source = source_from(object.at("source"));
  if (object.has("spread")) {
    const JsonValue spread = object.at("spread");
    row.price.spread = spread.number();
    if (*row.price.spread < 0) spread.refuse("it must not be negative");
  } else if (row.price.source == PriceSource::measured) {
    object.at("spread");  // refuses: measured prices say how sure they are
  }
  if (object.has("error")) {
    const JsonValue error = object.at("error");
    row.price.error = error.number();
    if (*row.price.error < 0) error.refuse("it must not be negative");
  }
  object.finish();
  if (std::string reason = why_wrong(catalog.model, catalog.buckets[row.bucket], row.price); !reason.empty()) {
    value.refuse(reason);
  }
  return row;
}

void read_prices(const JsonValue& value, Profile& profile) {
  const std::size_t num_buckets = profile.catalog.buckets.size();
  std::vector<std::vector<Price>> prices(num_buckets);
  std::vector<std::set<Configuration>> seen(num_buckets);
  for (const JsonValue& item : value.array()) {
    PricedBucket row = price_from(item, profile.catalog);
    if (!seen[row.bucket].insert(row.price.config).second) {
      item.refuse("bucket " + in_quotes(profile.catalog.buckets[row.bucket].name) + " already has a price for " +
                  text(row.price.config));
    }
    prices[row.bucket].push_back(std::move(row.price));
  }
  for (std::size_t i = 0; i < num_buckets; ++i) {
    if (!seen[i].contains(Configuration{})) {
      value.refuse("bucket " + in_quotes(profile.catalog.buckets[i].name) +
                   " has no price for [1, 1, 1], which every bucket needs");
    }
    profile.set_prices(static_cast<BucketIndex>(i), std::move(prices[i]));
  }
}

ProfileKey key_from(const JsonValue& value) {
  JsonObject object(value);
  ProfileKey key;
  key.device = text_in(object.at("device"));
  key.driver = object.at("driver").string();
  key.executor = small_integer(object.at("executor"), 0);
  key.checkpointing = object.at("checkpointing").boolean();
  if (object.has("torch")) key.torch = text_in(object.at("torch"));
  if (object.has("precision")) key.precision = one_of(object.at("precision"), {"fp32", "fp64", "bf16"});
  if (object.has("ranks")) key.ranks = small_integer(object.at("ranks"), 1);
  object.finish();
  return key;
}

Link link_from(const JsonValue& value) {
  JsonObject object(value);
  Link link;
  link.scope = one_of(object.at("scope"), {"node", "cluster"});
  link.latency_us = object.at("latency_us").integer(0);
  link.bytes_per_us = object.at("bytes_per_us").integer(1);
  object.finish();
  return link;
}

KernelRate kernel_from(const JsonValue& value) {
  JsonObject object(value);
  KernelRate rate;
  rate.kernel = text_in(object.at("kernel"));
  rate.device = text_in(object.at("device"));
  rate.direction = one_of(object.at("direction"), {"forward", "backward"});
  rate.length.value = object.at("length").integer(1);
  rate.count = small_integer(object.at("count"), 1);
  rate.heads = small_integer(object.at("heads"), 1);
  rate.flops_per_us = object.at("flops_per_us").integer(1);
  object.finish();
  return rate;
}

OrderedJson to_json(const Price& price, const Bucket& bucket) {
  OrderedJson json = {{"bucket", bucket.name},
                      {"config", {price.config.q, price.config.h, price.config.k}},
                      {"time_us", price.time.value},
                      {"exchange_us", price.exchange.value},
                      {"memory_bytes", price.memory.value},
                      {"source", name(price.source)}};
  if (price.spread) json["spread"] = *price.spread;
  if (price.error) json["error"] = *price.error;
  return json;
}

OrderedJson to_json(const Link& link) {
  return {{"scope", link.scope}, {"latency_us", link.latency_us}, {"bytes_per_us", link.bytes_per_us}};
}

OrderedJson to_json(const KernelRate& rate) {
  return {{"kernel", rate.kernel},
          {"device", rate.device},
          {"direction", rate.direction},
          {"length", rate.length.value},
          {"count", rate.count},
          {"heads", rate.heads},
          {"flops_per_us", rate.flops_per_us}};
}

OrderedJson to_json(const ProfileKey& key) {
  OrderedJson json = {
      {"device", key.device}, {"driver", key.driver}, {"executor", key.executor}, {"checkpointing", key.checkpointing}};
  if (!key.torch.empty()) json["torch"] = key.torch;
  if (!key.precision.empty()) json["precision"] = key.precision;
  if (key.ranks != 0) json["ranks"] = key.ranks;
  return json;
}

OrderedJson to_json(const Profile& profile) {
  OrderedJson prices = OrderedJson::array();
  for (std::size_t i = 0; i < profile.catalog.buckets.size(); ++i) {
    for (const Price& price : profile.menu(static_cast<BucketIndex>(i))) {
      prices.push_back(to_json(price, profile.catalog.buckets[i]));
    }
  }
  OrderedJson links = OrderedJson::array();
  for (const Link& link : profile.links) links.push_back(to_json(link));
  OrderedJson kernels = OrderedJson::array();
  for (const KernelRate& rate : profile.kernels) kernels.push_back(to_json(rate));
  return {{"format", kFormat},
          {"version", kVersion},
          {"catalog", to_json(profile.catalog)},
          {"key", to_json(profile.key)},
          {"step_base_us", profile.step_base.value},
          {"memory", {{"base_bytes", profile.memory_base.value}, {"usable_bytes", profile.memory_usable.value}}},
          {"prices", std::move(prices)},
          {"links", std::move(links)},
          {"kernels", std::move(kernels)}};
}

}  // namespace

Profile read_profile(const std::string& path) {
  const JsonDocument document = JsonDocument::from_file(path);
  JsonObject object(document.root());
  object.expect_format(kFormat, kVersion);
  Profile profile;
  profile.catalog = catalog_from(object.at("catalog"));
  profile.key = key_from(object.at("key"));
  profile.step_base.value = object.at("step_base_us").integer(0);
  const JsonValue memory_value = object.at("memory");
  JsonObject memory(memory_value);
  profile.memory_base.value = memory.at("base_bytes").integer(0);
  const JsonValue usable = memory.at("usable_bytes");
  profile.memory_usable.value = usable.integer(1);
  memory.finish();
  if (profile.memory_cap().value <= 0) {
    usable.refuse("it must exceed base_bytes " + std::to_string(profile.memory_base.value) +
                  ", so that the memory cap is positive");
  }
  read_prices(object.at("prices"), profile);
  for (const JsonValue& item : object.at("links").array()) profile.links.push_back(link_from(item));
  for (const JsonValue& item : object.at("kernels").array()) profile.kernels.push_back(kernel_from(item));
  object.finish();
  return profile;
}

std::string profile_json(const Profile& profile) { return pretty(to_json(profile)); }

void write_profile(const Profile& profile, const std::string& path) { write_text_file(path, profile_json(profile)); }

std::string digest(const Profile& profile) {
  // Writing thousands of prices down and hashing them takes longer than planning a batch, and the planner, the checker
  // and every rank ask for the same few profiles again and again. Comparing them takes microseconds.
  struct Known {
    Profile profile;
    std::string digest;
  };
  constexpr std::size_t kMostKnown = 4;
  static std::mutex mutex;
  static std::deque<std::shared_ptr<const Known>> known;  // latest first
  std::deque<std::shared_ptr<const Known>> candidates;
  {
    const std::lock_guard lock(mutex);
    candidates = known;
  }
  for (const auto& candidate : candidates) {
    if (candidate->profile == profile) return candidate->digest;
  }
  std::string text = sha256(canonical(nlohmann::json(to_json(profile))));
  const std::lock_guard lock(mutex);
  known.push_front(std::make_shared<const Known>(Known{profile, text}));
  if (known.size() > kMostKnown) known.pop_back();
  return text;
}

}  // namespace zellige
