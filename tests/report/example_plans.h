// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "zellige/placement.h"
#include "zellige/profile.h"

namespace zellige::testing {

/// The worked case of docs/design/formats.md: two ranks, one split video, four images.
Profile worked_profile();
Plan worked_plan();

/// `count` images of 256 tokens and one 720p video, for `ranks` ranks, and an estimated profile for them.
Batch many_images(int ranks, int count);
/// Everything whole, dealt out to the ranks in turn.
Plan dealt_out(const Batch& batch, const Profile& profile, const std::string& method);
/// Everything split over all ranks by their keys.
Plan split_over_all(const Batch& batch, const Profile& profile, const std::string& method);
Plan failed(const std::string& method, const std::string& reason);

}  // namespace zellige::testing
