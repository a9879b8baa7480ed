// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <memory>
#include <mutex>

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

/// Draws, plans and checks each step once, for all thread ranks of a process. Threads: any rank may call.
class StepSource {
 public:
  /// Reads manifest, rules and profile. Errors: as `train`.
  StepSource(const TrainConfig& config, const TrainHooks& hooks);

  /// The plan of step `step`, made by whichever rank asks first; null when the run is to stop before it. Every rank
  /// asks for each step once, in order, and gets the same answer or the same error.
  std::shared_ptr<const PlannedStep> get(int step);

  /// Throws what `get` threw, if it did: the run's error, without the rank that happened to meet it first.
  void rethrow_error();

  const Profile& profile() const { return profile_; }

 private:
  std::shared_ptr<const PlannedStep> make(int step);

  const TrainConfig& config_;
  const TrainHooks& hooks_;
  Manifest manifest_;
  BucketedSamples samples_;
  Profile profile_;
  std::unique_ptr<BatchDrawer> drawer_;
  std::unique_ptr<Planner> planner_;

  std::mutex mutex_;  // guards what follows and the drawer
  int made_ = -1;     // the newest step asked for
  std::shared_ptr<const PlannedStep> newest_;
  std::exception_ptr error_;
};

}  // namespace zellige
