// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "zellige/catalog.h"
#include "zellige/env.h"
#include "zellige/profile.h"

namespace zellige {

/// How to measure. The same on every rank.
struct CalibrateOptions {
  Catalog catalog;
  int text_dim = 4096;             ///< channels of the text encoder
  std::string precision = "fp32";  ///< of the layers: "fp32", "fp64" or "bf16" (parameters then in fp32)
  Menu menu = Menu::powers_of_two;
  bool checkpointing = true;
  /// Blocks of the model that is measured; its time is scaled to all of them and checked against all at a few points.
  /// 0: one, or all of a model that has at most two.
  int depth = 0;
  /// Tokens that a measurement should put on a rank: as many sequences of a bucket as make them, at least one.
  Tokens tokens_per_rank{32768};
  int min_repeats = 3, max_repeats = 12;
  double spread = 0.01;       ///< a point is done when its relative standard deviation is below this
  double budget_s = 600;      ///< time for all; what is not measured by then is interpolated, extrapolated or estimated
  double longest_run_s = 60;  ///< a point whose single run is expected to take longer is not measured
  /// Library that registers FlashAttention-3's operators; empty: what the process has registered already.
  std::string flash_attention_3;
  std::string device;  ///< of built_in_profile: estimates of what is not measured are scaled from it
  /// Measurements so far as JSON, after each point, on rank 0; what a later call takes as `resume`.
  std::function<void(const std::string&)> save;
  std::string resume;  ///< rank 0's counts
  /// Rank 0: part done (0 to 1, by expected time) and what is being measured.
  std::function<void(double done, const std::string& what)> progress;
  std::stop_token stop;  ///< any rank's: ends as when the budget is spent
};

/// On which ranks to measure.
struct CalibrateRanks {
  std::string backend = "threads";  ///< or "nccl": this process is one of those that torchrun --no-python started
  int count = 1;                    ///< thread ranks
  int threads_per_rank = 1;         ///< threads backend
  Env env;                          ///< nccl: what the launcher says
};

/// One measured point.
struct MeasuredPoint {
  Tokens tokens;
  Configuration config;
  int sequences = 1;       ///< of a rank set at once
  double time_us = 0;      ///< of a sequence and participating rank, `depth` blocks and the ends, fixed cost taken out
  double exchange_us = 0;  ///< of a sequence: its exchanges alone, `depth` blocks
  double spread = 0;       ///< relative standard deviation of the runs
  int repeats = 0;
  std::int64_t peak_bytes = 0;  ///< most that a rank allocated for these sequences, inputs included
  bool operator==(const MeasuredPoint&) const = default;
};

/// A step of all blocks, measured and predicted from the points by the additive model.
struct DepthCheck {
  Tokens tokens;
  Configuration config;
  int sequences = 1;
  double measured_us = 0, predicted_us = 0;
};

/// What was measured, and what follows.
struct Calibration {
  Profile profile;
  int depth = 0;
  double fixed_us = 0;  ///< of a run of `depth` blocks without sequences
  double token_us = 0;  ///< of a token in the ends (embedding, head, loss), beside the blocks
  double gradient_sync_us = 0;
  double optimizer_us = 0;
  std::vector<MeasuredPoint> points;
  std::vector<DepthCheck> checks;
  Rank rank = 0;          ///< this process's first; results are equal on all
  bool complete = false;  ///< no point was left out for want of time
  double elapsed_s = 0;
};

/// The Hardware Profiler (paper section IV-B): measures P(bucket, configuration) of every legal configuration of up to
/// as many ranks as the group has, by running real transformer blocks through the engine (forward, recomputation,
/// backward) at real sizes on all ranks at once, several sequences at a time where the engine would coalesce them.
/// A price is the time that one more sequence adds; what a step costs without any is `step_base`: the fixed cost of
/// all blocks, gradient sync and optimizer. Configurations of more ranks than the group has are estimated: the
/// device's built-in estimate times measured / estimated of the largest measured degree.
/// Memory: the analytical model's needs, M_base measured (parameters, gradients, optimizer states), M_usable what the
/// device has (a GPU: total less what others use; a CPU: physical memory over the ranks), less what the allocator was
/// seen to keep beside.
/// Errors: Code::input for options that make no sense or a `resume` of another run; as join_world and the engine.
Calibration calibrate(const CalibrateOptions& options, const CalibrateRanks& ranks);

}  // namespace zellige
