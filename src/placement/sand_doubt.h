// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "placement/pattern_doubt.h"
#include "zellige/anchor_proof.h"

namespace zellige {

/// The same question where a rank may hold any fraction of the pieces of the later groups: whether some pieces of the
/// first `counted` groups, and sand on what they leave of load limit and cap, may be worth the mean and one more, which
/// is what whole pieces worth more than the mean are. Exact integers. With prices a of a microsecond and b of a byte at
/// which no piece of sand is worth more than it costs, sand on a room of t and m is worth at most a t + b m. A set of
/// counted pieces is refuted by any one of the prices. Depth first; a branch is left when one of the prices, and for
/// each later group the most that its pieces may be worth beyond them, keep it at the mean.
/// @param prices  those that are too low for some sand are not used
/// @param work    steps that may be taken (some ten nanoseconds each), counted down
PatternVerdict is_worth_more_over_sand(const PatternQuestion& question, std::size_t counted,
                                       const std::vector<AnchorProof::Prices>& prices, std::int64_t& work);

}  // namespace zellige
