// SPDX-License-Identifier: Apache-2.0
#include "train/rank_trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <string>
#include <utility>

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "train/rank_batch.h"
#include "zellige/error.h"
#include "zellige/schedule.h"

namespace zellige {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kFirstBucketBytes = 1 << 20;  // small: its sync starts early in the backward pass
constexpr std::int64_t kBucketBytes = 25 << 20;

WanTransformer::Options model_options(Precision precision, at::Device device) {
  if (precision == Precision::fp64) return {.parameters = at::kDouble, .compute = at::kDouble, .device = device};
  const at::ScalarType compute = precision == Precision::bf16 ? at::kBFloat16 : at::kFloat;
  return {.parameters = at::kFloat, .compute = compute, .device = device};
}

// Buckets fill from the last parameters on, whose gradients are ready first.
std::unique_ptr<c10d::Reducer> make_reducer(const WanTransformer& model,
                                            const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  const std::vector<at::Tensor>& parameters = model.parameters();
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
      parameters, {static_cast<std::size_t>(kFirstBucketBytes), static_cast<std::size_t>(kBucketBytes)}));
  std::ranges::reverse(buckets);
  std::unordered_map<std::size_t, std::string> names;
  for (std::size_t i = 0; i < model.names().size(); ++i) names[i] = model.names()[i];
  return std::make_unique<c10d::Reducer>(
      parameters, std::move(buckets), group, std::vector<bool>(parameters.size(), false), kBucketBytes,
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true, std::move(names), kFirstBucketBytes,
      /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false, std::vector<std::int64_t>());
}

// Time for which this thread had a core.
std::int64_t thread_time_us() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1'000;
}

void require_number(const char* what, double value, std::int64_t step) {
  if (std::isfinite(value)) return;
  throw Error(Code::input, "train.step",
              "step " + std::to_string(step) + ": the " + what + " is " + std::to_string(value) +
                  ": training diverged; a smaller [optimizer] lr or a clip_norm may help");
}

}  // namespace

WanConfig wan_config(const TrainConfig& config) { return wan_config(config.model, config.text_dim); }

RankTrainer::RankTrainer(const TrainConfig& config, Rank rank, c10::intrusive_ptr<c10d::ProcessGroup> group,
                         at::Device device, const EngineOptions& engine)
    : config_(config),
      rank_(rank),
      group_(std::move(group)),
      device_(device),
      model_(wan_config(config), model_options(config.run.precision, device)),
      engine_(group_, engine),
      source_(synthetic_latents(model_.config(), config.run.seed)),
      flow_(config.flow),
      optimizer_(model_.parameters(), config.optimizer) {
  model_.initialise(config.run.seed);
  reducer_ = make_reducer(model_, group_);
}

RankTrainer::~RankTrainer() = default;

at::Tensor RankTrainer::sum_over_ranks(at::Tensor values) const {
  std::vector<at::Tensor> list = {values.to(device_)};
  if (const auto work = group_->allreduce(list)) work->wait();
  return list[0].to(at::kCPU);
}

int RankTrainer::count_ranks(bool flag) const {
  return static_cast<int>(sum_over_ranks(at::full({}, flag ? 1 : 0, at::kDouble)).item<double>());
}

double RankTrainer::run(const Batch& batch, const Placement& placement, std::int64_t step) {
  const Schedule schedule = lower(placement, rank_);
  engine_.begin_step(schedule);
  const RankBatch part =
      make_rank_batch(schedule, batch, *source_, flow_, config_.flow.fixed_noise, step, model_.config());
  for (const at::Tensor& parameter : model_.parameters()) parameter.mutable_grad() = at::Tensor();

  reducer_->rebuild_buckets();
  reducer_->prepare_for_forward();
  const at::Tensor prediction = model_.forward(
      part.input,
      [this](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) { return engine_.attention(q, k, v); },
      config_.run.checkpointing);
  const at::Tensor loss = flow_loss(prediction, part.target.to(device_), part.token_weights.to(device_));
  reducer_->prepare_for_backward({loss});
  // The sync averages over ranks; the gradient of the batch's loss is a sum.
  (loss * static_cast<double>(placement.ranks)).backward();
  return sum_over_ranks(loss.detach().to(at::kDouble)).item<double>();
}

StepOutcome RankTrainer::step(const Batch& batch, const Placement& placement, std::int64_t step) {
  if (!device_.is_cpu()) engine_.warm_up(lower(placement, rank_), model_.options().compute, device_);
  const auto start = Clock::now();
  const std::int64_t start_computing_us = thread_time_us();
  StepOutcome outcome;
  outcome.loss = run(batch, placement, step);
  require_number("loss", outcome.loss, step);
  outcome.gradient_norm = optimizer_.gradient_norm();
  require_number("gradients' norm", outcome.gradient_norm, step);
  optimizer_.update(outcome.gradient_norm);
  require_number("parameters' norm after the update", optimizer_.parameter_norm(), step);
  const std::int64_t computing_us = thread_time_us() - start_computing_us;
  const auto measured = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);

  // Each rank fills in its row; the sum over ranks is the whole table. fp64 holds these counts exactly.
  const StepReport report = engine_.report();
  const EngineCounters& counters = report.counters;
  const double own[] = {static_cast<double>(engine_.schedule().num_tokens),
                        static_cast<double>(measured.count()),
                        static_cast<double>(computing_us),
                        std::round(report.exposed.total_s() * 1e6),
                        static_cast<double>(counters.all_gather_bytes),
                        static_cast<double>(counters.ulysses_bytes),
                        static_cast<double>(counters.ring_bytes),
                        static_cast<double>(counters.collectives),
                        std::round(report.exposed.a_s * 1e6),
                        std::round(report.exposed.ring_s * 1e6),
                        std::round(report.exposed.b_s * 1e6)};
  at::Tensor table = at::zeros({placement.ranks, std::ssize(own)}, at::kDouble);
  std::ranges::copy(own, table[rank_].data_ptr<double>());
  table = sum_over_ranks(table);
  const auto cells = table.accessor<double, 2>();
  for (int r = 0; r < placement.ranks; ++r) {
    const auto cell = [&](int column) { return static_cast<std::int64_t>(cells[r][column]); };
    RankRecord record;
    record.tokens = {cell(0)};
    record.measured = {cell(1)};
    record.computing = {cell(2)};
    record.waiting = {cell(3)};
    record.all_gather = {cell(4)};
    record.ulysses = {cell(5)};
    record.ring = {cell(6)};
    record.collectives = cell(7);
    record.waiting_a = {cell(8)};
    record.waiting_ring = {cell(9)};
    record.waiting_b = {cell(10)};
    outcome.ranks.push_back(record);
  }
  return outcome;
}

}  // namespace zellige
