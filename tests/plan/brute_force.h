// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "zellige/batch.h"
#include "zellige/load_model.h"
#include "zellige/profile.h"

namespace zellige::testing {

// The oracle: tries every configuration on every set of ranks for every sequence (Eq. 1), with none of the planner's
// reductions and none of its code. For N <= 4 and a handful of sequences.

/// What a placement comes to.
struct Outcome {
  std::vector<std::int64_t> load_us;       ///< [ranks], by the load model
  std::vector<std::int64_t> memory_bytes;  ///< [ranks]
  int splits = 0;

  std::int64_t largest_load() const;
  auto operator<=>(const Outcome&) const = default;
};

/// Calls `visit` with the outcome of every placement of the wanted sequences that keeps the memory cap.
void for_each_placement(const Batch& batch, const Profile& profile, const std::vector<bool>& wanted, Menu menu,
                        const std::function<void(const Outcome&)>& visit, const LoadModel& model = {});

/// The two optima of Eq. 7 over the wanted sequences.
struct Optimum {
  std::int64_t load_us = 0;  // T*
  int splits = 0;            // K* at loads <= limit_us
  std::int64_t limit_us = 0;
};
/// None when nothing keeps the cap.
/// @param limit_of  the load limit of the second round, given T*
std::optional<Optimum> brute_force(const Batch& batch, const Profile& profile, const std::vector<bool>& wanted,
                                   Menu menu, const std::function<std::int64_t(std::int64_t)>& limit_of,
                                   const LoadModel& model = {});

/// floor(1001 T / 1000)
std::int64_t a_thousandth_more(std::int64_t load_us);

}  // namespace zellige::testing
