// SPDX-License-Identifier: Apache-2.0
#include "plan/anchor.h"

#include <algorithm>
#include <utility>

#include "plan/bounds.h"
#include "plan/greedy.h"
#include "plan/settings.h"
#include "zellige/error.h"

namespace zellige {
namespace {

/// Steps that the greedy search may take before CP-SAT starts, and when it is all there is.
constexpr std::int64_t kStartEffort = 1'000'000;
constexpr std::int64_t kFallbackEffort = 2'000'000;

/// Share of the wall time that the first round may take.
constexpr double kFirstShare = 0.75;

class TwoRounds {
 public:
  TwoRounds(const Problem& problem, const cp::Solver* solver, const AnchorSettings& settings,
            const PlanOptions& options, const Deadline& deadline)
      : problem_(problem), solver_(solver), settings_(settings), options_(options), deadline_(deadline) {}

  AnchorResult run();

 private:
  bool balance();
  void min_split();
  bool min_split_within(std::int64_t limit_us, bool may_be_empty);
  void keep_to_least_load();
  cp::Response solve(AnchorModel& model, double share) const;
  void take(CountSolution solution);
  std::int64_t effort() const { return solver_ != nullptr ? kStartEffort : kFallbackEffort; }
  AnchorResult without(AnchorResult::Status status, std::string reason);

  const Problem& problem_;
  const cp::Solver* solver_;
  const AnchorSettings& settings_;
  const PlanOptions& options_;
  const Deadline& deadline_;

