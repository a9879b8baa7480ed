// SPDX-License-Identifier: Apache-2.0
#include "instance.h"

#include <algorithm>

namespace zellige::testing {
namespace {

Bucket bucket_named(const std::string& name, std::int64_t tokens) {
  Bucket bucket;
  bucket.name = name;
  bucket.kind = tokens > 400 ? MediaKind::video : MediaKind::image;
  bucket.height = 16;
  bucket.width = static_cast<int>(16 * tokens);
  bucket.tokens = {tokens};
  return bucket;
}

Profile empty_profile() {
  Profile profile;
  profile.catalog.model = model_preset("tiny");
  profile.key.device = "a test";
  return profile;
}

}  // namespace

Instance random_instance(RandomEngine& engine, const InstanceShape& shape) {
  Instance instance;
  Profile& profile = instance.profile;
  profile = empty_profile();
  for (int b = 0; b < shape.buckets; ++b) {
    profile.catalog.buckets.push_back(
        bucket_named("bucket-" + std::to_string(b), 64 + static_cast<std::int64_t>(draw_below(engine, 1000))));
  }
  for (int b = 0; b < shape.buckets; ++b) {
    const std::int64_t whole_us = 1 + static_cast<std::int64_t>(draw_below(engine, shape.longest_whole_us));
    const std::int64_t need = 1 + static_cast<std::int64_t>(draw_below(engine, 100));
    std::vector<Price> prices;
    std::vector<int> taken(shape.largest_degree + 1, 0);
    std::vector<Configuration> configs =
        menu(profile.catalog.model, profile.catalog.buckets[b].tokens, shape.largest_degree, Menu::all);
    shuffle(configs, engine);
    for (const Configuration config : configs) {
      const int degree = config.degree();
      if (++taken[degree] > (degree == 1 ? 1 : shape.configurations_a_degree)) continue;
      // A share of the whole, up to a quarter dearer, or so much cheaper that two shards on one rank would pay if they
      // were allowed.
      const std::int64_t share = whole_us * static_cast<std::int64_t>(60 + draw_below(engine, 66)) / (100 * degree);
      const std::int64_t share_of_need = need * static_cast<std::int64_t>(70 + draw_below(engine, 71)) / (100 * degree);
      Price price;
      price.config = config;
      price.time = {degree == 1 ? whole_us : std::max<std::int64_t>(1, share)};
      price.memory = {degree == 1 ? need : std::max<std::int64_t>(1, share_of_need)};
      prices.push_back(price);
    }
    profile.set_prices(b, prices);
  }
  Batch& batch = instance.batch;
  batch.ranks = shape.ranks;
  batch.catalog = profile.catalog;
  std::int64_t needs = 0;
  std::int64_t smallest_piece = 1;
  for (int i = 0; i < shape.sequences; ++i) {
    const auto bucket = static_cast<BucketIndex>(draw_below(engine, shape.buckets));
    batch.sequences.push_back({"s" + std::to_string(i), bucket, ""});
    needs += profile.whole(bucket).memory.value;
    std::int64_t least = profile.whole(bucket).memory.value;
    for (const Price& price : profile.menu(bucket)) least = std::min(least, price.memory.value);
    smallest_piece = std::max(smallest_piece, least);
  }
  const auto cap = static_cast<std::int64_t>(shape.memory_over_mean * static_cast<double>(needs) / shape.ranks);
  profile.memory_usable = {std::max(cap, smallest_piece)};
  return instance;
}

InstanceShape any_small_shape(RandomEngine& engine) {
  InstanceShape shape;
  shape.ranks = 1 + static_cast<int>(draw_below(engine, 6));
  shape.buckets = 1 + static_cast<int>(draw_below(engine, 4));
  shape.sequences = static_cast<int>(draw_below(engine, 10));
  shape.largest_degree = 8;
  shape.configurations_a_degree = 2;
  shape.longest_whole_us = draw_below(engine, 3) == 0 ? 20 : 1'000'000;
  shape.memory_over_mean = 1 + 3 * draw_unit(engine);
  return shape;
}

InstanceShape middle_shape(RandomEngine& engine, double least_memory) {
  InstanceShape shape;
  shape.ranks = 5 + static_cast<int>(draw_below(engine, 4));
  shape.buckets = 2 + static_cast<int>(draw_below(engine, 3));
  shape.sequences = 3 + static_cast<int>(draw_below(engine, 5));
  shape.largest_degree = shape.ranks;
  shape.configurations_a_degree = 1 + static_cast<int>(draw_below(engine, 2));
  shape.longest_whole_us = 2000;
  shape.memory_over_mean = least_memory + draw_unit(engine);
  return shape;
}

void add_exchanges(Instance& instance, RandomEngine& engine) {
  Profile& profile = instance.profile;
  for (std::size_t b = 0; b < profile.catalog.buckets.size(); ++b) {
    const auto menu = profile.menu(static_cast<BucketIndex>(b));
    std::vector<Price> prices(menu.begin(), menu.end());
    for (Price& price : prices) {
      if (price.config.degree() == 1) continue;
      const auto part = static_cast<std::int64_t>(draw_below(engine, 151));
      price.exchange = {price.time.value * std::min<std::int64_t>(100, part) / 100};
    }
    profile.set_prices(static_cast<BucketIndex>(b), prices);
  }
}

Profile whole_profile(const std::vector<std::int64_t>& whole_us, const std::vector<std::int64_t>& needs_bytes,
                      std::int64_t cap_bytes) {
  Profile profile = empty_profile();
  for (std::size_t b = 0; b < whole_us.size(); ++b) {
    profile.catalog.buckets.push_back(bucket_named("b" + std::to_string(b), 100 + static_cast<std::int64_t>(b)));
  }
  for (std::size_t b = 0; b < whole_us.size(); ++b) {
    Price price;
    price.time = {whole_us[b]};
    price.memory = {needs_bytes[b]};
    profile.set_prices(static_cast<BucketIndex>(b), {price});
  }
  profile.memory_usable = {cap_bytes};
  return profile;
}

Batch counted_batch(const Profile& profile, const std::vector<int>& counts, int ranks) {
  Batch batch;
  batch.ranks = ranks;
  batch.catalog = profile.catalog;
  for (std::size_t b = 0; b < counts.size(); ++b) {
    for (int i = 0; i < counts[b]; ++i) {
      batch.sequences.push_back({std::to_string(b) + "-" + std::to_string(i), static_cast<BucketIndex>(b), ""});
    }
  }
  return batch;
}

PlanOptions patient_options() {
  PlanOptions options;
  options.time_limit_s = 300;
  return options;
}

}  // namespace zellige::testing
