// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include "engine/torch.h"
#include "testing/random_placement.h"
#include "zellige/engine.h"
#include "zellige/thread_ranks.h"

/// Attention of whole sequences by the textbook formula and torch's own autograd, and the same through an Engine on
/// thread ranks: what tests of the engine compare.
namespace zellige::oracle {

/// One tensor a sequence: q, out and their gradients [L, heads, head_dim], k, v likewise with kv_heads.
struct SequenceTensors {
  std::vector<at::Tensor> q, k, v;
};

struct AttentionProblem {
  Placement placement;
  SequenceTensors inputs;             ///< fp64
  std::vector<at::Tensor> grad_outs;  ///< fp64
};

struct AttentionAnswer {
  std::vector<at::Tensor> outs;  ///< a sequence
  SequenceTensors grads;
};

/// Standard normal inputs that follow from the seed alone, rounded to `type` so that every precision sees the same.
inline AttentionProblem make_problem(Placement placement, std::uint64_t seed, at::ScalarType type = at::kDouble) {
  AttentionProblem problem{.placement = std::move(placement), .inputs = {}, .grad_outs = {}};
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const ModelGeometry& model = problem.placement.model;
  for (const PlacedSequence& placed : problem.placement.sequences) {
    const auto draw = [&](int heads) {
      return at::randn({placed.tokens.value, heads, model.head_dim}, generator, at::kDouble).to(type).to(at::kDouble);
    };
    problem.inputs.q.push_back(draw(model.heads));
    problem.inputs.k.push_back(draw(model.kv_heads));
    problem.inputs.v.push_back(draw(model.kv_heads));
    problem.grad_outs.push_back(draw(model.heads));
  }
  return problem;
}

/// softmax(q k^T / sqrt(head_dim)) v of one sequence [L, heads, head_dim], written down.
inline at::Tensor textbook_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const std::int64_t shared = q.size(1) / k.size(1);
  const auto by_head = [](const at::Tensor& tensor) { return tensor.transpose(0, 1); };
  const at::Tensor keys = by_head(k.repeat_interleave(shared, 1));
  const at::Tensor values = by_head(v.repeat_interleave(shared, 1));
  const at::Tensor scores = at::matmul(by_head(q), keys.transpose(1, 2)) / std::sqrt(static_cast<double>(q.size(2)));
  return by_head(at::matmul(scores.softmax(-1), values));
}

/// The reference on one rank, in `type`; autograd gives the gradients.
inline AttentionAnswer dense_answer(const AttentionProblem& problem, at::ScalarType type = at::kDouble) {
  at::set_num_threads(1);  // tensors this small only wait for a second thread
  AttentionAnswer answer;
  for (std::size_t i = 0; i < problem.inputs.q.size(); ++i) {
    const auto leaf = [&](const at::Tensor& tensor) { return tensor.to(type, false, true).set_requires_grad(true); };
    const at::Tensor q = leaf(problem.inputs.q[i]);
    const at::Tensor k = leaf(problem.inputs.k[i]);
    const at::Tensor v = leaf(problem.inputs.v[i]);
    const at::Tensor out = textbook_attention(q, k, v);
    out.backward(problem.grad_outs[i].to(type));
    answer.outs.push_back(out.detach());
    answer.grads.q.push_back(q.grad());
    answer.grads.k.push_back(k.grad());
    answer.grads.v.push_back(v.grad());
  }
  return answer;
}

/// The rank's rows of one tensor a sequence, in schedule order.
inline at::Tensor pack(const Schedule& schedule, const std::vector<at::Tensor>& sequences, int heads,
                       at::ScalarType type) {
  std::vector<at::Tensor> rows{at::empty({0, heads, schedule.head_dim}, at::kDouble)};
  for (const Segment& segment : schedule.segments) {
    rows.push_back(
        sequences[static_cast<std::size_t>(segment.sequence)].narrow(0, segment.token_begin, segment.num_tokens));
  }
  return at::cat(rows).to(type);
}

