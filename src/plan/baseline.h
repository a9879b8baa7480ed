// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "plan/deadline.h"
#include "zellige/planner.h"

namespace zellige {

/// The sequences of one bucket: interchangeable in every baseline.
struct Lot {
  BucketIndex bucket = 0;  ///< in the profile's catalog
  Tokens tokens;
  std::vector<SequenceIndex> members;  ///< in batch order

  std::int64_t count() const { return static_cast<std::int64_t>(members.size()); }
};

/// A batch with its prices at hand. Refers to batch and profile, which must outlive it.
class BaselineProblem {
 public:
  /// Errors: Code::input when batch and profile do not go together (match_buckets).
  BaselineProblem(const Batch& batch, const Profile& profile);

  const Batch& batch;
  const Profile& profile;
  int ranks;                         ///< N
  Bytes cap;                         ///< M_cap
  std::vector<BucketIndex> buckets;  ///< [sequences], in the profile's catalog
  std::vector<Lot> lots;             ///< only buckets with sequences; longest first, then by bucket

  SequenceIndex num_sequences() const { return static_cast<SequenceIndex>(buckets.size()); }
  /// The price of a lot's sequences under a configuration; null when that is illegal on `ranks` ranks or has no price.
  const Price* find(const Lot& lot, Configuration configuration) const;
  /// Why `find` gives null, naming the bucket: "480p10s: head split 5 ...".
  std::string why_unavailable(const Lot& lot, Configuration configuration) const;
  /// Why no placement of any kind can fit into memory; empty when that is not proved.
  std::string why_infeasible() const;
};

/// Where a sequence runs: ranks first_rank .. first_rank + degree - 1. Every baseline uses consecutive ranks.
struct Spot {
  Configuration config;
  Rank first_rank = 0;
};

/// What a baseline decided.
struct Decision {
  std::vector<Spot> spots;  ///< [sequences]; empty when `reason` says why there are none
  std::string layout;       ///< written behind the name in Plan::solver; may be empty
  std::string reason;       ///< why there is no placement
  bool timed_out = false;   ///< it is a matter of time only
};
Decision no_placement(std::string reason);
Decision timed_out(const Deadline& deadline, std::string_view while_doing);

/// What all baselines share: they check options, decide on spots, and report by one rule. A decision that breaks the
/// memory cap becomes PlanStatus::unknown with a reason that starts with "OOM"; infeasible is said only where no
/// placement of any kind can fit.
class Baseline : public Planner {
 public:
  Plan plan(const Batch& batch, const Profile& profile, const PlanOptions& options, std::stop_token stop) const final;

 protected:
  /// May break the memory cap, which `plan` then refuses; must use only options that `BaselineProblem::find` knows.
  virtual Decision decide(const BaselineProblem& problem, const PlanOptions& options,
                          const Deadline& deadline) const = 0;
  /// "[plan.usp]"-style name of the place for errors.
  std::string where() const { return "plan." + std::string(name()); }
  /// Errors: Code::input when a layout is given, for methods that take none.
  void refuse_layout(const PlanOptions& options) const;
};

/// "OOM: rank 2 needs 12 bytes, 2 over the memory cap of 10 bytes"
std::string over_memory(Rank rank, Bytes need, Bytes cap);

}  // namespace zellige
