// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "zellige/placement.h"

namespace zellige::app {

/// A plan with a placement in words: a line for every split sequence (how, over which ranks), one for every rank (which
/// shards, which whole sequences beside them), and one that says which rank sets overlap.
/// @param most  lines of either kind; of more the first ones are shown and the others counted
std::string in_words(const Plan& plan, int most);

}  // namespace zellige::app
