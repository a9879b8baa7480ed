// SPDX-License-Identifier: Apache-2.0
#include "zellige/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/json.h"
#include "train/host_memory.h"
#include "train/rank_trainer.h"
#include "train/step_source.h"
#include "zellige/error.h"
#include "zellige/process_group.h"
#include "zellige/thread_ranks.h"

namespace zellige {
namespace {

void require_threads(const TrainConfig& config) {
  if (config.ranks.backend == "threads") return;
  throw Error(Code::input, "train.parity",
              "[ranks] backend " + in_quotes(config.ranks.backend) + ": parity with one rank needs \"threads\"");
}

EngineOptions engine_options(const TrainConfig& config) {
  EngineOptions engine;
  engine.kernel = config.run.kernel;
  engine.deterministic = config.run.deterministic;
  return engine;
}

std::chrono::milliseconds timeout_of(const TrainConfig& config) {
  return std::chrono::milliseconds(std::llround(config.ranks.timeout_s * 1000));
}

ThreadRankOptions thread_options(const TrainConfig& config, int threads_per_rank) {
  ThreadRankOptions options;
  options.timeout = timeout_of(config);
  options.threads_per_rank = threads_per_rank;
  return options;
}

StepRecord record_of(int number, const PlannedStep& step, const Profile& profile, StepOutcome outcome,
                     std::string_view data) {
  const Plan& plan = step.plan;
  StepRecord record;
  record.step = number;
  record.loss = outcome.loss;
  record.gradient_norm = outcome.gradient_norm;
  record.sequences = static_cast<int>(step.batch.sequences.size());
  record.split_count = plan.split_count;
  record.method = plan.method;
  record.solver = plan.solver;
  record.data = data;
  record.status = plan.status;
  record.makespan = plan.makespan;
  record.predicted = plan.makespan + profile.step_base;
  record.planning = plan.solve_time;
  record.ranks = std::move(outcome.ranks);
  for (std::size_t r = 0; r < record.ranks.size(); ++r) {
    record.ranks[r].predicted = plan.load[r];
    record.measured = std::max(record.measured, record.ranks[r].measured);
  }
  return record;
}

// Loss and gradients of one step, from rank 0's copy.
struct Gradients {
  double loss = 0;
  std::vector<at::Tensor> values;
  std::vector<std::string> names;
};

Gradients gradients_of(const TrainConfig& config, const Batch& batch, const Placement& placement,
                       int threads_per_rank) {
  Gradients found;
  const auto body = [&](Rank rank, c10::intrusive_ptr<c10d::ProcessGroup> group) {
    RankTrainer trainer(config, rank, std::move(group), at::kCPU, engine_options(config));
    const double loss = trainer.run(batch, placement, 0);
    if (rank != 0) return;
    found.loss = loss;
    found.names = trainer.model().names();
    for (const at::Tensor& parameter : trainer.model().parameters()) found.values.push_back(parameter.grad().clone());
  };
  run_thread_ranks(placement.ranks, body, thread_options(config, threads_per_rank));
  return found;
}

Placement on_one_rank(Placement placement) {
  placement.ranks = 1;
  for (PlacedSequence& sequence : placement.sequences) {
    sequence.config = Configuration{};
    sequence.ranks = {0};
  }
  return placement;
}

double norm_of(const at::Tensor& tensor) { return tensor.to(at::kDouble).norm().item<double>(); }

std::vector<StepRecord> train_on_threads(const TrainConfig& config, const TrainHooks& hooks) {
  require_host_memory(config, available_host_memory());
  StepSource source(config, hooks);
  std::vector<StepRecord> records;
  const auto body = [&](Rank rank, c10::intrusive_ptr<c10d::ProcessGroup> group) {
    RankTrainer trainer(config, rank, group, at::kCPU, engine_options(config));
    for (int number = 0;; ++number) {
      const auto step = source.get(number);
      if (!step) break;
      StepOutcome outcome = trainer.step(step->batch, step->plan.placement, number);
      if (rank == 0) {
        records.push_back(record_of(number, *step, source.profile(), std::move(outcome), trainer.data_label()));
        if (hooks.stepped) hooks.stepped(records.back());
      }
      group->barrier()->wait();  // the host hears of a step before any rank has the next one planned
    }
  };
  try {
    run_thread_ranks(config.ranks.count, body, thread_options(config, config.ranks.threads_per_rank));
  } catch (...) {
    source.rethrow_error();
    throw;
  }
  return records;
}

// One rank is this process, the others are processes like it; every one of them draws and plans for itself.
std::vector<StepRecord> train_in_processes(const TrainConfig& config, const TrainHooks& hooks) {
  WorldGroupOptions options;
  options.timeout = timeout_of(config);
  const WorldGroup world = join_world(hooks.env, options);
  if (world.ranks != config.ranks.count) {
    throw Error(Code::input, "train",
                "[ranks] count is " + std::to_string(config.ranks.count) + ", but the launcher started " +
                    std::to_string(world.ranks) + " processes (WORLD_SIZE); use one number");
  }
  TrainHooks own = hooks;
  if (world.rank != 0) own.planned = nullptr;
  StepSource source(config, own);
  EngineOptions engine = engine_options(config);
  engine.rates = source.profile().kernels;
  engine.flash_attention_3 = hooks.env.flash_attention_3.value_or("");
  RankTrainer trainer(config, world.rank, world.group, world.device, engine);
  std::vector<StepRecord> records;
  for (int number = 0;; ++number) {
    std::shared_ptr<const PlannedStep> step;
    std::exception_ptr error;
    try {
      step = source.get(number);
    } catch (...) {
      error = std::current_exception();
    }
    // A signal, or a solver that fails, may meet one process alone: all end together.
    const int failed = trainer.count_ranks(error != nullptr);
    const int stopped = trainer.count_ranks(!step);
    if (error) std::rethrow_exception(error);
    if (failed > 0) {
      throw Error(
          Code::communication, "train",
          "step " + std::to_string(number) + ": " + std::to_string(failed) + " other ranks have no plan for it");
    }
    if (stopped > 0) break;
    StepOutcome outcome = trainer.step(step->batch, step->plan.placement, number);
    records.push_back(record_of(number, *step, source.profile(), std::move(outcome), trainer.data_label()));
    if (world.rank == 0 && hooks.stepped) hooks.stepped(records.back());
  }
  return records;
}

}  // namespace

std::vector<StepRecord> train(const TrainConfig& config, const TrainHooks& hooks) {
  if (config.ranks.backend == "nccl") return train_in_processes(config, hooks);
  return train_on_threads(config, hooks);
}

Parity first_step_parity(const TrainConfig& config, const TrainHooks& hooks) {
  require_threads(config);
  StepSource source(config, hooks);
  const auto step = source.get(0);
  if (!step) throw Error(Code::timeout, "train.parity", "stopped before the first step was planned");
  const int threads = config.ranks.threads_per_rank;
  const Gradients found = gradients_of(config, step->batch, step->plan.placement, threads);
  const Gradients wanted =
      gradients_of(config, step->batch, on_one_rank(step->plan.placement), threads * config.ranks.count);

  Parity parity;
  parity.loss = found.loss;
  parity.loss_one_rank = wanted.loss;
  parity.loss_difference = std::abs(found.loss - wanted.loss) / std::abs(wanted.loss);
  double total = 0;
  for (const at::Tensor& gradient : wanted.values) total = std::hypot(total, norm_of(gradient));
  for (std::size_t i = 0; i < wanted.values.size(); ++i) {
    // A gradient that is next to nothing beside all others is compared on their scale.
    const double scale = std::max(norm_of(wanted.values[i]), 1e-6 * total);
    const double difference = norm_of(found.values[i] - wanted.values[i]) / scale;
    if (i == 0 || difference > parity.gradient_difference) {
      parity.gradient_difference = difference;
      parity.parameter = found.names[i];
    }
  }
  return parity;
}

}  // namespace zellige
