// SPDX-License-Identifier: Apache-2.0
#include "testing/mixed_batches.h"

#include <algorithm>
#include <cmath>

#include "zellige/error.h"

namespace zellige::testing {
namespace {

double between(RandomEngine& engine, double low, double high) { return low + (high - low) * draw_unit(engine); }

template <class T>
const T& pick(RandomEngine& engine, const std::vector<T>& items) {
  return items[draw_below(engine, items.size())];
}

/// Sequences of these buckets, in the order of the buckets.
void fill(Batch& batch, const std::vector<std::int64_t>& counts) {
  for (std::size_t b = 0; b < counts.size(); ++b) {
    for (std::int64_t i = 0; i < counts[b]; ++i) {
      batch.sequences.push_back({"s" + std::to_string(batch.sequences.size()), static_cast<BucketIndex>(b), ""});
    }
  }
}

void add_noise(Profile& profile, double noise, RandomEngine& engine) {
  for (std::size_t b = 0; b < profile.catalog.buckets.size(); ++b) {
    const auto menu = profile.menu(static_cast<BucketIndex>(b));
    std::vector<Price> prices(menu.begin(), menu.end());
    for (Price& price : prices) {
      const double time = static_cast<double>(price.time.value) * (1 + between(engine, -noise, noise));
      price.time = {std::max<std::int64_t>(price.exchange.value + 1, std::llround(time))};
    }
    profile.set_prices(static_cast<BucketIndex>(b), prices);
  }
}

Instance suite_instance(RandomEngine& engine, int ranks) {
  Instance instance;
  const std::string workload = pick(engine, workload_suites()) + ":V" + std::to_string(10 + draw_below(engine, 91));
  instance.batch = make_workload(workload, ranks);
  shuffle(instance.batch.sequences, engine);
  instance.batch.sequences.resize(instance.batch.sequences.size() * (1 + draw_below(engine, 4)) / 4);
  instance.profile = built_in_profile(pick(engine, std::vector<std::string>{"h200", "a800", "a6000"}),
                                      instance.batch.catalog, true, ranks);
  add_noise(instance.profile, between(engine, 0, 0.03), engine);
  return instance;
}

/// A model that some family might have, small enough for every built-in device.
ModelGeometry random_model(RandomEngine& engine) {
  ModelGeometry model = model_preset("tiny");
  model.name = "a test's";
  model.heads = pick(engine, std::vector<int>{5, 12, 15, 16, 24, 30, 40});
  std::vector<int> divisors;
  for (int d = 1; d <= model.heads; ++d) {
    if (model.heads % d == 0) divisors.push_back(d);
  }
  model.kv_heads = draw_below(engine, 2) == 0 ? model.heads : pick(engine, divisors);
  model.head_dim = pick(engine, std::vector<int>{64, 128});
  // At most about three billion parameters: 16 d^2 a layer.
  const double of_layer = 16.0 * model.width() * model.width();
  model.layers = 1 + static_cast<int>(draw_below(engine, std::min<std::uint64_t>(24, 3e9 / of_layer)));
  model.ffn = 4 * model.width();
  model.text = pick(
      engine, std::vector<TextPlacement>{TextPlacement::cross, TextPlacement::joint_front, TextPlacement::joint_rear});
  model.text_tokens = static_cast<int>(draw_below(engine, 600));
  return model;
}

Instance model_instance(RandomEngine& engine, int ranks) {
  Instance instance;
  Catalog& catalog = instance.batch.catalog;
  catalog.model = random_model(engine);
  std::vector<std::int64_t> counts;
  for (std::size_t b = 0; b < 2 + draw_below(engine, 5); ++b) {
    Bucket bucket;
    bucket.name = "b" + std::to_string(b);
    bucket.kind = draw_below(engine, 2) == 0 ? MediaKind::image : MediaKind::video;
    bucket.frames = bucket.kind == MediaKind::image ? 1 : 1 + 4 * static_cast<int>(1 + draw_below(engine, 40));
    bucket.height = 16 * static_cast<int>(4 + draw_below(engine, 40));
    bucket.width = 16 * static_cast<int>(4 + draw_below(engine, 40));
    bucket.tokens = sequence_tokens(catalog.model, bucket.frames, bucket.height, bucket.width);
    catalog.buckets.push_back(bucket);
    const auto most = static_cast<std::uint64_t>(bucket.kind == MediaKind::image ? 20 * ranks : 1 + ranks / 2);
    counts.push_back(static_cast<std::int64_t>(draw_below(engine, std::min<std::uint64_t>(most, 2000))));
  }
  instance.batch.ranks = ranks;
  fill(instance.batch, counts);
  instance.profile = built_in_profile(pick(engine, std::vector<std::string>{"h200", "a800"}), catalog,
                                      draw_below(engine, 4) != 0, ranks);
  return instance;
}

InstanceShape random_shape(RandomEngine& engine, int ranks) {
  InstanceShape shape;
  shape.ranks = ranks;
  shape.buckets = 1 + static_cast<int>(draw_below(engine, 5));
  shape.sequences = 1 + static_cast<int>(draw_below(engine, 3 * std::min(ranks, 300)));
  shape.largest_degree = std::min(ranks, 16);
  shape.configurations_a_degree = 1 + static_cast<int>(draw_below(engine, 3));
  shape.longest_whole_us = draw_below(engine, 2) == 0 ? 20 : 1'000'000;
  return shape;
}

/// `lengths` in thousandths of the longest, as many of each as `counts` says; prices fall with the degree, 1-8% dearer
/// each time it doubles, and memory goes with the length.
Instance ruled_instance(RandomEngine& engine, int ranks, const std::vector<double>& relative_work,
                        const std::vector<std::int64_t>& counts, double room) {
  Instance instance;
  Profile& profile = instance.profile;
  profile.catalog.model = model_preset("tiny");
  profile.key.device = "a test";
  for (std::size_t b = 0; b < relative_work.size(); ++b) {
    Bucket bucket;
    bucket.name = "b" + std::to_string(b);
    bucket.height = 16;
    bucket.width = static_cast<int>(16 * (100 + b));
    bucket.tokens = {static_cast<std::int64_t>(100 + b)};
    profile.catalog.buckets.push_back(bucket);
  }
  double memory = 0, smallest = 0;
  for (std::size_t b = 0; b < relative_work.size(); ++b) {
    const double whole_us = 1e6 * relative_work[b];
    const double need = 1e6 * std::sqrt(relative_work[b]) * between(engine, 0.8, 1.2);
    const double overhead = between(engine, 0.01, 0.08);
    std::vector<Price> prices;
    double least = need;
    for (const Configuration config :
         zellige::menu(profile.catalog.model, profile.catalog.buckets[b].tokens, ranks, Menu::all)) {
      const int degree = config.degree();
      Price price;
      price.config = config;
      const double more = 1 + overhead * std::log2(degree) + (degree > 1 ? between(engine, 0, 0.03) : 0);
      price.time = {std::max<std::int64_t>(1, std::llround(whole_us / degree * more))};
      price.memory = {std::llround(need / degree * (degree > 1 ? between(engine, 1, 1.3) : 1))};
      least = std::min(least, static_cast<double>(price.memory.value));
      prices.push_back(price);
    }
    profile.set_prices(static_cast<BucketIndex>(b), prices);
    memory += need * static_cast<double>(counts[b]);
    if (counts[b] > 0) smallest = std::max(smallest, least);
  }
  profile.memory_usable = {std::llround(std::max(memory / ranks * room, smallest)) + 1};
  instance.batch.ranks = ranks;
  instance.batch.catalog = profile.catalog;
  fill(instance.batch, counts);
  shuffle(instance.batch.sequences, engine);
  return instance;
}

}  // namespace

const std::vector<std::string>& mixed_classes() {
  static const std::vector<std::string> classes = {"suite", "model",      "random-prices", "memory-tight",
                                                   "giant", "many-equal", "short-clips"};
  return classes;
}

int mixed_ranks(RandomEngine& engine, int most) {
  if (draw_below(engine, 5) < 3) return 2 + static_cast<int>(draw_below(engine, std::min(most, 16) - 1));
  int ranks = 1 << (1 + draw_below(engine, 10));
  ranks += static_cast<int>(draw_below(engine, 3)) - 1;
  return std::clamp(ranks, 2, most);
}

Instance mixed_instance(const std::string& which, int ranks, std::uint64_t seed) {
  RandomEngine engine(seed);
  if (which == "suite") return suite_instance(engine, ranks);
  if (which == "model") return model_instance(engine, ranks);
  if (which == "random-prices" || which == "memory-tight") {
    InstanceShape shape = random_shape(engine, ranks);
    shape.memory_over_mean = which == "memory-tight" ? between(engine, 0.98, 1.35) : between(engine, 1.5, 4);
    return random_instance(engine, shape);
  }
  const auto count = [&](std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(draw_below(engine, static_cast<std::uint64_t>(most - least + 1)));
  };
  const std::int64_t n = std::min(ranks, 300);
  if (which == "giant") {
    return ruled_instance(engine, ranks, {between(engine, 20, 60), between(engine, 0.5, 2), between(engine, 0.01, 0.1)},
                          {1, count(0, n), count(0, 10 * n)}, between(engine, 1.5, 4));
  }
  if (which == "many-equal") {
    return ruled_instance(engine, ranks, {between(engine, 0.1, 10)}, {count(n, 5 * n)}, between(engine, 1.3, 4));
  }
  if (which == "short-clips") {
    std::vector<double> work = {between(engine, 5, 20), between(engine, 2, 5)};
    std::vector<std::int64_t> counts = {count(1, n), count(0, n)};
    for (int b = 0; b < 4; ++b) {
      work.push_back(0.05 * std::exp(between(engine, 0, 2)));
      counts.push_back(count(20, 200));
    }
    return ruled_instance(engine, ranks, work, counts, between(engine, 1.5, 3));
  }
  throw Error(Code::input, "testing.mixed_instance", "class '" + which + "' is not one");
}

}  // namespace zellige::testing
