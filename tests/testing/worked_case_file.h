// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace zellige::testing {

/// A file of the worked case of docs/design/formats.md: two ranks, one split video, four images.
inline std::string worked_case(std::string_view name) {
  return std::string(ZELLIGE_SOURCE_DIR) + "/tests/golden/worked_case/" + std::string(name);
}

}  // namespace zellige::testing
