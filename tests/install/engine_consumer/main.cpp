// SPDX-License-Identifier: Apache-2.0
// Runs a sequence split over two thread ranks with the installed engine, and compares it with ATen's dense attention.
#include <atomic>
#include <iostream>

#include <ATen/ATen.h>
#include <zellige/engine.h>
#include <zellige/schedule.h>
#include <zellige/thread_ranks.h>

int main() {
  zellige::Placement placement;
  placement.ranks = 2;
  placement.model = zellige::model_preset("tiny");
  const int heads = placement.model.heads, head_dim = placement.model.head_dim;
  placement.sequences.push_back(
      {.id = "video", .bucket = "any", .tokens = {101}, .config = {2, 1, 1}, .ranks = {0, 1}});

  at::manual_seed(7);
  const auto draw = [&] { return at::randn({101, heads, head_dim}, at::kDouble); };
  const at::Tensor q = draw(), k = draw(), v = draw();
  const auto by_heads = [](const at::Tensor& x) { return x.transpose(0, 1).unsqueeze(0); };
  const at::Tensor expected =
      at::scaled_dot_product_attention(by_heads(q), by_heads(k), by_heads(v)).squeeze(0).transpose(0, 1);

  std::atomic<int> differences = 0;
  zellige::run_thread_ranks(2, [&](zellige::Rank rank, auto group) {
    const zellige::Schedule schedule = zellige::lower(placement, rank);
    const auto own = [&](const at::Tensor& x) {
      return x.narrow(0, schedule.segments[0].token_begin, schedule.segments[0].num_tokens);
    };
    zellige::Engine engine(group);
    engine.begin_step(schedule);
    if (!at::allclose(engine.attention(own(q), own(k), own(v)), own(expected), 1e-12, 1e-12)) ++differences;
  });
  std::cout << "ranks 2 differences " << differences << "\n";
  return differences == 0 ? 0 : 1;
}
