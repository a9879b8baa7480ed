// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "zellige/units.h"

namespace zellige {

/// A sequence that stays whole, as Filler Packing sees it.
struct Filler {
  SequenceIndex sequence = 0;
  std::int64_t time_us = 0;       // p_s
  std::int64_t memory_bytes = 0;  // M_{s,whole,r}
};

/// What the ranks hold already, and the limits.
struct FillerLedger {
  std::vector<std::int64_t> load_us;       ///< [ranks]  // C_r
  std::vector<std::int64_t> memory_bytes;  ///< [ranks]  // M_r
  std::int64_t memory_cap_bytes = 1;       ///< positive  // M_cap
  std::int64_t whole_time_us = 0;          ///< whole prices of the whole batch, anchors too  // S; F = S / N
};

struct FillerResult {
  std::vector<Rank> rank;  ///< [fillers], of those placed, in the order given
  std::optional<std::size_t>
      unplaced;  ///< position in `fillers` of the first that fitted no rank; nothing after it ran
};

/// Filler Packing (Eq. 8, Alg. 1 lines 10-15): in decreasing price, ties in the order given, each filler goes to the
/// rank with memory room that keeps the largest min(rhoC, rhoM) afterwards, ties to the lowest rank. Exact: scores are
/// compared as integers over a common denominator, and negative ones (load over F) are scores. Updates `ledger`.
/// Cost: fillers x log(ranks), and ranks for each change of price or need in that order.
FillerResult pack_fillers(const std::vector<Filler>& fillers, FillerLedger& ledger);

}  // namespace zellige
