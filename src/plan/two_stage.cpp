// SPDX-License-Identifier: Apache-2.0
#include "plan/two_stage.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "plan/anchor.h"
#include "plan/filler.h"
#include "plan/finish.h"
#include "plan/own_anchor.h"
#include "plan/relax.h"
#include "plan/repair.h"
#include "plan/settings.h"
#include "plan/wide.h"
#include "zellige/error.h"

namespace zellige {
namespace {

/// What Filler Packing says when a filler fits no rank: which, by how much, and where it came closest.
std::string why_unplaced(const std::vector<Filler>& fillers, const FillerResult& packed, const FillerLedger& ledger,
                         const Batch& batch) {
  const Filler& filler = fillers[*packed.unplaced];
  const auto roomiest = std::min_element(ledger.memory_bytes.begin(), ledger.memory_bytes.end());
  const std::int64_t room = ledger.memory_cap_bytes - *roomiest;
  const auto placed = std::count_if(packed.rank.begin(), packed.rank.end(), [](Rank r) { return r >= 0; });
  return "Filler Packing stopped after " + std::to_string(placed) + " of " + std::to_string(fillers.size()) +
         " fillers: " + in_quotes(batch.sequences[filler.sequence].id) + " (bucket " +
         in_quotes(batch.bucket_of(filler.sequence).name) + ") needs " + std::to_string(filler.memory_bytes) +
         " bytes whole; rank " + std::to_string(roomiest - ledger.memory_bytes.begin()) +
         ", which has the most room, has " + std::to_string(room) + " of its " +
         std::to_string(ledger.memory_cap_bytes) + " left: " + std::to_string(filler.memory_bytes - room) +
         " bytes over";
}

/// The two stages' placement as counts of the whole batch.
CountSolution joined(const Problem& whole, const std::vector<bool>& is_anchor_group, const CountSolution& anchors,
                     const std::vector<Filler>& fillers, const std::vector<Rank>& rank,
                     const std::vector<BucketIndex>& buckets) {
  CountSolution result(whole);
  std::vector<std::size_t> group_of(*std::max_element(buckets.begin(), buckets.end()) + std::size_t{1});
  std::size_t anchor_group = 0;
  for (std::size_t g = 0; g < whole.groups.size(); ++g) {
    group_of[whole.groups[g].bucket] = g;
    if (!is_anchor_group[g]) continue;
    result.z[g] = anchors.z[anchor_group];
    result.x[g] = anchors.x[anchor_group];
    ++anchor_group;
  }
  for (std::size_t f = 0; f < fillers.size(); ++f) {
    const std::size_t g = group_of[buckets[fillers[f].sequence]];
    ++result.z[g][0];  // whole: it was placed, so it fits and comes first
    ++result.x[g][0][rank[f]];
  }
  return result;
}

/// What the anchor rounds' certificate may still say of a placement that repair changed.
void revise(Certificate& certificate, const Repaired& repaired, const Problem& whole,
            const std::vector<bool>& is_anchor_group, double epsilon) {
  if (repaired.certificate) {
    certificate = *repaired.certificate;
    return;
  }
  if (repaired.fillers_split) {  // nothing that the rounds looked at
    certificate = {};
    return;
  }
  if (!certificate.anchor_load || !certificate.anchor_bound || !certificate.split_bound) return;
  std::vector<std::int64_t> load(whole.ranks, 0);
  for (std::size_t g = 0; g < whole.groups.size(); ++g) {
    if (!is_anchor_group[g]) continue;
    for (std::size_t j = 0; j < whole.groups[g].options.size(); ++j) {
      for (int r = 0; r < whole.ranks; ++r) {
        load[r] += whole.groups[g].options[j].time_us * repaired.solution.x[g][j][r];
      }
    }
  }
  const std::int64_t anchor_load = *std::max_element(load.begin(), load.end());
  const int splits = static_cast<int>(num_split(whole, repaired.solution));
  const bool keeps_both =
      anchor_load <= relaxed_load(certificate.anchor_bound->value, epsilon) && splits == certificate.split_count;
  if (keeps_both) return;
  certificate.anchor_load = Microseconds{anchor_load};
  certificate.anchor_status =
      certificate.anchor_bound == certificate.anchor_load ? SolveStatus::optimal : SolveStatus::feasible;
  certificate.split_count = splits;
  certificate.split_bound = std::min(*certificate.split_bound, splits);
  certificate.split_status = SolveStatus::feasible;
}

/// Anchors a rank from which the batch may take part in the cut, and the share of F that a sequence may have then to
/// be no anchor.
constexpr std::int64_t kManyAnchorsARank = 8;
constexpr std::int64_t kSmallPartOfFloor = 20;

/// The cut of the catalog where it leaves many small anchors: those whose whole price is small beside F stay whole, as
/// splitting them balances nothing that packing does not.
std::vector<bool> cut_by_batch(const std::vector<bool>& cut, const std::vector<BucketIndex>& buckets, int ranks,
                               const Profile& profile) {
  Wide whole_us = 0;
  std::int64_t anchors = 0;
  for (const BucketIndex bucket : buckets) {
    whole_us += profile.whole(bucket).time.value;
    anchors += cut[bucket];
  }
  std::vector<bool> result = cut;
  if (anchors <= kManyAnchorsARank * ranks) return result;
  for (const BucketIndex bucket : buckets) {
    if (Wide{profile.whole(bucket).time.value} * kSmallPartOfFloor * ranks <= whole_us) result[bucket] = false;
  }
  return result;
}

bool is_close_to_bound(const Plan& plan) {
  const auto& bound = plan.certificate.makespan_bound;
  return bound && plan.makespan.value <= relaxed_load(bound->value, kRepairTolerance);
}

class TwoStage final : public Planner {
 public:
  explicit TwoStage(TwoStageSettings settings) : settings_(std::move(settings)) {}
  std::string_view name() const override { return settings_.method; }

