// SPDX-License-Identifier: Apache-2.0
#include "zellige/engine.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/attention_kernel.h"
#include "engine/exchanger.h"
#include "engine/layer.h"
#include "engine/step_plan.h"
#include "engine/torch.h"
#include "zellige/error.h"

namespace zellige {

struct EngineState {
  EngineState(c10::intrusive_ptr<c10d::ProcessGroup> group, const std::string& kernel)
      : exchanger(std::move(group)), kernels(kernel) {}

  /// Runs part of a layer. Whatever goes wrong in it leaves the ranks at different exchanges.
  template <class Body>
  auto run(const StepPlan& for_plan, const at::Tensor& like, const Body& body) {
    exchanger.require_usable();
    try {
      exchanger.prepare(for_plan, like.options().requires_grad(std::nullopt));
      return body();
    } catch (...) {
      exchanger.give_up();
      throw;
    }
  }

  Exchanger exchanger;
  KernelTable kernels;
  std::shared_ptr<const StepPlan> plan;
};

namespace {

/// Room for the text of a digest in the comparison of plans.
constexpr std::size_t kDigestBytes = 96;

[[noreturn]] void refuse(const char* where, const std::string& message) { throw Error(Code::input, where, message); }

std::string describe(at::IntArrayRef sizes) {
  std::string text = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
  return text + "]";
}

/// What autograd keeps between forward and backward beside tensors.
struct LayerContext final : torch::CustomClassHolder {
  LayerContext(std::shared_ptr<EngineState> state_in, std::shared_ptr<const StepPlan> plan_in)
      : state(std::move(state_in)), plan(std::move(plan_in)) {}
  std::shared_ptr<EngineState> state;
  std::shared_ptr<const StepPlan> plan;
};

/// The attention of all tokens of a rank as one function: whole and split sequences together, so that every rank's
/// graph has one node a layer, whatever it holds.
class AttentionFunction final : public torch::autograd::Function<AttentionFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const std::shared_ptr<EngineState>& state) {
    LayerMemory memory;
    at::Tensor out = state->run(*state->plan, q, [&] {
      return layer_forward(*state->plan, state->kernels, state->exchanger, q, k, v, &memory);
    });
    std::vector<at::Tensor> saved = memory.flatten();
    saved.insert(saved.begin(), {q, k, v, out});
    context->save_for_backward(std::move(saved));
    context->saved_data["layer"] = c10::IValue::make_capsule(c10::make_intrusive<LayerContext>(state, state->plan));
    return out;
  }

  static std::vector<at::Tensor> backward(torch::autograd::AutogradContext* context, std::vector<at::Tensor> grads) {
    if (at::GradMode::is_enabled())
      refuse("engine.attention", "second derivatives are asked for; use create_graph false");
    const auto capsule = context->saved_data["layer"].toCapsule();
    const LayerContext& layer = static_cast<const LayerContext&>(*capsule);
    const std::vector<at::Tensor> saved = context->get_saved_variables();
    const StepPlan& plan = *layer.plan;
    const LayerMemory memory = LayerMemory::unflatten(saved, 4, plan);
    const at::Tensor grad_out = grads[0].to(saved[3].scalar_type()).contiguous();
    EngineState& state = *layer.state;
    AttentionGradients result = state.run(plan, saved[0], [&] {
      return layer_backward(plan, state.kernels, state.exchanger, grad_out, saved[0], saved[1], saved[2], saved[3],
                            memory);
    });
    return {result.q, result.k, result.v, at::Tensor()};
  }
};

void require_shape(const char* name, const at::Tensor& tensor, std::int64_t tokens, int heads, int head_dim) {
  if (tensor.defined() && tensor.sizes() == at::IntArrayRef({tokens, heads, head_dim})) return;
  refuse("engine.attention", std::string(name) + " is " + (tensor.defined() ? describe(tensor.sizes()) : "undefined") +
                                 "; use [" + std::to_string(tokens) + ", " + std::to_string(heads) + ", " +
                                 std::to_string(head_dim) + "], the schedule's tokens and the model's heads");
}

