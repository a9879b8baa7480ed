// SPDX-License-Identifier: Apache-2.0
#include "engine/warm_up.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace zellige {
namespace {

/// Runs `body` here and on autograd's thread of the device: forward runs on both where checkpointing recomputes it.
void run_on_both_threads(at::Device device, const std::function<void()>& body) {
  body();
  if (device.is_cpu()) return;  // one and the same
  const at::AutoGradMode with_gradients(true);
  const at::Tensor leaf = at::zeros({1}, at::TensorOptions(device)).set_requires_grad(true);
  const at::Tensor node = leaf * 1;
  node.register_hook([&](const at::Tensor&) { body(); });
  node.backward(at::ones({1}, at::TensorOptions(device)));
}

std::string text_of(const at::TensorOptions& options) {
  return std::string(c10::toString(options.dtype().toScalarType())) + " " + options.device().str();
}

}  // namespace

std::size_t WarmUp::run(const StepPlan& plan, const KernelTable& kernels, const at::TensorOptions& options) {
  const Schedule& schedule = plan.schedule;
  std::size_t calls = 0;
  const auto is_new = [&](std::vector<std::int64_t> shape, const char* kind) {
    std::string key = text_of(options) + " " + kind;
    for (const std::int64_t size : shape) key.append(" ").append(std::to_string(size));
    return done_.insert(std::move(key)).second;
  };
  const auto tensor = [&](std::int64_t rows, int heads) {
    return at::zeros({rows, heads, schedule.head_dim}, options);
  };
  const at::NoGradGuard no_grad;

  for (WholeCall call : kernels.plan_whole(schedule, options)) {
    // A packed call takes any lengths by the same modules.
    const std::vector<std::int64_t> shape =
        call.is_dense() ? std::vector<std::int64_t>{call.count, call.length} : std::vector<std::int64_t>{};
    if (!is_new(shape, call.is_dense() ? "dense" : "packed")) continue;
    call.rows.begin = 0;
    const at::Tensor q = tensor(call.rows.count, schedule.heads);
    const at::Tensor k = tensor(call.rows.count, schedule.kv_heads), v = at::zeros_like(k);
    run_on_both_threads(options.device(), [&] {
      const at::NoGradGuard none;
      const at::Tensor out = at::empty_like(q);
      const at::Tensor lse = kernels.forward(call, q, k, v, out);
      kernels.backward(call, q, q, k, v, out, lse, {at::empty_like(q), at::empty_like(k), at::empty_like(v)});
    });
    ++calls;
  }
  for (const ShardPlan& shard : plan.shards) {
    for (const WaveHeads& wave : shard.waves) {
      for (const TokenRange& block : shard.blocks) {
        if (wave.key.count == 0) continue;
        const auto heads = {std::int64_t{wave.query.count}, std::int64_t{wave.key.count}};
        if (!is_new({shard.queries.count, block.count, *heads.begin(), *(heads.end() - 1)}, "shard")) continue;
        const at::Tensor q = tensor(shard.queries.count, wave.query.count).unsqueeze(0);
        const at::Tensor k = tensor(block.count, wave.key.count).unsqueeze(0);
        run_on_both_threads(options.device(), [&] {
          const at::NoGradGuard none;
          const AttentionOutput result = kernels.forward(q, k, k);
          kernels.backward(q, q, k, k, result.out, result.lse);
        });
        ++calls;
      }
    }
  }
  return calls;
}

}  // namespace zellige