/// Puts the rank's rows where they belong in one tensor a sequence. Ranks may do so side by side: their rows differ.
inline void unpack(const Schedule& schedule, const at::Tensor& packed, std::vector<at::Tensor>& sequences) {
  for (const Segment& segment : schedule.segments) {
    sequences[static_cast<std::size_t>(segment.sequence)]
        .narrow(0, segment.token_begin, segment.num_tokens)
        .copy_(packed.narrow(0, segment.local_begin, segment.num_tokens));
  }
}

struct EngineRun {
  at::ScalarType type = at::kDouble;
  std::string kernel;
  /// Applied to the rank's packed q, k, v instead of one call of Engine::attention.
  std::function<at::Tensor(Engine&, const at::Tensor&, const at::Tensor&, const at::Tensor&)> layers;
  /// Sees each rank's engine after backward.
  std::function<void(Rank, const Engine&)> look;
};

/// The same by an Engine on thread ranks, put together again; NaN where no rank gave a row.
inline AttentionAnswer engine_answer(const AttentionProblem& problem, const EngineRun& run = {}) {
  AttentionAnswer answer;
  const auto blank = [&](const std::vector<at::Tensor>& like) {
    std::vector<at::Tensor> tensors;
    for (const at::Tensor& one : like) tensors.push_back(at::full(one.sizes(), NAN, run.type));
    return tensors;
  };
  answer.outs = blank(problem.inputs.q);
  answer.grads = {blank(problem.inputs.q), blank(problem.inputs.k), blank(problem.inputs.v)};
  const ModelGeometry& model = problem.placement.model;
  run_thread_ranks(problem.placement.ranks, [&](Rank rank, const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
    const Schedule schedule = lower(problem.placement, rank);
    const auto leaf = [&](const std::vector<at::Tensor>& sequences, int heads) {
      return pack(schedule, sequences, heads, run.type).set_requires_grad(true);
    };
    const at::Tensor q = leaf(problem.inputs.q, model.heads);
    const at::Tensor k = leaf(problem.inputs.k, model.kv_heads);
    const at::Tensor v = leaf(problem.inputs.v, model.kv_heads);
    Engine engine(group, {.kernel = run.kernel});
    engine.begin_step(schedule);
    const at::Tensor out = run.layers ? run.layers(engine, q, k, v) : engine.attention(q, k, v);
    out.backward(pack(schedule, problem.grad_outs, model.heads, run.type));
    unpack(schedule, out.detach(), answer.outs);
    unpack(schedule, q.grad(), answer.grads.q);
    unpack(schedule, k.grad(), answer.grads.k);
    unpack(schedule, v.grad(), answer.grads.v);
    if (run.look) run.look(rank, engine);
  });
  return answer;
}

inline double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
}

/// Visits (what, ours, theirs) for every tensor of two answers.
template <class Visit>
void for_each_pair(const AttentionAnswer& ours, const AttentionAnswer& theirs, const Visit& visit) {
  const auto all = [&](const char* what, const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      visit(std::string(what) + " of sequence " + std::to_string(i), a[i], b[i]);
  };
  all("out", ours.outs, theirs.outs);
  all("dQ", ours.grads.q, theirs.grads.q);
  all("dK", ours.grads.k, theirs.grads.k);
  all("dV", ours.grads.v, theirs.grads.v);
}

/// The largest relative distance (Frobenius norm) over all tensors, and whose it is; infinite where something is NaN.
/// Tensors that vanish (dQ and dK of one token) are measured against a thirtieth of the inputs' unit variance.
struct WorstError {
  double relative = 0;
  std::string what = "nothing";
};
inline WorstError worst_error(const AttentionAnswer& ours, const AttentionAnswer& reference) {
  WorstError worst;
  for_each_pair(ours, reference, [&](const std::string& what, const at::Tensor& a, const at::Tensor& b) {
    const double size = b.to(at::kDouble).norm().item<double>();
    const double relative = distance(a, b) / std::max(size, 0.03 * std::sqrt(static_cast<double>(b.numel())));
    if (relative <= worst.relative) return;
    worst = {std::isnan(relative) ? INFINITY : relative, what};
  });
  return worst;
}

}  // namespace zellige::oracle
