// SPDX-License-Identifier: Apache-2.0
#include "train/adamw.h"

#include <utility>

namespace zellige {

AdamW::AdamW(std::vector<at::Tensor> parameters, const TrainConfig::Optimizer& options)
    : parameters_(std::move(parameters)), options_(options) {
  for (const at::Tensor& parameter : parameters_) {
    means_.push_back(at::zeros_like(parameter));
    squares_.push_back(at::zeros_like(parameter));
    steps_.push_back(at::zeros({}, parameter.options().dtype(at::kFloat)));
  }
}

std::vector<at::Tensor> AdamW::gradients() const {
  std::vector<at::Tensor> list;
  for (const at::Tensor& parameter : parameters_) list.push_back(parameter.grad());
  return list;
}

double AdamW::gradient_norm() const {
  const at::NoGradGuard no_grad;
  return at::stack(at::_foreach_norm(gradients(), 2)).norm().item<double>();
}

double AdamW::parameter_norm() const {
  const at::NoGradGuard no_grad;
  return at::stack(at::_foreach_norm(parameters_, 2)).norm().item<double>();
}

void AdamW::update(double norm) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> list = gradients();
  if (options_.clip_norm > 0 && norm > options_.clip_norm) at::_foreach_mul_(list, options_.clip_norm / norm);
  at::_foreach_add_(steps_, 1);
  at::_fused_adamw_(parameters_, list, means_, squares_, {}, steps_, options_.lr, options_.betas[0], options_.betas[1],
                    options_.weight_decay, options_.eps, /*amsgrad=*/false, /*maximize=*/false);
}

}  // namespace zellige
