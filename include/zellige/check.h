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
  wrong_load,       ///< load_us is not what the load model makes of the prices
  wrong_memory,     ///< memory_bytes is not the sum of needs
  over_memory_cap,  ///< a rank needs more than usable - base (command: exit 3 when alone)
  wrong_makespan,   ///< not the largest load
  wrong_floor,
  wrong_split_count,
  false_bound,     ///< a claimed bound exceeds what the plan itself reaches, or status says more than the bound proves
  unproved_claim,  ///< a bound, or an end of a search, that the plan does not prove, nor the checker itself
  wrong_anchors,   ///< the anchors' largest load is not what the certificate says, or over the limit of round 2
  wrong_status,    ///< a status that does not go with the rest (sequences without a plan, certified without proofs)
  wrong_method,    ///< no name, or a solver that one of our methods does not use
  wrong_exec,      ///< waves < 1 or beyond kMaxWaves, unknown engine
  wrong_load_model,  ///< none that there is, or a hidden part that is not 0 to 1000 thousandths
  wrong_profile,     ///< profile_digest is another profile's
  wrong_digest,      ///< the digest in the file is not its placement's
};

struct Finding {
  Violation what;
  std::string message;  ///< names sequence or rank, the value, and what would be right
};

/// A claim that CP-SAT may have proved and that the checker could neither prove nor refute. Whoever relies on it relies
/// on CP-SAT. No other solver's word is taken: there the same is a finding.
struct Unverified {
  std::string field;    ///< e.g. "anchor_bound_us"
  std::string message;  ///< names the value, who states it, and what the checker can prove
};

struct Verdict {
  /// Everything that is wrong, none for a good plan. What names a sequence or a rank comes before what names a digest.
  std::vector<Finding> findings;
  std::vector<Unverified> unverified;
};

/// Judges a plan by recomputing everything from batch and profile. Knows no model, no solver and not the scorer.
/// Bounds, `optimal` and `certified` are believed only where the plan's certificate proves them or the checker can by
/// itself (docs/concepts/checker.md). Where a sequence has no price or no proper rank set, loads, memory, makespan and
/// cap are not judged, as nobody can say what they should be. Never throws for a bad plan. Errors: Code::input when
/// batch and profile do not go together (match_buckets).
Verdict judge(const Plan& plan, const Batch& batch, const Profile& profile);

/// The findings of `judge`.
std::vector<Finding> check(const Plan& plan, const Batch& batch, const Profile& profile);

/// Whether there are findings and all of them say that a rank is over the memory cap (command: exit 3, not 2).
bool is_only_over_memory_cap(const std::vector<Finding>& findings);

std::string_view name(Violation violation);  ///< e.g. "over-memory-cap"

}  // namespace zellige
