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
  void add(Violation what, std::string message) { verdict_.findings.push_back({what, std::move(message)}); }
  void leave_unverified(std::string field, std::string message) {
    verdict_.unverified.push_back({std::move(field), std::move(message)});
  }
  Verdict take() { return std::move(verdict_); }

 private:
  Verdict verdict_;
};

/// What a piece adds to the two sums of its rank, of which the larger one is the load. By the checker's own reckoning.
struct PieceLoads {
  std::int64_t time_us = 0;      ///< >= 1
  std::int64_t exchange_us = 0;  ///< 0 where loads are additive
};
PieceLoads piece_loads(const Price& price, const LoadModel& model);

/// Why a load model is none; empty when it is one.
std::string why_no_load_model(const LoadModel& model);

/// What the checker computes itself from batch and profile. `sums_known` is false where a sequence has no price or no
/// proper rank set: then nothing can be said of loads, memory and makespan.
struct Recomputed {
  bool sums_known = true;
  std::vector<Wide> load_us;       ///< [ranks]
  std::vector<Wide> memory_bytes;  ///< [ranks]
  Wide makespan_us = 0;
  std::vector<Wide> anchor_load_us;  ///< [ranks] of the anchors alone
  std::int64_t split_count = 0;
};

/// Finds the batch's sequence of each placed one, none where the batch does not have it. In a good plan they stand in
/// the same order.
std::vector<std::optional<std::size_t>> match_sequences(const Plan& plan, const Batch& batch, Findings& findings);

/// Compares the digests, with what explains a difference where that can be found out.
void check_digests(const Plan& plan, const Batch& batch, const Profile& profile, Findings& findings);

/// Judges status, reason and certificate: bounds against what the plan reaches, proofs against what is claimed of them.
/// @return whether its numbers are of a kind that can be judged further
bool check_certificate(const Plan& plan, const Recomputed& recomputed, Findings& findings);

}  // namespace zellige
