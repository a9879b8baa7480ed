// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "placement/anchor_certificate.h"

namespace zellige {

// Bounds that the checker recomputes: what it can say of a claim that comes without a proof. They use no solver, no
// search over placements and nothing of the planner's bounds. docs/concepts/checker.md says why each holds.

/// The options that claims are about.
enum class Choice {
  powers_of_two,  ///< Menu::powers_of_two
  all,            ///< Menu::all
  priced          ///< every legal configuration that the profile prices
};

bool is_chosen(Choice choice, int degree);

/// The batch's sequences in the wanted buckets, a group each.
/// @param bucket_of  [sequences of the batch] bucket in the profile's catalog
/// @param wanted     [buckets of the profile]
ProofInstance instance_of(const Batch& batch, const Profile& profile, const std::vector<BucketIndex>& bucket_of,
                          const std::vector<bool>& wanted, Choice choice, const LoadModel& model);

/// Whether it is certain that no placement has all loads <= `limit_us`.
bool refutes_load(const ProofInstance& instance, std::int64_t limit_us);

/// Whether it is certain that no placement keeps the memory cap.
bool refutes_memory(const ProofInstance& instance);

/// The largest bound of the makespan that `refutes_load` was found to prove; at most `most_us`.
std::int64_t recomputed_load_bound(const ProofInstance& instance, std::int64_t most_us);

/// A number of sequences that every placement with loads <= `limit_us` splits at least.
std::int64_t recomputed_split_bound(const ProofInstance& instance, std::int64_t limit_us);

}  // namespace zellige