  Plan plan(const Batch& batch, const Profile& profile, const PlanOptions& options,
            std::stop_token stop) const override {
    check_options(options);
    refuse_layout("plan." + method_, options);
    const Deadline deadline = deadline_of(options, std::move(stop));
    const std::vector<BucketIndex> buckets = match_buckets(batch, profile);
    const std::vector<bool> cut = anchor_buckets(profile);  // ApplyCatalogCut, Eq. 4
    if (settings_.repairs) {
      const std::vector<bool> smaller = cut_by_batch(cut, buckets, batch.ranks, profile);
      if (smaller != cut) {
        Plan plan = plan_with(smaller, buckets, batch, profile, options, deadline);
        if (plan.has_placement() && is_close_to_bound(plan)) return plan;
      }
    }
    return plan_with(cut, buckets, batch, profile, options, deadline);
  }

 private:
  Plan plan_with(const std::vector<bool>& is_anchor, const std::vector<BucketIndex>& buckets, const Batch& batch,
                 const Profile& profile, const PlanOptions& options, const Deadline& deadline) const {
    const Problem unreduced =
        make_problem(batch, profile, buckets, std::vector<bool>(is_anchor.size(), true), options.menu);
    const Problem whole = reduced(unreduced);
    const Problem anchors = reduced(make_problem(batch, profile, buckets, is_anchor, options.menu));
    // Loading OR-Tools takes longer than the own solver needs for most plans: only once CP-SAT is to be asked.
    std::shared_ptr<const cp::Solver> solver;
    const bool needs_solver = !anchors.groups.empty();
    if (needs_solver && (!settings_.own_first || names_missing_file(options))) solver = find_solver(options);

    Plan plan;
    plan.method = settings_.method;
    plan.solver = settings_.own_first ? "own" : solver ? "cp-sat" : "greedy";
    if (std::string reason = why_infeasible(unreduced, batch, profile); !reason.empty()) {
      finish_without(plan, PlanStatus::infeasible, in_words(std::move(reason), batch, profile, options, deadline),
                     batch, profile, options, deadline);
      return plan;
    }

    AnchorSettings anchor_settings;
    anchor_settings.form = settings_.form;
    anchor_settings.fall_back = settings_.form == Form::rank_counts;
    AnchorResult anchored;
    bool is_own = settings_.own_first;
    if (is_own) {
      anchored = place_anchors_own(anchors, profile, options, deadline);
      // CP-SAT is the safety net: for what the own solver found no placement for.
      is_own = anchored.status == AnchorResult::Status::solved;
    }
    if (!is_own) {
      if (needs_solver && !solver) solver = find_solver(options);
      plan.solver = solver ? "cp-sat" : "greedy";
      anchored = place_anchors(anchors, solver.get(), anchor_settings, options, deadline);
      prove_bounds(anchored.certificate, anchors, profile, options, deadline);
    }
    plan.certificate = anchored.certificate;
    const bool has_anchors = anchored.status == AnchorResult::Status::solved;
    if (!has_anchors && !(settings_.repairs && anchored.status == AnchorResult::Status::unknown)) {
      std::string reason = anchored.reason;
      if (anchored.status == AnchorResult::Status::infeasible) {
        reason = in_words(std::move(reason), batch, profile, options, deadline);
      }
      finish_without(plan, anchored.plan_status(), std::move(reason), batch, profile, options, deadline);
      return plan;
    }
    if (anchored.is_greedy) plan.solver = "greedy";
    plan.certified = anchored.is_certified();
    if (anchored.balanced) plan.certificate.anchor_placement = rank_contents(anchors, *anchored.balanced, profile);

    std::vector<Filler> fillers;
    FillerLedger ledger;
    ledger.memory_cap_bytes = profile.memory_cap().value;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const Price& price = profile.whole(buckets[i]);
      ledger.whole_time_us += price.time.value;
      if (is_anchor[buckets[i]]) continue;
      fillers.push_back({static_cast<SequenceIndex>(i), price.time.value, price.memory.value});
    }
    FillerResult packed;
    std::string reason = anchored.reason;
    if (has_anchors) {
      ledger.load_us = rank_loads(anchors, anchored.solution);        // C_r <- L_r
      ledger.memory_bytes = rank_memory(anchors, anchored.solution);  // M_r <- H_r
      packed = pack_fillers(fillers, ledger);
      if (packed.unplaced) reason = why_unplaced(fillers, packed, ledger, batch);
    }
    const bool is_placed = has_anchors && !packed.unplaced;

