// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "testing/dense_attention.h"
#include "zellige/schedule.h"

namespace zellige::oracle {

/// A message, or one piece of it, that never arrives.
struct Loss {
  bool backward = false;
  std::size_t exchange = 0;  ///< index in Schedule::forward or ::backward
  Rank from = 0, to = 0;
  std::optional<std::size_t> piece;  ///< position in the message; none: the whole message
};

/// Runs one attention layer, forward and backward, on all ranks at once, knowing nothing but their schedules: what each
/// rank owns and computes follows from its segments by engine.md's rules (computed here, not by the lowering's code),
/// what it gets from its exchanges. A rank's memory is poisoned (NaN) where nothing was written; messages are flat
/// buffers, packed by the sender's pieces and unpacked by the receiver's; between forward and backward all is poisoned
/// that a rank may not keep.
/// @param schedules  [ranks]
/// @param inputs     [sequences]
/// @return           [sequences], put together from the owners' rows; NaN where nobody owned or wrote
/// Throws std::logic_error, saying where, when the schedules do not fit together: different lists of exchanges, a
/// message of another size than expected, an element received twice, a token owned twice.
std::vector<AttentionResult> simulate_attention(const std::vector<Schedule>& schedules,
                                                const std::vector<AttentionInputs>& inputs,
                                                const std::optional<Loss>& loss = std::nullopt);

/// Every message that is not empty, in both passes; with `pieces` every piece of it instead.
std::vector<Loss> all_losses(const std::vector<Schedule>& schedules, bool pieces);

}  // namespace zellige::oracle
