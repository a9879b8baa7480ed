// SPDX-License-Identifier: Apache-2.0
#include "zellige/version.h"

namespace zellige {

std::string_view version() { return ZELLIGE_VERSION; }

}  // namespace zellige
