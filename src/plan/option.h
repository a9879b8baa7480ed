// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "zellige/batch.h"
#include "zellige/catalog.h"
#include "zellige/load_model.h"
#include "zellige/profile.h"

namespace zellige {

// What is to be placed, as the solvers see it: groups of sequences that no solver can tell apart, and what each may
// take. Rank sets are not listed: an option's price and memory do not depend on them, so any `degree` distinct ranks
// do.

/// A configuration that the members of a group may take, and what it costs each rank that takes part. A rank's load is
/// the larger of its sums of time and of exchange; both are what the load model charges (LoadModel), so nothing but
/// make_problem knows which one it is.
struct Option {
  Configuration config;
  int degree = 1;                 // lambda_{g,j}
  std::int64_t time_us = 0;       // p_{g,j}
  std::int64_t memory_bytes = 0;  // m_{g,j}
  std::int64_t exchange_us = 0;   ///< 0 where loads are additive

  std::int64_t load_us() const { return std::max(time_us, exchange_us); }  ///< of a rank that holds nothing else
  bool is_split() const { return degree > 1; }                             // xi_{g,j}
  bool operator==(const Option&) const = default;
};

/// Sequences of one bucket: same length, same options, same coefficients. One element of E (section IV-C).
struct Group {
  BucketIndex bucket = 0;              ///< in the profile's catalog
  std::vector<SequenceIndex> members;  ///< in batch order
  std::vector<Option> options;         ///< by degree, then q, then h  // J_g

  std::int64_t count() const { return static_cast<std::int64_t>(members.size()); }  // n_g
};

/// An instance of Anchor Placement (Eq. 7), or of Eq. 1 over a whole batch.
struct Problem {
  int ranks = 1;                      // N
  std::int64_t memory_cap_bytes = 0;  // M_cap
  std::vector<Group> groups;          ///< dearest whole sequence first  // E

  std::int64_t num_sequences() const;
};

/// Groups the sequences of the wanted buckets (GroupEquivalentAnchors, Alg. 1 line 3) with every configuration that is
/// on the menu, legal and priced.
/// @param buckets  [sequences], profile bucket of each (match_buckets)
/// @param wanted   [buckets of the profile's catalog]
/// Errors: Code::input when the sums of the batch would leave 62 bits.
Problem make_problem(const Batch& batch, const Profile& profile, std::span<const BucketIndex> buckets,
                     const std::vector<bool>& wanted, Menu menu, const LoadModel& model = {});

/// The same problem without options that no best placement needs: those over the memory cap, and those dominated by
/// another one of no higher degree, time, exchange and memory (which may run on a subset of the same ranks, so that no
/// load, no memory and no split count rises). Keeps optimum load, optimum split count at any load limit, and
/// feasibility.
Problem reduced(const Problem& problem);

/// Names the first group of which no option fits one rank's cap, with its smallest need; empty when there is none.
/// Such a batch has no placement.
std::string why_never_fits(const Problem& problem, const Batch& batch, const Profile& profile);

}  // namespace zellige
