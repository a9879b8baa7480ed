// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace zellige {

/// Returns the version of the library, "major.minor.patch".
std::string_view version();

/// Which lowering, exchange and blocks a profile was measured with. Raised when a change of engine or model makes
/// measured prices or memory stale; part of a profile's key (formats.md, Profile).
inline constexpr int kExecutorVersion = 2;

}  // namespace zellige
