// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/collective.h"
#include "zellige/step_timer.h"

namespace zellige {

/// Runs of one placement, until they agree.
struct Sample {
  double seconds = 0;  ///< median
  double spread = 0;   ///< relative standard deviation
  int repeats = 0;
  std::int64_t peak_bytes = 0;
};

/// `count` sequences of one bucket under one configuration on each of as many disjoint sets of neighbouring ranks as
/// there are, so that all ranks are as busy as in a step.
Placement uniform_placement(const Catalog& catalog, const Bucket& bucket, Configuration config, int ranks, int count);

/// How many sequences make about `tokens` tokens on a rank; at least 1.
int sequences_for(const Bucket& bucket, Configuration config, Tokens tokens);

/// Runs what the timer was begun with once unmeasured, then until the spread is below the options' (min_repeats at the
/// least), max_repeats are done, or the runs have taken `allowed_s`; at least once.
/// Collective; every rank gets the same.
Sample measure(StepTimer& timer, const CalibrateOptions& options, double allowed_s);

/// Gradients of all parameters summed over the ranks, in buckets as in training; and one AdamW update of them. Seconds.
struct StepEnd {
  double gradient_sync_s = 0;
  double optimizer_s = 0;
};
StepEnd measure_step_end(const Together& together, const WanConfig& config, const WanTransformer::Options& precision);

}  // namespace zellige