void require_alike(const char* name, const at::Tensor& tensor, const at::Tensor& q) {
  if (tensor.scalar_type() == q.scalar_type() && tensor.device() == q.device()) return;
  refuse("engine.attention", std::string(name) + " is " + c10::toString(tensor.scalar_type()) + " on " +
                                 tensor.device().str() + ", q is " + c10::toString(q.scalar_type()) + " on " +
                                 q.device().str() + "; use one dtype and one device");
}

/// Kernels read the elements of a head as one run.
at::Tensor with_adjacent_elements(const at::Tensor& tensor) {
  return tensor.stride(2) == 1 || tensor.size(2) == 1 ? tensor : tensor.contiguous();
}

/// "ranks 0, 2 hold 'sha256:...'; rank 1 holds 'sha256:...'"
std::string who_holds_what(const std::vector<std::string>& digests) {
  std::vector<std::string> distinct = digests;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::string text;
  for (const std::string& digest : distinct) {
    std::string ranks;
    for (std::size_t rank = 0; rank < digests.size(); ++rank) {
      if (digests[rank] == digest) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    }
    text += (text.empty() ? "ranks " : "; ranks ") + ranks + " hold '" + digest + "'";
  }
  return text;
}

}  // namespace

Engine::Engine(c10::intrusive_ptr<c10d::ProcessGroup> group, const EngineOptions& options) {
  if (!group) refuse("engine", "no process group; use the world group");
  state_ = std::make_shared<EngineState>(std::move(group), options.kernel);
}

Engine::~Engine() = default;

void Engine::begin_step(const Schedule& schedule) {
  const char* const where = "engine.begin_step";
  const c10d::ProcessGroup& group = state_->exchanger.group();
  if (schedule.ranks != group.getSize() || schedule.rank != group.getRank()) {
    refuse(where, "a schedule of rank " + std::to_string(schedule.rank) + " of " + std::to_string(schedule.ranks) +
                      "; this engine is rank " + std::to_string(group.getRank()) + " of " +
                      std::to_string(group.getSize()));
  }
  if (schedule.digest.empty() || schedule.digest.size() > kDigestBytes) {
    refuse(where, "a digest of " + std::to_string(schedule.digest.size()) + " characters; use 1 .. " +
                      std::to_string(kDigestBytes));
  }
  auto plan = std::make_shared<const StepPlan>(make_step_plan(schedule));
  const std::vector<std::string> digests = state_->exchanger.gather(schedule.digest, kDigestBytes);
  if (std::any_of(digests.begin(), digests.end(), [&](const std::string& other) { return other != digests[0]; })) {
    state_->exchanger.give_up();
    throw Error(Code::communication, where, "the ranks hold different plans: " + who_holds_what(digests));
  }
  state_->plan = std::move(plan);
  state_->exchanger.reset_counters();
}

at::Tensor Engine::attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const Schedule& step = schedule();
  require_shape("q", q, step.num_tokens, step.heads, step.head_dim);
  require_shape("k", k, step.num_tokens, step.kv_heads, step.head_dim);
  require_shape("v", v, step.num_tokens, step.kv_heads, step.head_dim);
  require_alike("k", k, q);
  require_alike("v", v, q);
  state_->kernels.choose({.device = q.device().type(), .dtype = q.scalar_type(), .head_dim = step.head_dim});
  state_->exchanger.require_usable();

  const at::Tensor query = with_adjacent_elements(q);
  const at::Tensor key = with_adjacent_elements(k);
  const at::Tensor value = with_adjacent_elements(v);
  if (at::GradMode::is_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad())) {
    return AttentionFunction::apply(query, key, value, state_);
  }
  const at::NoGradGuard no_grad;
  return state_->run(*state_->plan, query, [&] {
    return layer_forward(*state_->plan, state_->kernels, state_->exchanger, query, key, value, nullptr);
  });
}

const Schedule& Engine::schedule() const {
  if (!state_->plan) refuse("engine", "no step has begun; call begin_step first");
  return state_->plan->schedule;
}

EngineCounters Engine::counters() const { return state_->exchanger.counters(); }

}  // namespace zellige
