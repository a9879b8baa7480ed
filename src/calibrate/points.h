// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "zellige/calibrate.h"

namespace zellige {

/// What was measured so far: all that a profile is made of, and what an interrupted run goes on from.
/// File format "zellige.points" version 1.
struct Points {
  std::string of;  ///< identity_of the run that measured them
  int depth = 0;
  std::optional<double> fixed_us, full_fixed_us, token_us, sequence_us, gradient_sync_us, optimizer_us;
  std::vector<MeasuredPoint> points;
  std::vector<DepthCheck> checks;
  std::int64_t slack_bytes = 0;  ///< most that the allocator held over what it had handed out

  const MeasuredPoint* find(Tokens tokens, Configuration config) const;
};

/// Digest of what measurements depend on: catalog, text width, key of the device, depth, tokens a rank.
std::string identity_of(const CalibrateOptions& options, const ProfileKey& key, int depth);

std::string points_json(const Points& points);
/// Errors: Code::input naming field and value; when the points are of another run (`of`).
Points points_from(const std::string& text, const std::string& of);

}  // namespace zellige
