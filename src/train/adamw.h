// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/torch.h"
#include "zellige/trainer.h"

namespace zellige {

/// AdamW (decoupled weight decay) over the library's fused kernel, and clipping of the gradients' norm.
/// Every rank holds all parameters and, after the gradient sync, equal gradients, so that all ranks stay equal without
/// a word. Threads: one call at a time.
class AdamW {
 public:
  AdamW(std::vector<at::Tensor> parameters, const TrainConfig::Optimizer& options);

  /// 2-norm of all gradients together.
  double gradient_norm() const;
  /// 2-norm of all parameters together; infinite also where only the sum of squares is.
  double parameter_norm() const;
  /// Scales the gradients so that their norm is at most options.clip_norm, then updates the parameters.
  /// @param norm  what gradient_norm said
  void update(double norm);

 private:
  std::vector<at::Tensor> gradients() const;

  std::vector<at::Tensor> parameters_;
  TrainConfig::Optimizer options_;
  std::vector<at::Tensor> means_;    // of the gradients, decaying
  std::vector<at::Tensor> squares_;  // of their squares
  std::vector<at::Tensor> steps_;    // updates made, fp32 as the kernel wants
};

}  // namespace zellige
