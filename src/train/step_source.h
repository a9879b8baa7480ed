// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stop_token>

#include "zellige/manifest.h"
#include "zellige/trainer.h"

namespace zellige {

/// A step that all ranks are to run.
struct PlannedStep {
  Batch batch;
  Plan plan;
};

/// Refuses a step that can't run: without a plan, or with one that the checker finds wrong.
/// Errors: Code::infeasible, Code::timeout; Code::internal with every finding.
void require_sound(const PlannedStep& step, const Profile& profile, int number);

/// Draws, plans and checks each step once, for all thread ranks of a process, one step ahead: while a step runs, a
/// thread makes the next one's plan, so that a rank waits for it only where planning takes longer than a step. Plans do
/// not depend on that: drawing and planning see the same inputs in the same order. Threads: any rank may call.
class StepSource {
 public:
  /// Reads manifest, rules and profile. Errors: as `train`.
  StepSource(const TrainConfig& config, const TrainHooks& hooks);
  /// Cancels the plan under way and waits for its thread.
  ~StepSource();

  /// The plan of step `step`, made by whichever rank asks first; null when the run is to stop before it. Every rank
  /// asks for each step once, in order, and gets the same answer or the same error.
  std::shared_ptr<const PlannedStep> get(int step);

  /// Throws what `get` threw, if it did: the run's error, without the rank that happened to meet it first.
  void rethrow_error();

  const Profile& profile() const { return profile_; }

 private:
  /// Draws, plans and checks; null when the run is to stop before the step. One at a time.
  std::shared_ptr<const PlannedStep> make(int step);
  std::shared_ptr<const PlannedStep> take(int step);

  const TrainConfig& config_;
  const TrainHooks& hooks_;
  Manifest manifest_;
  BucketedSamples samples_;
  Profile profile_;
  std::unique_ptr<BatchDrawer> drawer_;
  std::unique_ptr<Planner> planner_;

  std::stop_source stop_;  // of planning: when the run is to stop, or is over
  std::stop_callback<std::function<void()>> on_run_stop_;

  std::mutex mutex_;  // guards what follows
  int made_ = -1;     // the newest step asked for
  std::shared_ptr<const PlannedStep> newest_;
  std::exception_ptr error_;
  std::future<std::shared_ptr<const PlannedStep>> ahead_;  // the step after the newest; last, so that it ends first
};

}  // namespace zellige
