// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "zellige/manifest.h"
#include "zellige/planner.h"

namespace zellige {

/// How to look through an epoch.
struct DryRunOptions {
  DrawOptions draw;
  std::string method = "zellige";
  /// As a training run would plan. The method's own solver answers first; `ortools` is asked only where that one found
  /// no placement without proving that there is none.
  PlanOptions plan;
  std::size_t listed = 5;    ///< steps kept of each kind: longest, largest, without a placement
  double time_limit_s = 60;  ///< wall time after which the rest of the epoch, or of the remedies, is left out
  /// Called now and then: steps planned so far, samples of the first epoch drawn so far, and of how many.
  std::function<void(std::int64_t steps, std::int64_t drawn, std::int64_t samples)> progress;
  std::stop_token stop;  ///< ends early, like the time limit
};

/// A change after which a step that had no placement has one. Each was tried: the step was planned again with it.
struct Remedy {
  enum class Kind {
    all_degrees,     ///< configurations of every degree up to 16, not only of powers of two
    checkpointing,   ///< activation checkpointing
    more_ranks,      ///< `value` ranks for the same batch
    fewer_frames,    ///< the samples of `bucket` in a bucket of its size and `value` frames, the most that fit
    smaller_bucket,  ///< the samples of `bucket` in the bucket of index `value`, the longest of its kind that fits
    fewer_tokens,    ///< `value` tokens a rank: the whole epoch was drawn again with it, and every step has a placement
  };
  Kind kind = Kind::more_ranks;
  BucketIndex bucket = 0;  ///< of the samples that are changed, where some are
  std::int64_t value = 0;  ///< 0 where the kind says all
  Configuration config;    ///< what those samples then run as at the least, where `bucket` counts
  Bytes need;              ///< what that takes of each of its ranks
};

/// A sample that makes a step run out of memory.
struct OversizedSample {
  SequenceIndex sequence = 0;  ///< in the step's batch
  Configuration config;        ///< of the menu, the one that takes the least memory of a rank
  Bytes need;                  ///< of each of its ranks
  /// What exceeds the memory cap. 0: it fits alone, but without it the rest of the batch would fit.
  Bytes over;
};

/// One step of the epoch.
struct DryRunStep {
  std::int64_t number = 0;  ///< from 0
  Batch batch;
  PlanStatus status = PlanStatus::unknown;
  std::string reason;  ///< the planner's, where there is no placement
  Microseconds time;   ///< predicted: makespan + step_base
  Bytes peak;          ///< predicted: largest need of a rank + memory_base
  int split_count = 0;
  std::vector<OversizedSample> oversized;  ///< where there is no placement
  std::vector<Remedy> remedies;            ///< likewise; empty when none of those tried helps

  bool has_placement() const { return status == PlanStatus::optimal || status == PlanStatus::feasible; }
};

/// What an epoch holds.
struct DryRun {
  bool complete = false;            ///< every sample of a wanted kind was drawn
  std::int64_t steps = 0;           ///< looked at
  std::int64_t compositions = 0;    ///< distinct ones: steps of as many samples a bucket are planned once
  std::int64_t samples = 0;         ///< in buckets of the kinds that are drawn from
  std::int64_t drawn = 0;           ///< of these, drawn at least once
  std::int64_t out_of_memory = 0;   ///< steps without a placement, proved or none found
  std::int64_t undecided = 0;       ///< steps for which the planner's time limit was too short
  Microseconds total_time;          ///< predicted, over the steps with a placement
  std::vector<DryRunStep> longest;  ///< by time, the worst first; equal ones in order of steps
  std::vector<DryRunStep> largest;  ///< by peak, likewise
  std::vector<DryRunStep> failing;  ///< the first that have no placement, with what would help each
  std::vector<Remedy> remedies;     ///< of the whole run: fewer tokens a rank, where that helps every step
  double elapsed_s = 0;
};

/// Draws every batch of one epoch as a training run would, plans each, and keeps the worst: no GPU, no engine.
/// An epoch is over when each sample of a kind that is drawn from has come at least once (the other kind may begin
/// again meanwhile). Whether a step runs out of memory is decided as in training: the planner finds a placement within
/// the profile's memory cap or not. Deterministic where no time limit is met.
/// @param samples  of `manifest`; must be in the profile with the same numbers (match_buckets)
/// Errors: Code::input as BatchDrawer, Planner and match_buckets say. Threads: any number of concurrent calls.
DryRun dry_run(const Manifest& manifest, const BucketedSamples& samples, const Profile& profile,
               const DryRunOptions& options);

std::string_view name(Remedy::Kind kind);  ///< "more-ranks", ...

}  // namespace zellige
