// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zellige/placement.h"

namespace zellige {

/// A rule that a plan can break.
enum class Violation {
  wrong_batch,      ///< ranks, model or the list of sequences is not the batch's (order, id, bucket, tokens)
  illegal_config,   ///< why_illegal says something
  unpriced_config,  ///< the profile has no price for it
  wrong_rank_set,   ///< not degree-many ranks, one out of range, or one twice
  wrong_claim,      ///< a sequence's time or memory is not the profile's
  wrong_load,       ///< load_us is not the sum of prices
  wrong_memory,     ///< memory_bytes is not the sum of needs
  over_memory_cap,  ///< a rank needs more than usable - base (command: exit 3 when alone)
  wrong_makespan,   ///< not the largest load
  wrong_floor,
  wrong_split_count,
  false_bound,    ///< a claimed bound exceeds what the plan itself reaches, or status says more than the bound proves
  wrong_status,   ///< a status that does not go with the rest (sequences without a plan, certified without proofs)
  wrong_exec,     ///< waves < 1 or beyond kMaxWaves, unknown engine
  wrong_profile,  ///< profile_digest is another profile's
};

struct Finding {
  Violation what;
  std::string message;  ///< names sequence or rank, the value, and what would be right
};

/// Judges a plan by recomputing everything from batch and profile. Knows no model, no solver and not the scorer.
/// Returns every finding, none for a good plan; where a sequence has no price or no proper rank set, loads, memory,
/// makespan and cap are not judged, as nobody can say what they should be. Never throws for a bad plan.
/// Errors: Code::input when batch and profile do not go together (match_buckets).
std::vector<Finding> check(const Plan& plan, const Batch& batch, const Profile& profile);

/// Whether there are findings and all of them say that a rank is over the memory cap (command: exit 3, not 2).
bool is_only_over_memory_cap(const std::vector<Finding>& findings);

std::string_view name(Violation violation);  ///< e.g. "over-memory-cap"

}  // namespace zellige
