// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "zellige/batch.h"
#include "zellige/placement.h"
#include "zellige/profile.h"

namespace zellige {

struct PlanOptions {
  Menu menu = Menu::powers_of_two;
  double time_limit_s = 60;  ///< wall time after which a planner returns the best it has (or timeout)
  /// Deterministic work limit of a CP-SAT solve, in its own unit; 0: none. With it set ranks agree on the plan: our own
  /// methods then do not look at the wall clock.
  double work_limit = 0;
  int workers = 1;  ///< solver threads; more than one makes plans depend on timing
  std::uint64_t seed = 0;
  double epsilon = 1e-3;  ///< load slack of the second anchor round  // epsilon, Eq. 7
  ExecOptions exec;       ///< copied into the placement
  /// What loads and bounds are about. Our methods plan by it; baselines plan by their own policies, and it says what
  /// the plan that they come to is worth.
  LoadModel load_model;
  std::string ortools;  ///< path of libortools.so.9; empty: looked for; "none": go without
  /// KnapFormer: layout such as "g3n1+g1n1"; empty: the best of all that fit. USP: "u4r2"; empty: the best. Methods
  /// that take none (takes_layout) refuse one.
  std::string layout;
};

/// Makes plans. Every method, ours and the baselines, is one of these, so that the same checker, schedule, engine and
/// report serve all. Threads: const, any number of concurrent calls.
class Planner {
 public:
  virtual ~Planner() = default;
  virtual std::string_view name() const = 0;
  /// Plans a batch. Never returns a plan that breaks the memory cap: what can't be is a status and a reason.
  /// Errors: Code::input for options that make no sense or buckets that the profile does not have; Code::solver when
  /// the method needs OR-Tools and it is missing.
  virtual Plan plan(const Batch& batch, const Profile& profile, const PlanOptions& options,
                    std::stop_token stop = {}) const = 0;
};

/// Makes a planner by name: zellige, two-stage (the paper's Alg. 1 alone), joint, joint-no-ecf, zellige-no-ecf, naive,
/// adaptiveload, usp, knapformer, flexsp, megatron, disjoint. Errors: Code::input for an unknown name, listing the
/// known ones.
std::unique_ptr<Planner> make_planner(std::string_view method);
std::vector<std::string> planner_names();
/// Whether PlanOptions::layout means something to the method; the others refuse one.
bool takes_layout(std::string_view method);

/// Eq. 4: the catalog cut. Returns for every bucket of the profile's catalog whether it is an anchor's.
std::vector<bool> anchor_buckets(const Profile& profile);

/// Proved lower bound of the makespan over all placements of the batch on the menu, using options no dearer than
/// `upper` only (a plan of that makespan is known): the larger of area bound and largest piece
/// (docs/concepts/certificate.md).
Microseconds makespan_lower_bound(const Batch& batch, const Profile& profile, const PlanOptions& options,
                                  Microseconds upper);

/// Whether CP-SAT can be loaded: empty when it can, else why not.
std::string why_no_cp_sat(const std::string& ortools_path = {});

}  // namespace zellige
