// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "placement/anchor_certificate.h"
#include "plan/deadline.h"
#include "plan/option.h"
#include "plan/whole_lp.h"
#include "zellige/anchor_proof.h"
#include "zellige/profile.h"

namespace zellige {

/// Proves lower bounds of the makespan over all placements of a batch, by the linear program over patterns with sand
/// (whole_lp.h), and where that is not enough with branches on how many sequences take which options. What it claims
/// was verified as the checker verifies it. Deterministic: effort is counted in elementary steps (some ten nanoseconds
/// each); the deadline only cuts short. Threads: one at a time.
class MakespanProver {
 public:
  /// @param whole     every sequence of the batch, reduced; must outlive this
  /// @param about_us  a makespan: groups of which a rank holds only few within it are counted, the others are sand
  MakespanProver(const Problem& whole, std::int64_t about_us, const Deadline& deadline);

  /// Tries to prove a bound by one linear program; whether it is proved.
  bool prove(std::int64_t bound_us, std::int64_t work);
  /// Looks for the best bound between what is proved and `enough_us`: by bisection, then with branches.
  /// @param least_us  proved elsewhere
  void raise(std::int64_t least_us, std::int64_t enough_us, std::int64_t work);

  std::int64_t bound_us() const { return bound_us_; }  ///< 0: nothing is proved
  /// Of bound_us(), as `certificate.makespan_duals`. @pre bound_us() > 0
  AnchorProof proof(const Profile& profile, Menu menu) const;

  /// The smallest limit at which a fractional placement was found: nothing above it can be proved without branches. 0:
  /// none was.
  std::int64_t fits_us() const { return fits_us_; }
  std::size_t counted() const { return counted_; }  ///< the first so many groups of whole
  std::int64_t work() const { return lp_.work() + verify_work_; }

 private:
  bool refute(std::int64_t limit_us, int nodes, std::int64_t work);
  bool refute_box(const TailBox& box, std::int64_t limit_us, int depth, std::int64_t end);

  const Problem& whole_;
  const Deadline& deadline_;
  ProofInstance instance_;
  std::size_t counted_;
  WholeLp lp_;
  std::int64_t bound_us_ = 0;
  std::vector<AnchorProof::Node> proved_, tree_;
  int nodes_left_ = 0;
  std::int64_t verify_work_ = 0;
  std::int64_t fits_us_ = 0;
};

/// How far over a proved bound a makespan is left alone: 0.1%.
inline constexpr double kRepairTolerance = 1e-3;

/// A proved lower bound of the makespan; what proves it, where prices alone do not (bounds.h).
struct ProvedBound {
  std::int64_t us = 0;
  std::optional<AnchorProof> duals;
};

/// The smallest bound of which a makespan is within kRepairTolerance.
std::int64_t bound_enough_for(std::int64_t makespan_us);

/// Steps that a planner spends by default on raising a bound: some milliseconds.
inline constexpr std::int64_t proof_work(int ranks) { return ranks <= 32 ? 400'000 : 1'500'000; }

}  // namespace zellige
