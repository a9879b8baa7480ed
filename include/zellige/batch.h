// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zellige/catalog.h"
#include "zellige/units.h"

namespace zellige {

/// One sample of a step.
struct BatchSequence {
  std::string id;          ///< unique in the batch
  BucketIndex bucket = 0;  ///< in the batch's own catalog
  std::string source;      ///< where it comes from (path or manifest row); may be empty
};

/// The sequences of one step, in the global placement order. File format "zellige.batch" version 1.
struct Batch {
  int ranks = 1;  ///< N
  Catalog catalog;
  std::vector<BatchSequence> sequences;

  const Bucket& bucket_of(SequenceIndex sequence) const { return catalog.buckets[sequences[sequence].bucket]; }
  Tokens tokens_of(SequenceIndex sequence) const { return bucket_of(sequence).tokens; }
};

/// Reads / writes a batch. Errors: Code::input, naming file, field and value.
Batch read_batch(const std::string& path);
void write_batch(const Batch& batch, const std::string& path);
std::string batch_json(const Batch& batch);

/// Makes one of the evaluation's workloads (docs/design, "Workloads"): "SUITE:Vxx" with SUITE one of high, low,
/// a800x16, a6000x32 and xx the video-token share in per cent, e.g. "high:V50". Videos first, longest first, then
/// images.
/// @param ranks  0: the suite's own number of ranks; else that many with the suite's budget a rank.
/// Errors: Code::input for a name that is none, saying which there are.
Batch make_workload(std::string_view workload_name, int ranks = 0);
std::vector<std::string> workload_suites();

}  // namespace zellige
