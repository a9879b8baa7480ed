// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "engine/torch.h"

namespace zellige {

/// Runs `run(inputs)` without keeping anything but the inputs, and runs it again in the backward pass to get its
/// gradients: activation checkpointing. All tensors that need gradients, parameters too, must come as inputs, so that
/// their gradients leave through this node and gradient hooks fire once each.
/// Collective if `run` is: forward once, in backward once forward and once backward.
/// @param run  pure: the same inputs give the same output; called from the thread that runs the backward pass
at::Tensor checkpoint(std::function<at::Tensor(const std::vector<at::Tensor>&)> run,
                      const std::vector<at::Tensor>& inputs);

}  // namespace zellige
