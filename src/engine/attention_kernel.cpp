// SPDX-License-Identifier: Apache-2.0
#include "engine/attention_kernel.h"

#include <string>

#include "zellige/error.h"

namespace zellige {

AttentionOutput AttentionKernel::forward_packed(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                                const PackedLengths&, double, const at::Tensor&) const {
  throw Error(Code::internal, "engine", "kernel '" + std::string(name()) + "' takes no packed sequences");
}

AttentionGradients AttentionKernel::backward_packed(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                                    const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                                    const PackedLengths&, double, const AttentionGradients&) const {
  throw Error(Code::internal, "engine", "kernel '" + std::string(name()) + "' takes no packed sequences");
}

}  // namespace zellige
