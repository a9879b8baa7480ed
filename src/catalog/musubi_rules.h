// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json.h"
#include "zellige/manifest.h"

namespace zellige {

/// Reads a musubi-tuner dataset file as rules for Wan2.1 1.3B: one bucket for each size and number of frames that its
/// datasets ask for. Frames are rounded down to 4n+1 as musubi-tuner does, with a note. Its aspect-ratio bucketing
/// (enable_bucket) is read as "any orientation"; directories, caches and batch sizes do not concern buckets.
BucketRules musubi_rules(const JsonDocument& document, const std::string& path);

}  // namespace zellige
