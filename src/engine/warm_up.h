// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "engine/kernel_table.h"
#include "engine/step_plan.h"
#include "engine/torch.h"

namespace zellige {

/// Runs kernel calls once so that their modules are loaded and their plans built; remembers which it ran.
class WarmUp {
 public:
  /// Every call of a layer that was not run yet, forward and backward, each on the thread that will run it: cuDNN's
  /// plans are a thread's own, and autograd runs backward on one of its own for each GPU.
  /// @return  calls run
  std::size_t run(const StepPlan& plan, const KernelTable& kernels, const at::TensorOptions& options);

 private:
  std::set<std::string> done_;
};

}  // namespace zellige
