// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zellige/check.h"

namespace zellige {

/// Sums of a plan that may claim anything: 2^63 terms of 64 bits fit.
__extension__ typedef __int128 Wide;

std::string text(Wide value);

class Findings {
 public:
  void add(Violation what, std::string message) { list_.push_back({what, std::move(message)}); }
  std::vector<Finding> take() { return std::move(list_); }

 private:
  std::vector<Finding> list_;
};

/// What the checker computes itself from batch and profile. `sums_known` is false where a sequence has no price or no
/// proper rank set: then nothing can be said of loads, memory and makespan.
struct Recomputed {
  bool sums_known = true;
  std::vector<Wide> load_us;       ///< [ranks]
  std::vector<Wide> memory_bytes;  ///< [ranks]
  Wide makespan_us = 0;
  std::int64_t split_count = 0;
  Wide split_need_us = 0;  ///< no placement of the split sequences has a smaller largest load
};

/// Finds the batch's sequence of each placed one, none where the batch does not have it. In a good plan they stand in
/// the same order.
std::vector<std::optional<std::size_t>> match_sequences(const Plan& plan, const Batch& batch, Findings& findings);

/// Judges status, reason and certificate: bounds against what the plan reaches, proofs against what is claimed of them.
void check_certificate(const Plan& plan, const Recomputed& recomputed, Findings& findings);

}  // namespace zellige
