// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <vector>

#include "calibrate/measurement.h"
#include "calibrate/memory_meter.h"
#include "engine/torch.h"

namespace zellige {
namespace {

constexpr std::int64_t kBucketBytes = 25 << 20;  // of gradients that are summed in one call, as in training
constexpr int kRuns = 3;

template <class Body>
double best_of(const Together& together, const Body& body) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  body();
  for (int i = 0; i < kRuns; ++i) {
    synchronize(together.device());
    together.barrier();
    synchronize(together.device());
    const auto start = Clock::now();
    body();
    synchronize(together.device());
    const double seconds = together.most(std::chrono::duration<double>(Clock::now() - start).count());
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

}  // namespace

StepEnd measure_step_end(const Together& together, const WanConfig& config, const WanTransformer::Options& precision) {
  const at::NoGradGuard no_grad;
  const WanTransformer model(config, precision);
  const auto zeros = [&] {
    std::vector<at::Tensor> list;
    for (const at::Tensor& parameter : model.parameters()) list.push_back(at::zeros_like(parameter.detach()));
    return list;
  };
  StepEnd end;
  {
    const at::Tensor& like = model.parameters().front();
    const std::int64_t size = std::max<std::int64_t>(1, kBucketBytes / like.element_size());
    at::Tensor bucket = at::zeros({std::min(size, model.num_parameters())}, like.detach().options());
    end.gradient_sync_s = best_of(together, [&] {
      for (std::int64_t left = model.num_parameters(); left > 0; left -= bucket.numel()) {
        std::vector<at::Tensor> list = {bucket.narrow(0, 0, std::min(left, bucket.numel()))};
        if (const auto work = together.group().allreduce(list)) work->wait();
      }
    });
  }
  std::vector<at::Tensor> parameters, steps;
  for (const at::Tensor& parameter : model.parameters()) {
    parameters.push_back(parameter.detach().zero_());
    steps.push_back(at::ones({}, at::TensorOptions(at::kFloat).device(parameter.device())));
  }
  std::vector<at::Tensor> gradients = zeros(), means = zeros(), squares = zeros();
  end.optimizer_s = best_of(together, [&] {
    at::_foreach_norm(gradients, 2);
    at::_fused_adamw_(parameters, gradients, means, squares, {}, steps, /*lr=*/1e-4, /*beta1=*/0.9, /*beta2=*/0.999,
                      /*weight_decay=*/0.01, /*eps=*/1e-8, /*amsgrad=*/false, /*maximize=*/false);
  });
  return end;
}

}  // namespace zellige
