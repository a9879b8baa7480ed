// SPDX-License-Identifier: Apache-2.0
#include "zellige/engine.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "engine/exchanger.h"
#include "engine/kernel_table.h"
#include "engine/layer.h"
#include "engine/step_plan.h"
#include "engine/torch.h"
#include "engine/warm_up.h"
#include "zellige/error.h"

namespace zellige {

namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// What torch's allocators throw: a type of its own on GPUs, a text on the CPU.
bool ran_out_of_memory(const std::exception& error) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         std::string_view(error.what()).find("can't allocate memory") != std::string_view::npos;
}

}  // namespace

/// A step's plan and what depends on dtype and device beside: made once a step, used by all layers.
struct StepRun {
  std::shared_ptr<const StepPlan> plan;
  at::TensorOptions options;
  std::vector<WholeCall> whole;
  mutable Messages messages;  ///< of the engine that runs it
};

struct EngineState {
  EngineState(c10::intrusive_ptr<c10d::ProcessGroup> group, const EngineOptions& options)
      : exchanger(std::move(group)), kernels(options.kernel, options.rates, options.deterministic) {}

  /// The step as tensors like this one run it.
  std::shared_ptr<const StepRun> run_for(const at::Tensor& like) {
    const at::TensorOptions options = at::TensorOptions(like.dtype()).device(like.device());
    if (!current || current->options.dtype() != options.dtype() || current->options.device() != options.device()) {
      current =
          std::make_shared<const StepRun>(StepRun{plan, options, kernels.plan_whole(plan->schedule, options), {}});
    }
    return current;
  }

  /// Runs part of a layer. Whatever goes wrong in it leaves the ranks at different exchanges.
  template <class Body>
  auto run(const StepRun& step, const Body& body) {
    exchanger.require_usable();
    try {
      exchanger.prepare(*step.plan, step.options, step.messages);
      kernels.set_spare_sms(step.plan->schedule.exec.overlap ? kSpareSms : 0);
      return body(LayerWork{*step.plan, step.whole, kernels, exchanger});
    } catch (const std::exception& error) {
      exchanger.give_up();
      if (ran_out_of_memory(error)) {
        throw Error(Code::device, "engine",
                    "rank " + std::to_string(step.plan->schedule.rank) + " of " +
                        std::to_string(step.plan->schedule.ranks) + " ran out of memory on " +
                        step.options.device().str() + " in a layer of " +
                        std::to_string(step.plan->schedule.num_tokens) +
                        " tokens; plan with a smaller memory cap: " + first_line(error.what()));
      }
      throw;
    } catch (...) {
      exchanger.give_up();
      throw;
    }
  }

  /// Leaving so many multiprocessors to an exchange beside hid 80% and more of it on slow links, for 2-4% of the
  /// attention; more gained nothing (docs/evaluation.md).
  static constexpr int kSpareSms = 4;

  Exchanger exchanger;
  KernelTable kernels;
  std::shared_ptr<const StepPlan> plan;
  std::shared_ptr<const StepRun> current;  ///< of `plan`; null before its first layer
  WarmUp warm_up;
  std::int64_t forward_layers = 0, backward_layers = 0;  ///< since begin_step
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
  LayerContext(std::shared_ptr<EngineState> state_in, std::shared_ptr<const StepRun> step_in)
      : state(std::move(state_in)), step(std::move(step_in)) {}
  std::shared_ptr<EngineState> state;
  std::shared_ptr<const StepRun> step;
};

/// The attention of all tokens of a rank as one function: whole and split sequences together, so that every rank's
/// graph has one node a layer, whatever it holds.
class AttentionFunction final : public torch::autograd::Function<AttentionFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const std::shared_ptr<EngineState>& state) {
    LayerMemory memory;
    const std::shared_ptr<const StepRun> step = state->run_for(q);
    ++state->forward_layers;
    at::Tensor out = state->run(*step, [&](const LayerWork& work) { return layer_forward(work, q, k, v, &memory); });
    std::vector<at::Tensor> saved = memory.flatten();
    saved.insert(saved.begin(), {q, k, v, out});
    context->save_for_backward(std::move(saved));
    context->saved_data["layer"] = c10::IValue::make_capsule(c10::make_intrusive<LayerContext>(state, step));
    return out;
  }

  static std::vector<at::Tensor> backward(torch::autograd::AutogradContext* context, std::vector<at::Tensor> grads) {
    if (at::GradMode::is_enabled())
      refuse("engine.attention", "second derivatives are asked for; use create_graph false");
    const auto capsule = context->saved_data["layer"].toCapsule();
    const LayerContext& layer = static_cast<const LayerContext&>(*capsule);
    const std::vector<at::Tensor> saved = context->get_saved_variables();
    const StepRun& step = *layer.step;
    const LayerMemory memory = LayerMemory::unflatten(saved, 4, *step.plan, step.whole.size());
    const at::Tensor grad_out = grads[0].to(saved[3].scalar_type()).contiguous();
    EngineState& state = *layer.state;
    ++state.backward_layers;
    AttentionGradients result = state.run(step, [&](const LayerWork& work) {
      return layer_backward(work, grad_out, saved[0], saved[1], saved[2], saved[3], memory);
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
  if (!options.flash_attention_3.empty()) load_flash_attention_3(options.flash_attention_3);
  state_ = std::make_shared<EngineState>(std::move(group), options);
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
  state_->current.reset();
  state_->exchanger.reset_counters();
  state_->forward_layers = state_->backward_layers = 0;
}

std::size_t Engine::warm_up(const Schedule& schedule, at::ScalarType dtype, at::Device device) {
  try {
    return state_->warm_up.run(make_step_plan(schedule), state_->kernels, at::TensorOptions(dtype).device(device));
  } catch (const std::exception& error) {
    if (!ran_out_of_memory(error)) throw;
    throw Error(Code::device, "engine.warm_up", "out of memory on " + device.str() + ": " + first_line(error.what()));
  }
}

at::Tensor Engine::attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const Schedule& step = schedule();
  require_shape("q", q, step.num_tokens, step.heads, step.head_dim);
  require_shape("k", k, step.num_tokens, step.kv_heads, step.head_dim);
  require_shape("v", v, step.num_tokens, step.kv_heads, step.head_dim);
  require_alike("k", k, q);
  require_alike("v", v, q);
  state_->kernels.choose({.device = q.device().type(), .dtype = q.scalar_type(), .head_dim = step.head_dim},
                         Direction::forward);
  state_->exchanger.require_usable();

  const at::Tensor query = with_adjacent_elements(q);
  const at::Tensor key = with_adjacent_elements(k);
  const at::Tensor value = with_adjacent_elements(v);
  if (at::GradMode::is_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad())) {
    return AttentionFunction::apply(query, key, value, state_);
  }
  const at::NoGradGuard no_grad;
  const std::shared_ptr<const StepRun> run = state_->run_for(query);
  ++state_->forward_layers;
  return state_->run(*run, [&](const LayerWork& work) { return layer_forward(work, query, key, value, nullptr); });
}

const Schedule& Engine::schedule() const {
  if (!state_->plan) refuse("engine", "no step has begun; call begin_step first");
  return state_->plan->schedule;
}

EngineCounters Engine::counters() const { return state_->exchanger.counters(); }

StepReport Engine::report() {
  return {.counters = state_->exchanger.counters(),
          .exposed = state_->exchanger.exposed(),
          .forward_layers = state_->forward_layers,
          .backward_layers = state_->backward_layers};
}

}  // namespace zellige
