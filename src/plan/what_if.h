// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "zellige/batch.h"
#include "zellige/profile.h"

namespace zellige {

// What a step would need under circumstances that the profile does not price: more ranks than it has configurations
// for, another checkpointing mode, another number of frames. Memory follows the analytical model: a priced need times
// the ratio of its terms with and without the change, so that a calibrated profile stays calibrated.

/// Circumstances that differ from the profile's.
struct WhatIf {
  std::optional<bool> checkpointing;
  int ranks = 1;  ///< configurations up to min(ranks, 16) ranks, and over exactly `ranks`, are added where missing
};

/// The profile with prices for those circumstances. Times of added prices are the whole sequence's share of the rank;
/// they only order options, and say nothing about how long a step takes.
Profile what_if(const Profile& profile, const WhatIf& change);

/// The profile with one more bucket: `like` cut to `frames` frames, named "LIKE@FRAMES". Errors: as sequence_tokens.
Profile with_cut_bucket(const Profile& profile, BucketIndex like, int frames);

/// The price of a bucket that takes the least memory of a rank among those of the menu for so many ranks; null when
/// there is none. The first in menu order among equals.
const Price* least_need(const Profile& profile, BucketIndex bucket, int ranks, Menu which);

}  // namespace zellige
