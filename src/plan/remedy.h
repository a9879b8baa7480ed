// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "plan/deadline.h"
#include "zellige/dry_run.h"

namespace zellige {

/// Plans batches as the run that is looked at would.
class TrialPlanner {
 public:
  TrialPlanner(const DryRunOptions& options, const Deadline& deadline);

  /// With the method's own solver; with OR-Tools too where that one leaves the question open.
  Plan plan(const Batch& batch, const Profile& profile, Menu menu) const;
  bool fits(const Batch& batch, const Profile& profile, Menu menu) const;

  Menu menu() const { return options_.menu; }
  bool out_of_time() const { return deadline_.is_over(); }

 private:
  PlanOptions options_;
  std::unique_ptr<Planner> planner_;
  const Deadline& deadline_;
};

/// Names the samples that make a batch without a placement run out: those that fit no rank under any configuration of
/// the menu, or where there are none, the most demanding ones without which the others fit.
/// @param batch  its catalog is the profile's
std::vector<OversizedSample> oversized_samples(const Batch& batch, const Profile& profile, const TrialPlanner& trial);

/// Changes after which the batch has a placement, each tried by planning it again. Ends early when time is up.
/// @param batch  its catalog is the profile's
std::vector<Remedy> remedies_of(const Batch& batch, const Profile& profile, const TrialPlanner& trial);

}  // namespace zellige
