// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "zellige/calibrate.h"
#include "zellige/catalog.h"
#include "zellige/engine.h"
#include "zellige/model.h"
#include "zellige/placement.h"

namespace zellige {

/// Measures on a group that is there already. Collective: every rank of the group, with equal options but for the
/// callbacks. Errors: as the other `calibrate`, the same on every rank.
Calibration calibrate(const c10::intrusive_ptr<c10d::ProcessGroup>& group, at::Device device,
                      const CalibrateOptions& options);

/// Runs one placement's forward and backward pass for real and tells what it takes, as the profiler does for its own.
/// Collective, one object a rank.
class StepTimer {
 public:
  /// @param depth  blocks; the model's own where 0
  StepTimer(c10::intrusive_ptr<c10d::ProcessGroup> group, const WanConfig& model,
            const WanTransformer::Options& options, int depth, bool checkpointing, const EngineOptions& engine = {});
  ~StepTimer();
  StepTimer(StepTimer&&) noexcept;

  struct Run {
    double seconds = 0;           ///< the slowest rank's, from a common start
    double own_seconds = 0;       ///< this rank's
    double waiting_seconds = 0;   ///< of these, for exchanges; host time
    std::int64_t peak_bytes = 0;  ///< most that this rank allocated for the placement: all but parameters and gradients
    std::int64_t most_bytes = 0;  ///< the largest of the ranks' peaks
  };
  /// Takes a placement and makes inputs for it: noise, equal on every call. @param catalog  has its buckets
  void begin(const Placement& placement, const Catalog& catalog);
  /// One forward and backward pass.
  Run run();
  /// The exchanges of one pass alone, all blocks, in seconds of the slowest rank.
  double exchange();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What prices measured in this process are good for. @param group_ranks  0: not known
ProfileKey key_of_this_device(at::Device device, bool checkpointing, at::ScalarType compute, int group_ranks);

}  // namespace zellige