  AnchorResult result_;
  std::optional<CountSolution> best_;      // keeps the memory cap
  std::int64_t load_us_ = 0;               // of best_
  std::int64_t load_bound_us_ = 0;         // proved
  std::optional<CountSolution> balanced_;  // of the least load seen
  std::int64_t least_load_us_ = 0;         // its
};

cp::Response TwoRounds::solve(AnchorModel& model, double share) const {
  if (best_) model.hint(*best_);
  if (!model.program().is_in_range()) {
    throw Error(
        Code::input, "plan.anchor",
        "the sums of prices or needs of the batch leave the 62 bits that CP-SAT computes in; check the units of "
        "the profile");
  }
  return solver_->solve(model.program(), cp_parameters(options_, deadline_, share), deadline_.stop());
}

void TwoRounds::take(CountSolution solution) {
  best_ = std::move(solution);
  load_us_ = largest_load(problem_, *best_);
  if (balanced_ && load_us_ >= least_load_us_) return;
  least_load_us_ = load_us_;
  balanced_ = best_;
}

AnchorResult TwoRounds::without(AnchorResult::Status status, std::string reason) {
  result_.status = status;
  result_.reason = std::move(reason);
  result_.certificate.anchor_status =
      status == AnchorResult::Status::infeasible ? SolveStatus::infeasible : SolveStatus::timeout;
  if (status == AnchorResult::Status::unknown || status == AnchorResult::Status::too_large) {
    result_.certificate.anchor_status = std::nullopt;
  }
  if (status != AnchorResult::Status::infeasible && load_bound_us_ > 0) {
    result_.certificate.anchor_bound = Microseconds{load_bound_us_};
  }
  return result_;
}

/// Round 1. Returns whether there is a solution; else `result_` says why.
bool TwoRounds::balance() {
  if (auto start = greedy_balance(problem_, effort(), deadline_)) take(std::move(*start));
  load_bound_us_ = load_lower_bound(problem_, best_ ? load_us_ : kNoLoadLimit);
  if (solver_ == nullptr) {
    result_.is_greedy = true;
    if (best_) return true;
    if (deadline_.cancelled()) {
      without(AnchorResult::Status::timeout, "cancelled before a placement was found");
    } else {
      without(AnchorResult::Status::unknown, "list scheduling found no placement within the memory cap of " +
                                                 std::to_string(problem_.memory_cap_bytes) +
                                                 " bytes a rank; CP-SAT could decide whether there is one");
    }
    return false;
  }

  std::int64_t most = 0;  // no placement has a larger load: no rank meets a sequence twice
  for (const Group& group : problem_.groups) {
    const auto dearest = std::max_element(group.options.begin(), group.options.end(),
                                          [](const Option& a, const Option& b) { return a.load_us() < b.load_us(); });
    most += dearest->load_us() * group.count();
  }
  Round round;
  round.load_least_us = load_bound_us_;
  round.load_most_us = best_ ? load_us_ : most;
  round.order_ranks = settings_.order_ranks;
  AnchorModel model(problem_, settings_.form, round);
  const cp::Response response = solve(model, kFirstShare);
  if (response.outcome == cp::Outcome::infeasible) {
    if (best_) {
      throw Error(Code::solver, "plan.anchor",
                  "CP-SAT calls a problem infeasible that has a placement of load " + std::to_string(load_us_) + " us");
    }
    without(AnchorResult::Status::infeasible,
            "CP-SAT proved that no placement of these " + std::to_string(problem_.num_sequences()) +
                " sequences keeps the memory cap of " + std::to_string(problem_.memory_cap_bytes) + " bytes a rank");
    return false;
  }
  load_bound_us_ = std::max(load_bound_us_, response.bound);
  if (response.has_solution()) {
    take(model.read(response.solution));
    if (response.outcome == cp::Outcome::optimal) load_bound_us_ = load_us_;
    return true;
  }
  if (best_ && settings_.fall_back && !deadline_.cancelled()) {
    result_.is_greedy = true;
    return true;
  }
  without(AnchorResult::Status::timeout, deadline_.cancelled()
                                             ? "cancelled before CP-SAT found a placement"
                                             : "CP-SAT found no placement within its time or work limit");
  return false;
}

/// Looks for fewer splits at loads <= limit_us. Returns whether a solution within the limit is known.
/// @param may_be_empty  nobody has shown yet that anything keeps the limit
bool TwoRounds::min_split_within(std::int64_t limit_us, bool may_be_empty) {
  Certificate& certificate = result_.certificate;
  std::int64_t bound = split_lower_bound(problem_, limit_us);
  if (!may_be_empty) take(greedy_min_split(problem_, *best_, limit_us, effort() / 2, deadline_));
  const std::int64_t known = may_be_empty ? problem_.num_sequences() : num_split(problem_, *best_);
  bool is_proved = !may_be_empty && known == bound;
  // Without the solver, or for a start that it could not better in round 1, the greedy answer stands.
  if (!is_proved && solver_ != nullptr && !result_.is_greedy && !deadline_.is_over()) {
    Round round;
    round.objective = Round::Objective::splits;
    round.load_most_us = limit_us;
    round.splits_least = std::min(bound, known);
    round.splits_most = known;
    round.order_ranks = settings_.order_ranks;
    AnchorModel model(problem_, settings_.form, round);
    const cp::Response response = solve(model, 1.0);
    if (response.has_solution()) {
      take(model.read(response.solution));
      may_be_empty = false;
    }
    if (response.outcome == cp::Outcome::infeasible && !may_be_empty) {
      throw Error(Code::solver, "plan.anchor",
                  "CP-SAT calls a load limit of " + std::to_string(limit_us) + " us infeasible that a placement of " +
                      std::to_string(load_us_) + " us keeps");
    }
    if (response.outcome != cp::Outcome::infeasible) bound = std::max(bound, response.bound);
    is_proved = response.outcome == cp::Outcome::optimal;
  }
  if (may_be_empty) return false;
  const std::int64_t splits = num_split(problem_, *best_);
  certificate.split_count = static_cast<int>(splits);
  certificate.split_bound = static_cast<int>(is_proved ? splits : std::min(bound, splits));
  certificate.split_status = is_proved || bound == splits ? SolveStatus::optimal : SolveStatus::feasible;
  return true;
}

void TwoRounds::min_split() {
  const std::int64_t limit = relaxed_load(load_bound_us_, options_.epsilon);
  if (min_split_within(limit, load_us_ > limit)) return;
  min_split_within(relaxed_load(load_us_, options_.epsilon), false);
  keep_to_least_load();
  result_.certificate.split_status = SolveStatus::feasible;
}

/// Round 2 may come by a placement of less load than round 1's. The limit then follows from that one, and what exceeds
/// it makes way. The bound of splits, proved for the larger limit, holds for the smaller one.
void TwoRounds::keep_to_least_load() {
  while (load_us_ > relaxed_load(least_load_us_, options_.epsilon)) {
    take(CountSolution(*balanced_));
    const std::int64_t limit = relaxed_load(load_us_, options_.epsilon);
    take(greedy_min_split(problem_, *best_, limit, effort() / 2, deadline_));
  }
  result_.certificate.split_count = static_cast<int>(num_split(problem_, *best_));
}

AnchorResult TwoRounds::run() {
  Certificate& certificate = result_.certificate;
  if (problem_.groups.empty()) {  // "an empty anchor set has the trivial optima T = K = 0"
    result_.status = AnchorResult::Status::solved;
    result_.is_greedy = true;
    certificate.anchor_load = certificate.anchor_bound = Microseconds{0};
    certificate.split_count = certificate.split_bound = 0;
    certificate.anchor_status = certificate.split_status = SolveStatus::optimal;
    return result_;
  }
  if (std::string reason = why_too_large(problem_, settings_.form); solver_ != nullptr && !reason.empty()) {
    return without(AnchorResult::Status::too_large, std::move(reason));
  }
  if (memory_is_refuted(problem_)) {
    return without(AnchorResult::Status::infeasible, "the needs of these " + std::to_string(problem_.num_sequences()) +
                                                         " sequences exceed what " + std::to_string(problem_.ranks) +
                                                         " ranks of " + std::to_string(problem_.memory_cap_bytes) +
                                                         " bytes can hold, whatever options they take");
  }
  if (!balance()) return result_;
  min_split();
  certificate.anchor_load = Microseconds{least_load_us_};
  certificate.anchor_bound = Microseconds{std::min(load_bound_us_, least_load_us_)};
  certificate.anchor_status = load_bound_us_ >= least_load_us_ ? SolveStatus::optimal : SolveStatus::feasible;
  result_.status = AnchorResult::Status::solved;
  if (load_us_ > least_load_us_) result_.balanced = std::move(balanced_);
  result_.solution = canonical(problem_, *best_);
  return result_;
}

}  // namespace

PlanStatus AnchorResult::plan_status() const {
  switch (status) {
    case Status::infeasible: return PlanStatus::infeasible;
    case Status::timeout: return PlanStatus::timeout;
    default: return PlanStatus::unknown;
  }
}

bool AnchorResult::is_certified() const {
  return certificate.anchor_status == SolveStatus::optimal && certificate.split_status == SolveStatus::optimal;
}

AnchorResult place_anchors(const Problem& problem, const cp::Solver* solver, const AnchorSettings& settings,
                           const PlanOptions& options, const Deadline& deadline) {
  return TwoRounds(problem, solver, settings, options, deadline).run();
}

}  // namespace zellige
