// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "zellige/check.h"

namespace zellige::testing {

/// The checker's findings, a line each; empty for a good plan.
inline std::string shown(const std::vector<Finding>& findings) {
  std::string out;
  for (const Finding& finding : findings) out.append(name(finding.what)).append(": ").append(finding.message) += '\n';
  return out;
}

}  // namespace zellige::testing
