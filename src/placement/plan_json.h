// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json.h"
#include "zellige/placement.h"

namespace zellige {

/// `exec` of a plan, as it stands in the file and under the digest.
OrderedJson to_json(const ExecOptions& exec);

}  // namespace zellige
