// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "zellige/placement.h"

/// Random batches with a plan that is right in every claim, computed here and not by the code under test.
namespace zellige::random_plan {

struct Instance {
  Batch batch;
  Profile profile;
  Plan plan;
};

inline std::int64_t between(RandomEngine& engine, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(draw_below(engine, static_cast<std::uint64_t>(most - least + 1)));
}

inline std::string numbered(char prefix, std::int64_t number) {
  std::string text = std::to_string(number);
  text.insert(text.begin(), prefix);
  return text;
}

/// Distinct ranks in random (coordinate) order.
inline std::vector<Rank> draw_ranks(RandomEngine& engine, int num_ranks, int degree) {
  std::vector<Rank> ranks(static_cast<std::size_t>(num_ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  shuffle(ranks, engine);
  ranks.resize(static_cast<std::size_t>(degree));
  return ranks;
}

inline Catalog draw_catalog(RandomEngine& engine) {
  const bool grouped = draw_below(engine, 3) == 0;
  Catalog catalog{.model = {.name = "random",
                            .heads = 12,
                            .kv_heads = grouped ? 4 : 12,
                            .head_dim = 8,
                            .layers = static_cast<int>(between(engine, 1, 5)),
                            .ffn = 64,
                            .vae_stride = {4, 8, 8},
                            .patch = {1, 2, 2},
                            .text_tokens = 4,
                            .text = TextPlacement::cross},
                  .buckets = {}};
  const auto count = between(engine, 1, 5);
  for (std::int64_t i = 0; i < count; ++i) {
    Bucket& bucket = catalog.buckets.emplace_back();
    bucket.name.assign(1, static_cast<char>('a' + i));
    bucket.kind = draw_below(engine, 2) == 0 ? MediaKind::video : MediaKind::image;
    if (bucket.kind == MediaKind::video) bucket.frames = static_cast<int>(1 + 4 * between(engine, 1, 6));
    bucket.height = static_cast<int>(16 * between(engine, 1, 9));
    bucket.width = static_cast<int>(16 * between(engine, 1, 9));
    bucket.tokens = {((bucket.frames - 1) / 4 + 1) * std::int64_t{bucket.height / 16} * (bucket.width / 16)};
  }
  return catalog;
}

/// A plan whose every claim is pinned: optimal in all rounds, as CP-SAT may state it.
inline Instance draw(RandomEngine& engine, int most_ranks = 8, int most_sequences = 20) {
  Instance instance;
  Batch& batch = instance.batch;
  Profile& profile = instance.profile;
  Plan& plan = instance.plan;
  batch.ranks = static_cast<int>(between(engine, 1, most_ranks));
  batch.catalog = draw_catalog(engine);
  profile.catalog = batch.catalog;
  profile.step_base = {between(engine, 0, 1000)};
  profile.memory_base = {between(engine, 0, 1000)};
  profile.memory_usable = {std::int64_t{1} << 50};
  profile.key.checkpointing = draw_below(engine, 2) == 0;
  std::vector<std::vector<Price>> menus;
  for (std::size_t b = 0; b < batch.catalog.buckets.size(); ++b) {
    std::vector<Price> prices;
    for (const Configuration c : menu(batch.catalog.model, batch.catalog.buckets[b].tokens, batch.ranks, Menu::all)) {
      const std::int64_t time_us = between(engine, 1, 100'000);
      prices.push_back({.config = c,
                        .time = {time_us},
                        .exchange = {c.is_whole() ? 0 : between(engine, 0, time_us)},
                        .memory = {between(engine, 0, 1'000'000)}});
    }
    profile.set_prices(static_cast<BucketIndex>(b), prices);
    menus.push_back(std::move(prices));
  }

  plan.method = "joint";
  plan.solver = "cp-sat";
  plan.status = PlanStatus::optimal;
  plan.certified = true;
  plan.placement.ranks = batch.ranks;
  plan.placement.model = batch.catalog.model;
  plan.load.resize(static_cast<std::size_t>(batch.ranks));
  plan.memory.resize(static_cast<std::size_t>(batch.ranks));
  std::int64_t whole_us = 0;
  const auto count = between(engine, 1, most_sequences);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto b = static_cast<std::size_t>(draw_below(engine, menus.size()));
    const Bucket& bucket = batch.catalog.buckets[b];
    const Price& price = menus[b][static_cast<std::size_t>(draw_below(engine, menus[b].size()))];
    batch.sequences.push_back({numbered('s', i), static_cast<BucketIndex>(b), ""});
    plan.placement.sequences.push_back({batch.sequences.back().id, bucket.name, bucket.kind, bucket.tokens,
                                        price.config, draw_ranks(engine, batch.ranks, price.config.degree()),
                                        price.time, price.memory});
    for (const Rank rank : plan.placement.sequences.back().ranks) {
      plan.load[static_cast<std::size_t>(rank)] += price.time;
      plan.memory[static_cast<std::size_t>(rank)] += price.memory;
    }
    if (price.config.degree() > 1) ++plan.split_count;
    whole_us += menus[b][0].time.value;
  }
  plan.makespan = *std::max_element(plan.load.begin(), plan.load.end());
  plan.floor = {whole_us / batch.ranks};
  plan.certificate = {.anchor_load = plan.makespan,
                      .anchor_bound = plan.makespan,
                      .anchor_status = SolveStatus::optimal,
                      .split_count = plan.split_count,
                      .split_bound = plan.split_count,
                      .split_status = SolveStatus::optimal,
                      .makespan_bound = plan.makespan};
  plan.solve_time = {between(engine, 0, 1000)};
  plan.profile_digest = digest(profile);
  return instance;
}

}  // namespace zellige::random_plan
