// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace zellige {

/// Returns the version of the library, "major.minor.patch".
std::string_view version();

/// Which lowering and exchange a profile's prices were measured with. Raised when a change of the engine makes
/// measured prices stale; part of a profile's key (formats.md, Profile).
inline constexpr int kExecutorVersion = 1;

}  // namespace zellige
