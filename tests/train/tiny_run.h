// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model and data of a few tokens, and loss and gradients of one step under any placement.

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "engine/torch.h"
#include "train/rank_trainer.h"
#include "zellige/planner.h"
#include "zellige/profile.h"
#include "zellige/thread_ranks.h"

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

struct Outcome {
  double loss = 0;
  std::vector<at::Tensor> gradients;
  std::vector<std::string> names;
};

/// Loss and gradients of step `step` on as many thread ranks as the placement has. Expects every rank to end with the
/// same ones.
inline Outcome run_step(const TrainConfig& config, const Batch& batch, const Placement& placement,
                        std::int64_t step = 0) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(placement.ranks));
  run_thread_ranks(placement.ranks, [&](Rank rank, c10::intrusive_ptr<c10d::ProcessGroup> group) {
    RankTrainer trainer(config, rank, std::move(group));
    Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    outcome.loss = trainer.run(batch, placement, step);
    outcome.names = trainer.model().names();
    for (const at::Tensor& parameter : trainer.model().parameters()) {
      outcome.gradients.push_back(parameter.grad().clone());
    }
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.loss, outcomes[0].loss);
    for (std::size_t i = 0; i < outcome.gradients.size(); ++i) {
      EXPECT_TRUE(at::equal(outcome.gradients[i], outcomes[0].gradients[i])) << outcome.names[i];
    }
  }
  return outcomes[0];
}

/// ||a - b|| / ||b||, in fp64.
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  const double norm = b.to(at::kDouble).norm().item<double>();
  return (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>() / norm;
}

inline void expect_same(const Outcome& found, const Outcome& wanted, double tolerance) {
  EXPECT_NEAR(found.loss, wanted.loss, tolerance * wanted.loss);
  ASSERT_EQ(found.gradients.size(), wanted.gradients.size());
  for (std::size_t i = 0; i < found.gradients.size(); ++i) {
    EXPECT_LE(distance(found.gradients[i], wanted.gradients[i]), tolerance) << found.names[i];
  }
}

}  // namespace zellige::testing
