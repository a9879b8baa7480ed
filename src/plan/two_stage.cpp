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

/// What the certificate of the anchor rounds may still say of a placement that repair changed.
void revise(Certificate& certificate, const Repaired& repaired, const AnchorResult& anchored, const Problem& anchors,
            const Problem& whole, const std::vector<bool>& is_anchor_group, const Profile& profile,
            const PlanOptions& options) {
  if (repaired.certificate) {
    certificate = *repaired.certificate;
    return;
  }
  if (repaired.fillers_split || anchored.status != AnchorResult::Status::solved) {  // nothing that the rounds looked at
    certificate = {};
    return;
  }
  if (anchors.groups.empty()) return;
  CountSolution moved(anchors);
  std::size_t anchor_group = 0;
  for (std::size_t g = 0; g < whole.groups.size(); ++g) {
    if (!is_anchor_group[g]) continue;
    moved.z[anchor_group] = repaired.solution.z[g];
    moved.x[anchor_group] = repaired.solution.x[g];
    ++anchor_group;
  }
  const Microseconds load = {largest_load(anchors, moved)};
  if (load < certificate.anchor_load) {  // repair came upon anchors that are balanced better
    certificate.anchor_load = load;
    certificate.anchor_placement.clear();
    if (load == certificate.anchor_bound) certificate.anchor_status = SolveStatus::optimal;
  } else if (load > certificate.anchor_load && certificate.anchor_placement.empty()) {
    certificate.anchor_placement =
        rank_contents(anchors, anchored.solution, profile);  // round 1's load was reached here
  }
  const bool is_from_bound = certificate.split_status == SolveStatus::optimal;
  const Microseconds limit = {
      relaxed_load((is_from_bound ? certificate.anchor_bound : certificate.anchor_load)->value, options.epsilon)};
  if (load <= (certificate.duals ? certificate.duals->split_limit : limit)) {  // round 2's bound is about these anchors
    certificate.split_count = static_cast<int>(num_split(anchors, moved));
    if (certificate.split_bound != certificate.split_count) certificate.split_status = SolveStatus::feasible;
    return;
  }
  certificate.split_count = certificate.split_bound = std::nullopt;
  certificate.split_status = std::nullopt;
  if (certificate.duals) certificate.duals->split.clear();
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
    refuse_layout("plan." + settings_.method, options);
    const Deadline deadline = deadline_of(options, std::move(stop));
    const std::vector<BucketIndex> buckets = match_buckets(batch, profile);
    const std::vector<bool> cut = anchor_buckets(profile);  // ApplyCatalogCut, Eq. 4
    if (settings_.repairs) {
      const std::vector<bool> smaller = cut_by_batch(cut, buckets, batch.ranks, profile);
      if (smaller != cut) {
        // Rounds of another cut than Eq. 4's say so (Certificate::anchor_buckets).
        std::vector<std::string> names;
        for (std::size_t b = 0; b < smaller.size(); ++b) {
          if (smaller[b]) names.push_back(profile.catalog.buckets[b].name);
        }
        Plan plan = plan_with(smaller, std::move(names), buckets, batch, profile, options, deadline);
        if (plan.has_placement() && is_close_to_bound(plan)) return plan;
      }
    }
    return plan_with(cut, std::nullopt, buckets, batch, profile, options, deadline);
  }

 private:
  /// @param anchor_names  of the anchors' buckets, where the cut is not Eq. 4's
  Plan plan_with(const std::vector<bool>& is_anchor, std::optional<std::vector<std::string>> anchor_names,
                 const std::vector<BucketIndex>& buckets, const Batch& batch, const Profile& profile,
                 const PlanOptions& options, const Deadline& deadline) const {
    const Problem unreduced = make_problem(batch, profile, buckets, std::vector<bool>(is_anchor.size(), true),
                                           options.menu, options.load_model);
    const Problem whole = reduced(unreduced);
    const Problem anchors = reduced(make_problem(batch, profile, buckets, is_anchor, options.menu, options.load_model));
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
    plan.certificate.anchor_buckets = std::move(anchor_names);
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
      const std::int64_t time_us = charge(price, options.load_model).time.value;
      fillers.push_back({static_cast<SequenceIndex>(i), time_us, price.memory.value});
    }
    FillerResult packed;
    std::string reason = anchored.reason;
    if (has_anchors) {
      // Whole sequences exchange nothing, so the sums of exchanges stay as they are: what is left to balance is time.
      ledger.load_us = rank_times(anchors, anchored.solution);        // C_r <- L_r
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
        revise(plan.certificate, repaired, anchored, anchors, whole, task.is_anchor, profile, options);
        plan.certified = plan.certificate.anchor_status == SolveStatus::optimal &&
                         plan.certificate.split_status == SolveStatus::optimal;
        plan.solver = repaired.solver;
        assign(whole, repaired.solution, assignments);
        finish_with(plan, std::move(assignments), batch, profile, whole, options, deadline, repaired.bound);
        return plan;
      }
    }
    if (!is_placed) {
      const bool is_refuted = repaired.status == Repaired::Status::infeasible;
      const PlanStatus status = is_refuted           ? PlanStatus::infeasible
                                : deadline.is_over() ? PlanStatus::timeout
                                                     : PlanStatus::unknown;
      if (!repaired.reason.empty()) reason = repaired.reason;
      if (is_refuted) plan.solver = repaired.solver;
      if (!repaired.overflow.empty()) reason.append("; ").append(repaired.overflow);
      if (!deadline.is_over()) reason = in_words(std::move(reason), batch, profile, options, deadline);
      finish_without(plan, status, std::move(reason), batch, profile, options, deadline);
      return plan;
    }
    assign(anchors, anchored.solution, assignments);
    for (std::size_t f = 0; f < fillers.size(); ++f) {
      assignments[fillers[f].sequence] = {Configuration{}, {packed.rank[f]}};
    }
    finish_with(plan, std::move(assignments), batch, profile, whole, options, deadline, repaired.bound);
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
