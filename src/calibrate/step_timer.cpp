// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "calibrate/collective.h"
#include "calibrate/memory_meter.h"
#include "engine/torch.h"
#include "zellige/engine.h"
#include "zellige/error.h"
#include "zellige/schedule.h"
#include "zellige/step_timer.h"

namespace zellige {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

WanConfig of_depth(WanConfig model, int depth) {
  if (depth > 0) model.layers = depth;
  return model;
}

std::array<std::int64_t, 3> grid_of(const ModelGeometry& model, const Bucket& bucket) {
  return {((bucket.frames - 1) / model.vae_stride[0] + 1) / model.patch[0],
          bucket.height / (model.vae_stride[1] * model.patch[1]),
          bucket.width / (model.vae_stride[2] * model.patch[2])};
}

}  // namespace

struct StepTimer::State {
  State(c10::intrusive_ptr<c10d::ProcessGroup> group, const WanConfig& config, const WanTransformer::Options& options,
        bool with_checkpointing, const EngineOptions& engine)
      : together(group, options.device),
        model(config, options),
        world(std::move(group)),
        attention_options(engine),
        checkpointing(with_checkpointing),
        meter(options.device) {
    // Values decide no times; any that stay numbers will do. Gradients exist in training, too, when a step's peak is
    // reached.
    const at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : model.parameters()) {
      at::Tensor(parameter).normal_(0, 0.02);
      at::Tensor(parameter).mutable_grad() = at::zeros_like(parameter);
    }
  }

  Together together;
  WanTransformer model;
  c10::intrusive_ptr<c10d::ProcessGroup> world;
  EngineOptions attention_options;
  std::optional<Engine> attention;  ///< a new one for each placement, so that its buffers are counted with it
  bool checkpointing;
  MemoryMeter meter;
  Schedule schedule;
  PackedTokens input;
  at::Tensor target, token_weights;
};

StepTimer::StepTimer(c10::intrusive_ptr<c10d::ProcessGroup> group, const WanConfig& model,
                     const WanTransformer::Options& options, int depth, bool checkpointing, const EngineOptions& engine)
    : state_(std::make_unique<State>(std::move(group), of_depth(model, depth), options, checkpointing, engine)) {}
StepTimer::~StepTimer() = default;
StepTimer::StepTimer(StepTimer&&) noexcept = default;

void StepTimer::begin(const Placement& placement, const Catalog& catalog) {
  State& state = *state_;
  state.schedule = lower(placement, state.together.rank());
  state.attention.reset();
  state.input = {};
  state.target = state.token_weights = at::Tensor();
  state.meter.restart();
  state.attention.emplace(state.world, state.attention_options);
  state.attention->begin_step(state.schedule);
  const WanConfig& model = state.model.config();
  const auto segments = static_cast<std::int64_t>(state.schedule.segments.size());
  const at::TensorOptions options = at::TensorOptions(state.model.options().compute).device(state.together.device());
  const std::int64_t tokens = state.schedule.num_tokens;

  state.input.latents = at::randn({tokens, model.in_width()}, options);
  state.input.timesteps = at::full({segments}, 500.0, options.dtype(at::kDouble));
  state.input.text = at::randn({segments, model.text_tokens, model.text_dim}, options);
  for (const Segment& segment : state.schedule.segments) {
    const PlacedSequence& sequence = placement.sequences[static_cast<std::size_t>(segment.sequence)];
    const auto bucket = catalog.find(sequence.bucket);
    if (!bucket) {
      throw Error(Code::input, "calibrate.StepTimer",
                  "sequence '" + sequence.id + "' is of bucket '" + sequence.bucket + "', which the catalog lacks");
    }
    state.input.segments.push_back({grid_of(catalog.model, catalog.buckets[static_cast<std::size_t>(*bucket)]),
                                    segment.token_begin, segment.num_tokens});
  }
  state.target = at::randn({tokens, model.out_width()}, options);
  state.token_weights = at::full({tokens}, 1e-3, options.dtype(at::kFloat));
}

StepTimer::Run StepTimer::run() {
  State& state = *state_;
  const at::Device device = state.together.device();
  for (const at::Tensor& parameter : state.model.parameters()) at::Tensor(parameter.grad()).zero_();
  const double waited = state.attention->counters().exchange_wait_s;
  synchronize(device);
  state.together.barrier();
  synchronize(device);
  state.meter.forget_peak();
  const auto start = Clock::now();
  {
    const at::Tensor prediction = state.model.forward(
        state.input,
        [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
          return state.attention->attention(q, k, v);
        },
        state.checkpointing);
    flow_loss(prediction, state.target, state.token_weights).backward();
  }
  synchronize(device);
  Run run;
  run.own_seconds = seconds_since(start);
  run.waiting_seconds = state.attention->counters().exchange_wait_s - waited;
  run.peak_bytes = state.meter.peak_bytes();
  run.seconds = state.together.most(run.own_seconds);
  run.most_bytes = static_cast<std::int64_t>(state.together.most(static_cast<double>(run.peak_bytes)));
  return run;
}

double StepTimer::exchange() {
  State& state = *state_;
  const Schedule& schedule = state.schedule;
  const at::TensorOptions options = at::TensorOptions(state.model.options().compute).device(state.together.device());
  std::int64_t most_sent = 0, most_received = 0;
  const auto total = [](const std::vector<std::int64_t>& counts) {
    std::int64_t sum = 0;
    for (const std::int64_t count : counts) sum += count;
    return sum;
  };
  for (const auto* pass : {&schedule.forward, &schedule.backward}) {
    for (const Exchange& exchange : *pass) {
      most_sent = std::max(most_sent, total(exchange.send_counts));
      most_received = std::max(most_received, total(exchange.receive_counts));
    }
  }
  at::Tensor send = at::zeros({most_sent}, options), receive = at::zeros({most_received}, options);
  const auto run_all = [&](const std::vector<Exchange>& exchanges) {
    for (const Exchange& exchange : exchanges) {
      at::Tensor in = send.narrow(0, 0, total(exchange.send_counts));
      at::Tensor out = receive.narrow(0, 0, total(exchange.receive_counts));
      std::vector<std::int64_t> receive_counts = exchange.receive_counts, send_counts = exchange.send_counts;
      if (const auto work = state.together.group().alltoall_base(out, in, receive_counts, send_counts)) work->wait();
    }
  };
  const auto layer = [&] {
    run_all(schedule.forward);
    if (state.checkpointing) run_all(schedule.forward);
    run_all(schedule.backward);
  };
  layer();  // the first call on a link sets it up
  constexpr int kRuns = 3;
  double best = 0;
  for (int i = 0; i < kRuns; ++i) {
    synchronize(state.together.device());
    state.together.barrier();
    synchronize(state.together.device());
    const auto start = Clock::now();
    layer();
    synchronize(state.together.device());
    const double seconds = state.together.most(seconds_since(start));
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best * state.model.config().layers;
}

}  // namespace zellige
