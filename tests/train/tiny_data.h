// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model and data of a few tokens. Without torch.

#include <string>
#include <vector>

#include "zellige/planner.h"
#include "zellige/profile.h"
#include "zellige/trainer.h"

namespace zellige::testing {

inline ModelGeometry small_model() {
  ModelGeometry model = model_preset("tiny");
  model.name = "small";
  model.head_dim = 6;
  model.ffn = 20;
  model.text_tokens = 3;
  return model;
}

inline Bucket bucket(const char* name, int frames, int height, int width) {
  const MediaKind kind = frames == 1 ? MediaKind::image : MediaKind::video;
  return {name, kind, frames, height, width, sequence_tokens(small_model(), frames, height, width)};
}

/// Lengths that few degrees divide.
inline Catalog small_catalog() {
  return {small_model(),
          {bucket("image6", 1, 32, 48), bucket("image20", 1, 64, 80), bucket("video36", 9, 64, 48),
           bucket("video75", 17, 48, 80)}};
}

/// Sequences of these buckets, "s0", "s1", ...
inline Batch small_batch(int ranks, const std::vector<BucketIndex>& buckets) {
  Batch batch;
  batch.ranks = ranks;
  batch.catalog = small_catalog();
  for (const BucketIndex index : buckets) {
    batch.sequences.push_back({std::string("s").append(std::to_string(batch.sequences.size())), index, ""});
  }
  return batch;
}

/// Prices that make splitting pay even for these lengths: what a shard costs falls with the degree.
inline Profile small_profile() {
  const Catalog catalog = small_catalog();
  Profile profile = built_in_profile("cpu", catalog);
  for (std::size_t b = 0; b < catalog.buckets.size(); ++b) {
    std::vector<Price> prices;
    const std::int64_t tokens = catalog.buckets[b].tokens.value;
    for (const Configuration& config : menu(catalog.model, catalog.buckets[b].tokens, 16, Menu::all)) {
      const std::int64_t work = 1000 * tokens * tokens / config.degree();
      const std::int64_t exchange = config.is_whole() ? 0 : 20 * tokens;
      prices.push_back({config, {work + exchange}, {exchange}, {1000 * tokens}, PriceSource::estimated, {}});
    }
    profile.set_prices(static_cast<BucketIndex>(b), std::move(prices));
  }
  return profile;
}

inline TrainConfig small_config(Precision precision = Precision::fp64, bool checkpointing = false) {
  TrainConfig config;
  config.model = small_model();
  config.text_dim = 5;
  config.run.precision = precision;
  config.run.checkpointing = checkpointing;
  config.run.seed = 3;
  config.flow.seed = 3;
  return config;
}

struct Part {
  Configuration config;
  std::vector<Rank> ranks;
};

/// A placement made by hand; part i places sequence i.
inline Placement place(const Batch& batch, const std::vector<Part>& parts, const ExecOptions& exec = {}) {
  Placement placement;
  placement.ranks = batch.ranks;
  placement.model = batch.catalog.model;
  placement.exec = exec;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Bucket& of = batch.bucket_of(static_cast<SequenceIndex>(i));
    placement.sequences.push_back(
        {batch.sequences[i].id, of.name, of.kind, of.tokens, parts[i].config, parts[i].ranks, {}, {}});
  }
  return placement;
}

/// The same batch on one rank, every sequence whole.
inline Placement place_on_one_rank(Batch batch) {
  batch.ranks = 1;
  return place(batch, std::vector<Part>(batch.sequences.size(), Part{{}, {0}}));
}

}  // namespace zellige::testing
