// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "placement/check_parts.h"
#include "zellige/anchor_proof.h"
#include "zellige/batch.h"
#include "zellige/placement.h"
#include "zellige/profile.h"

namespace zellige {

/// What proofs are verified against: numbers read from batch and profile alone.
struct ProofInstance {
  struct Option {
    Configuration config;
    int degree = 1;
    std::int64_t time_us = 0;
    std::int64_t memory_bytes = 0;
    std::int64_t exchange_us = 0;

    std::int64_t load_us() const { return std::max(time_us, exchange_us); }  ///< of a rank that holds nothing else
  };
  struct Group {
    std::int64_t count = 0;
    std::vector<Option> options;  ///< without those over the cap and dominated ones; by degree, then dearest first
  };
  int ranks = 1;
  std::int64_t memory_cap_bytes = 0;
  std::vector<Group> groups;
};

/// Drops the options that no best placement needs (over the cap, or another one has no higher degree, price, exchange
/// and need; of equal ones the first stays), and puts the rest in the proof's order.
std::vector<ProofInstance::Option> needed_options(const std::vector<ProofInstance::Option>& options,
                                                  std::int64_t memory_cap_bytes);

/// Whether `tree` refutes every placement with loads <= `load_limit_us`, memory within the cap and, where given, at
/// most `splits_most` split sequences: empty, or why not. Exact: integers only, nothing of a solver's.
/// @param work     steps that may be taken, counted down
/// @param counted  groups whose pieces are counted; those after them are sand (AnchorProof::counted). None: all
std::string why_not_proved(const ProofInstance& instance, const std::vector<AnchorProof::Node>& tree,
                           std::int64_t load_limit_us, std::optional<std::int64_t> splits_most, std::int64_t& work,
                           std::optional<std::size_t> counted = {});

/// Judges `certificate.duals`: both bounds must be what the proofs prove, of all anchors.
/// @param bucket_of  [sequences of the batch] bucket in the profile's catalog
/// @param is_anchor  [buckets of the profile]
/// @return whether anchor_bound is proved
bool check_anchor_proof(const Plan& plan, const Batch& batch, const Profile& profile,
                        const std::vector<BucketIndex>& bucket_of, const std::vector<bool>& is_anchor,
                        Findings& findings);

/// Judges `certificate.makespan_duals`: makespan_bound must be what they prove, of all sequences of the batch.
/// @return whether makespan_bound is proved
bool check_makespan_proof(const Plan& plan, const Batch& batch, const Profile& profile,
                          const std::vector<BucketIndex>& bucket_of, Findings& findings);

}  // namespace zellige
