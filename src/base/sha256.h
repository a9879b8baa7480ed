// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace zellige {

/// Returns "sha256:" and the 64 hexadecimal digits of SHA-256 over `bytes`.
std::string sha256(std::string_view bytes);

}  // namespace zellige
