// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "placement/check_parts.h"
#include "placement/refutation.h"
#include "zellige/batch.h"
#include "zellige/profile.h"

namespace zellige {

/// Which buckets' sequences the certificate's rounds are about: those that it names, else those that Eq. 4 cuts off for
/// the methods that cut, and all for the others. [buckets of the profile]
std::vector<bool> anchors_of(const Plan& plan, const Profile& profile);

/// Whether `certificate.anchor_placement` is a placement of the anchors of these options within the memory cap: empty,
/// or why not.
/// @param largest_load_us  set to its largest load
std::string why_no_witness(const Plan& plan, const Batch& batch, const Profile& profile,
                           const std::vector<BucketIndex>& bucket_of, const std::vector<bool>& is_anchor, Choice choice,
                           Wide& largest_load_us);

/// Judges that method and solver go together, and every claim that needs a proof: `optimal`, `certified`, `infeasible`
/// and the bounds. What neither the plan proves nor the checker can is a finding, or unverified where CP-SAT states it.
/// @param bucket_of  [sequences of the batch] bucket in the profile's catalog
/// @param is_anchor  [buckets of the profile]
void check_claims(const Plan& plan, const Batch& batch, const Profile& profile,
                  const std::vector<BucketIndex>& bucket_of, const std::vector<bool>& is_anchor,
                  const Recomputed& recomputed, Findings& findings);

}  // namespace zellige
