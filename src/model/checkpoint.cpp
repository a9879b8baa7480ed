// SPDX-License-Identifier: Apache-2.0
#include "model/checkpoint.h"

#include <utility>

#include <torch/csrc/autograd/engine.h>

namespace zellige {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Run = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// Carries the function from forward to backward: a context keeps tensors and reference-counted values only.
struct KeptRun : torch::CustomClassHolder {
  explicit KeptRun(Run kept) : run(std::move(kept)) {}
  Run run;
};

struct Checkpoint : torch::autograd::Function<Checkpoint> {
  // A TensorList and no vector: only its tensors are seen as inputs of the node.
  static at::Tensor forward(AutogradContext* context, Run run, at::TensorList input_list) {
    variable_list inputs = input_list.vec();
    at::Tensor output = run(inputs);
    context->saved_data["run"] = c10::IValue::make_capsule(c10::make_intrusive<KeptRun>(std::move(run)));
    context->save_for_backward(std::move(inputs));
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list output_gradients) {
    const auto holder = context->saved_data["run"].toCapsule();
    const Run& run = static_cast<const KeptRun*>(holder.get())->run;
    variable_list inputs;
    torch::autograd::edge_list wanted;
    for (const at::Tensor& saved : context->get_saved_variables()) {
      inputs.push_back(saved.detach().set_requires_grad(saved.requires_grad()));
      if (saved.requires_grad()) wanted.push_back(torch::autograd::impl::gradient_edge(inputs.back()));
    }
    torch::autograd::Edge root;
    {
      // The graph is enough: the output itself would take as much as a block's input all through the backward pass.
      const at::AutoGradMode with_gradients(true);
      root = torch::autograd::impl::gradient_edge(run(inputs));
    }
    variable_list found = torch::autograd::Engine::get_default_engine().execute(
        {root}, output_gradients, /*keep_graph=*/false, /*create_graph=*/false, /*accumulate_grad=*/false, wanted);
    variable_list gradients(1);  // none for the function
    auto next = found.begin();
    for (const at::Tensor& input : inputs) gradients.push_back(input.requires_grad() ? *next++ : at::Tensor());
    return gradients;
  }
};

}  // namespace

at::Tensor checkpoint(Run run, const std::vector<at::Tensor>& inputs) {
  return Checkpoint::apply(std::move(run), at::TensorList(inputs));
}

}  // namespace zellige
