// SPDX-License-Identifier: Apache-2.0
#include "engine/slice_tasks.h"

namespace zellige {

bool has_slice_kernels() { return false; }
const char* launch_slice_tasks(std::span<const SliceTask>, void*) { return "built without a CUDA compiler"; }
const char* launch_merge(const MergeTask&, void*) { return "built without a CUDA compiler"; }

}  // namespace zellige
