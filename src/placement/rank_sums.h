// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "zellige/placement.h"
#include "zellige/profile.h"

namespace zellige {

/// Prices of placed sequences, which know their bucket by name. The profile outlives it.
class PriceLookup {
 public:
  explicit PriceLookup(const Profile& profile);

  /// Errors: Code::input when the configuration is none for the sequence, or the profile has no such bucket or no price
  /// for it.
  const Price& price(const PlacedSequence& sequence) const;
  const Price& whole(const PlacedSequence& sequence) const;

 private:
  BucketIndex bucket(const PlacedSequence& sequence) const;

  const Profile& profile_;
  std::unordered_map<std::string, BucketIndex> by_name_;
};

/// What every rank's sequences cost it.
struct RankSums {
  std::vector<Microseconds> load;      ///< [ranks] by the load model: additive, the sum of prices (Eq. 1)
  std::vector<Microseconds> exchange;  ///< [ranks]
  std::vector<Bytes> memory;           ///< [ranks]
  Microseconds makespan;               ///< largest load
  int split_count = 0;                 ///< sequences of degree > 1
};

/// Errors: Code::input for a missing price, a rank set that is not degree-many of 0 .. ranks - 1, or a sum beyond 64
/// bits.
RankSums rank_sums(const Placement& placement, const PriceLookup& prices, const LoadModel& model);

/// total += value. Errors: Code::input beyond 64 bits.
void add_checked(std::int64_t& total, std::int64_t value);

}  // namespace zellige
