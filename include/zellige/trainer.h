// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "zellige/batch.h"
#include "zellige/catalog.h"
#include "zellige/env.h"
#include "zellige/flow.h"
#include "zellige/placement.h"
#include "zellige/planner.h"
#include "zellige/profile.h"

namespace zellige {

/// In what precision a model is trained. bf16: parameters and optimizer in fp32, layers in bf16.
enum class Precision { fp32, fp64, bf16 };

/// A training run, as train.toml describes it (docs/concepts/training.md lists the keys). Member names follow the
/// file's tables and keys.
struct TrainConfig {
  std::string path;  ///< of the file; empty when made in code

  ModelGeometry model;  ///< [model] preset, or sizes
  int text_dim = 4096;  ///< [model] channels of the text encoder

  struct Data {
    std::string manifest;               ///< any that read_manifest takes
    std::string rules;                  ///< bucket rules
    std::string latents = "synthetic";  ///< made up from sample and place; the only kind so far
  } data;
  struct Draw {
    Tokens tokens_per_rank;
    std::optional<double> video_share;  ///< none: the rules'
    std::uint64_t seed = 0;
  } batch;
  struct Planning {
    std::string profile;  ///< a built-in one by name, or a file
    std::string method = "zellige";
    PlanOptions options;  ///< menu, time_limit_s, engine, overlap, waves, keep_kv
  } plan;
  struct Ranks {
    std::string backend = "threads";  ///< or "nccl": one process a GPU, started by torchrun
    int count = 1;                    ///< N
    int threads_per_rank = 1;         ///< threads backend
    double timeout_s = 600;           ///< a collective that one rank does not join by then fails on all
  } ranks;
  struct Optimizer {
    double lr = 1e-4;
    std::array<double, 2> betas{0.9, 0.999};
    double eps = 1e-8;
    double weight_decay = 0.01;
    double clip_norm = 1;  ///< largest 2-norm of all gradients together; 0: no limit
  } optimizer;
  FlowOptions flow;  ///< [flow]; its seed is run.seed
  struct Run {
    int steps = 1;
    bool checkpointing = true;
    Precision precision = Precision::fp32;
    std::string kernel;          ///< EngineOptions::kernel; empty: the best for each shape
    bool deterministic = false;  ///< EngineOptions::deterministic
    std::uint64_t seed = 0;      ///< of weights, noise and synthetic data
    std::string log;             ///< where the command writes the step log, JSON lines; empty: nowhere
    std::string report;          ///< where the command writes the page; empty: nowhere
  } run;
};

/// Reads train.toml, strictly: an unknown or misspelt key, a wrong type, a value out of range is refused by name.
/// Manifest, rules and a profile's file are relative to the folder of train.toml; log and report to where one stands.
/// Errors: Code::input, naming file, table, key and value.
TrainConfig read_train_config(const std::string& path);

/// What one rank did in a step. Times of a thread rank include waiting for a core where there are fewer than ranks.
struct RankRecord {
  Tokens tokens;                    ///< owned
  Microseconds predicted;           ///< load by the profile, without step_base
  Microseconds measured;            ///< forward, backward, optimizer: from the step's start to its end on this rank
  Microseconds computing;           ///< of these, time in which this rank's thread had a core
  Microseconds waiting;             ///< of `measured`, for exchanges of attention: what no computing hid
  Bytes all_gather, ulysses, ring;  ///< payload sent to other ranks by attention, all layers and passes
  std::int64_t collectives = 0;     ///< exchanges of attention made, empty ones included
  Microseconds waiting_a, waiting_ring, waiting_b;  ///< `waiting` by what it waited for (schedule.h, Phase)
};

/// One line of the step log.
struct StepRecord {
  int step = 0;              ///< from 0
  double loss = 0;           ///< of the whole batch, wherever its samples lay
  double gradient_norm = 0;  ///< before clipping
  int sequences = 0;
  int split_count = 0;
  std::string method, solver, data;  ///< `data`: "synthetic"
  PlanStatus status = PlanStatus::unknown;
  Microseconds makespan;   ///< predicted, without step_base
  Microseconds predicted;  ///< predicted step: makespan + step_base
  Microseconds measured;   ///< longest rank
  Microseconds planning;   ///< time the planner took
  std::vector<RankRecord> ranks;
};

/// The record as one line of JSON, without the newline; units in the names.
std::string json_line(const StepRecord& record);

/// What the library needs from its host, and tells it. Callbacks come from one thread at a time, in order of steps; of
/// several processes, on rank 0 only.
struct TrainHooks {
  /// A step's plan is made and checked.
  std::function<void(int step, const Batch&, const Plan&, const Profile&)> planned;
  /// A step is done on all ranks.
  std::function<void(const StepRecord&)> stepped;
  std::string ortools;   ///< as PlanOptions::ortools
  Env env;               ///< where this process stands among others, for backend "nccl"
  std::stop_token stop;  ///< ends the run before the next step; from `planned`, before the step just planned
};

/// Trains: for each step draws a batch, plans it, checks the plan, lowers it, and runs forward and backward on all
/// ranks with one gradient sync and one AdamW update.
/// Returns the records of all steps, fewer when stopped.
/// Errors: Code::input for a configuration or data that can't be; Code::infeasible or Code::timeout when a batch has no
///   plan, Code::internal when the checker refuses a plan: all ranks end with the same error before any of them enters
///   a collective; Code::communication when ranks fail; with backend "nccl" what join_world says; Code::input for a
///   loss, gradients or updated parameters that are no numbers, naming step and value, and for more thread ranks than
///   this machine's memory holds.
std::vector<StepRecord> train(const TrainConfig& config, const TrainHooks& hooks = {});

/// How the first step by plan compares with the same batch on one rank.
struct Parity {
  double loss = 0;                 ///< by plan, on all ranks
  double loss_one_rank = 0;        ///< every sequence whole, one rank
  double loss_difference = 0;      ///< |loss - loss_one_rank| / loss_one_rank
  double gradient_difference = 0;  ///< largest over parameters of ||difference|| / ||gradient on one rank||
  std::string parameter;           ///< which parameter that is
};

/// Runs loss and gradients of the first step twice, by its plan and on one rank, and compares. Changes nothing else.
/// Errors: as `train`.
Parity first_step_parity(const TrainConfig& config, const TrainHooks& hooks = {});

}  // namespace zellige
