// SPDX-License-Identifier: Apache-2.0
#include "zellige/score.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "base/json.h"
#include "placement/rank_sums.h"
#include "zellige/error.h"
#include "zellige/schedule.h"

namespace zellige {
namespace {

constexpr int kElementBytes = 2;  // bf16: what blocks compute in, and what travels

/// One layer's elements of one primitive, counted through the whole step.
void add_moved(Bytes& total, double elements_a_layer, const ModelGeometry& model) {
  constexpr double kMost = 0x1p62;
  const double bytes = elements_a_layer * model.layers * kElementBytes;
  if (!(bytes < kMost)) throw Error(Code::input, "placement.score", "the bytes moved go beyond 64 bits");
  add_checked(total.value, std::llround(elements_a_layer) * model.layers * kElementBytes);
}

}  // namespace

Score score(const Placement& placement, const Profile& profile, const LoadModel& model) {
  check_load_model(model);
  if (placement.model != profile.catalog.model) {
    throw Error(Code::input, "placement.score",
                "the placement is for model " + in_quotes(placement.model.name) + ", the profile for " +
                    in_quotes(profile.catalog.model.name) + " or for other sizes under that name");
  }
  const PriceLookup prices(profile);
  RankSums sums = rank_sums(placement, prices, model);
  Score score;
  score.tokens.resize(sums.load.size());
  std::int64_t whole_us = 0;
  // A checkpointed block keeps its input alone, so its forward pass runs twice, exchanges and all; keep_kv bridges from
  // the second run to the block's backward pass and saves nothing between the two runs.
  const int forward_runs = profile.key.checkpointing ? 2 : 1;
  for (const PlacedSequence& sequence : placement.sequences) {
    add_checked(whole_us, prices.whole(sequence).time.value);
    const int degree = sequence.config.degree();
    for (int i = 0; i < degree; ++i) {
      const auto rank = static_cast<std::size_t>(sequence.ranks[static_cast<std::size_t>(i)]);
      add_checked(score.tokens[rank].value, chunk(sequence.tokens.value, degree, i).count);
    }
    if (degree == 1) continue;
    const ExchangeVolume forward = forward_volume(placement.model, sequence.tokens, sequence.config);
    const ExchangeVolume backward =
        backward_volume(placement.model, sequence.tokens, sequence.config, placement.exec.keep_kv);
    add_moved(score.moved.all_gather, forward_runs * forward.all_gather + backward.all_gather, placement.model);
    add_moved(score.moved.ulysses, forward_runs * forward.ulysses + backward.ulysses, placement.model);
    add_moved(score.moved.ring, forward_runs * forward.ring + backward.ring, placement.model);
  }

  score.makespan = sums.makespan;
  score.split_count = sums.split_count;
  score.step = sums.makespan;
  add_checked(score.step.value, profile.step_base.value);
  for (const Bytes need : sums.memory) score.peak = std::max(score.peak, need);
  add_checked(score.peak.value, profile.memory_base.value);
  const double ranks = std::max(placement.ranks, 1);
  const double floor_us = static_cast<double>(whole_us) / ranks;  // F
  score.floor = {whole_us / std::max(placement.ranks, 1)};
  const double makespan_us = static_cast<double>(sums.makespan.value);
  if (whole_us > 0) score.over_floor = makespan_us / floor_us - 1;
  const double mean_us =
      std::accumulate(sums.load.begin(), sums.load.end(), 0.0,
                      [](double sum, Microseconds load) { return sum + static_cast<double>(load.value); }) /
      ranks;
  if (mean_us > 0) score.imbalance = makespan_us / mean_us;
  score.load = std::move(sums.load);
  score.exchange = std::move(sums.exchange);
  score.memory = std::move(sums.memory);
  return score;
}

}  // namespace zellige