    std::vector<Assignment> assignments(batch.sequences.size());
    Repaired repaired;
    if (settings_.repairs && !batch.sequences.empty()) {
      RepairTask task{&whole, &anchors, {}, {}, &profile, [&] { return find_solver(options); }};
      for (const Group& group : whole.groups) task.is_anchor.push_back(is_anchor[group.bucket]);
      if (is_placed) task.start = joined(whole, task.is_anchor, anchored.solution, fillers, packed.rank, buckets);
      repaired = repair(task, options, deadline);
      if (repaired.status == Repaired::Status::better) {
        revise(plan.certificate, repaired, whole, task.is_anchor, options.epsilon);
        plan.certified = plan.certificate.anchor_status == SolveStatus::optimal &&
                         plan.certificate.split_status == SolveStatus::optimal;
        plan.solver = repaired.solver;
        assign(whole, repaired.solution, assignments);
        finish_with(plan, std::move(assignments), batch, profile, whole, options, deadline);
        return plan;
      }
    }
    if (!is_placed) {
      const bool is_refuted = repaired.status == Repaired::Status::infeasible;
      const PlanStatus status = is_refuted           ? PlanStatus::infeasible
                                : deadline.is_over() ? PlanStatus::timeout
                                                     : PlanStatus::unknown;
      if (is_refuted) reason = repaired.reason;
      if (!repaired.overflow.empty()) reason.append("; ").append(repaired.overflow);
      if (!deadline.is_over()) reason = in_words(std::move(reason), batch, profile, options, deadline);
      finish_without(plan, status, std::move(reason), batch, profile, options, deadline);
      return plan;
    }
    assign(anchors, anchored.solution, assignments);
    for (std::size_t f = 0; f < fillers.size(); ++f) {
      assignments[fillers[f].sequence] = {Configuration{}, {packed.rank[f]}};
    }
    finish_with(plan, std::move(assignments), batch, profile, whole, options, deadline);
    return plan;
  }

  /// What is over, and what would help.
  std::string in_words(std::string reason, const Batch& batch, const Profile& profile, const PlanOptions& options,
                       const Deadline& deadline) const {
    if (!settings_.repairs) return reason;
    const std::string help = what_would_fit(batch, profile, options, deadline);
    return help.empty() ? reason : reason + ". " + help;
  }

  // A file that was asked for by name and is not there is refused also where it would not be needed.
  static bool names_missing_file(const PlanOptions& options) {
    std::error_code ignored;
    return options.ortools.find('/') != std::string::npos && !std::filesystem::exists(options.ortools, ignored);
  }

  std::shared_ptr<const cp::Solver> find_solver(const PlanOptions& options) const {
    std::string why_not;
    auto solver = cp::Solver::find(options.ortools, why_not);
    // A library that was asked for by name must load; one that was only looked for may be absent.
    const bool is_named = !options.ortools.empty() && options.ortools != "none";
    if (!solver && (is_named || settings_.form != Form::rank_counts)) {
      throw Error(Code::solver, "plan." + settings_.method,
                  "method " + in_quotes(settings_.method) + " needs CP-SAT. " + why_not);
    }
    return solver;
  }

  TwoStageSettings settings_;
};

}  // namespace

std::unique_ptr<Planner> make_two_stage(TwoStageSettings settings) {
  return std::make_unique<TwoStage>(std::move(settings));
}

}  // namespace zellige
