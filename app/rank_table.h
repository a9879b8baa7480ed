// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "zellige/profile.h"
#include "zellige/score.h"

namespace zellige::app {

/// Prints load, exchange, memory and tokens of the ranks as a table: a row a rank, or, of more than `most`, the
/// extremes and quantiles of each column by itself.
void print_ranks(const Score& score, const Profile& profile, int most);

}  // namespace zellige::app
