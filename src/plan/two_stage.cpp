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
#include "plan/settings.h"
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

class TwoStage final : public Planner {
 public:
  TwoStage(std::string method, Form form, bool own_first)
      : method_(std::move(method)), form_(form), own_first_(own_first) {}
  std::string_view name() const override { return method_; }

  Plan plan(const Batch& batch, const Profile& profile, const PlanOptions& options,
            std::stop_token stop) const override {
    check_options(options);
    refuse_layout("plan." + method_, options);
    const Deadline deadline = deadline_of(options, std::move(stop));
    const std::vector<BucketIndex> buckets = match_buckets(batch, profile);
    const std::vector<bool> is_anchor = anchor_buckets(profile);  // ApplyCatalogCut, Eq. 4
    const Problem whole =
        make_problem(batch, profile, buckets, std::vector<bool>(is_anchor.size(), true), options.menu);
    const Problem anchors = reduced(make_problem(batch, profile, buckets, is_anchor, options.menu));
    // Loading OR-Tools takes longer than the own solver needs for most plans: only once CP-SAT is to be asked.
    std::shared_ptr<const cp::Solver> solver;
    const bool needs_solver = !anchors.groups.empty();
    if (needs_solver && (!own_first_ || names_missing_file(options))) solver = find_solver(options);

    Plan plan;
    plan.method = method_;
    plan.solver = own_first_ ? "own" : solver ? "cp-sat" : "greedy";
    if (std::string reason = why_infeasible(whole, batch, profile); !reason.empty()) {
      finish_without(plan, PlanStatus::infeasible, std::move(reason), batch, profile, options, deadline);
      return plan;
    }

    AnchorSettings settings;
    settings.form = form_;
    settings.fall_back = form_ == Form::rank_counts;
    AnchorResult anchored;
    bool is_own = own_first_;
    if (is_own) {
      anchored = place_anchors_own(anchors, profile, options, deadline);
      // CP-SAT is the safety net: for what the own solver found no placement for.
      is_own = anchored.status == AnchorResult::Status::solved;
    }
    if (!is_own) {
      if (needs_solver && !solver) solver = find_solver(options);
      plan.solver = solver ? "cp-sat" : "greedy";
      anchored = place_anchors(anchors, solver.get(), settings, options, deadline);
      prove_bounds(anchored.certificate, anchors, profile, options, deadline);
    }
    plan.certificate = anchored.certificate;
    if (anchored.status != AnchorResult::Status::solved) {
      finish_without(plan, anchored.plan_status(), std::move(anchored.reason), batch, profile, options, deadline);
      return plan;
    }
    if (anchored.is_greedy) plan.solver = "greedy";
    plan.certified = anchored.is_certified();
    if (anchored.balanced) plan.certificate.anchor_placement = rank_contents(anchors, *anchored.balanced, profile);

    std::vector<Assignment> assignments(batch.sequences.size());
    assign(anchors, anchored.solution, assignments);
    FillerLedger ledger;
    ledger.load_us = rank_loads(anchors, anchored.solution);        // C_r <- L_r
    ledger.memory_bytes = rank_memory(anchors, anchored.solution);  // M_r <- H_r
    ledger.memory_cap_bytes = profile.memory_cap().value;
    std::vector<Filler> fillers;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const Price& price = profile.whole(buckets[i]);
      ledger.whole_time_us += price.time.value;
      if (is_anchor[buckets[i]]) continue;
      fillers.push_back({static_cast<SequenceIndex>(i), price.time.value, price.memory.value});
    }
    const FillerResult packed = pack_fillers(fillers, ledger);
    if (packed.unplaced) {
      finish_without(plan, PlanStatus::unknown, why_unplaced(fillers, packed, ledger, batch), batch, profile, options,
                     deadline);
      return plan;
    }
    for (std::size_t f = 0; f < fillers.size(); ++f) {
      assignments[fillers[f].sequence] = {Configuration{}, {packed.rank[f]}};
    }
    finish_with(plan, std::move(assignments), batch, profile, reduced(whole), options, deadline);
    return plan;
  }

 private:
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
    if (!solver && (is_named || form_ != Form::rank_counts)) {
      throw Error(Code::solver, "plan." + method_, "method " + in_quotes(method_) + " needs CP-SAT. " + why_not);
    }
    return solver;
  }

  std::string method_;
  Form form_;
  bool own_first_;
};

}  // namespace

std::unique_ptr<Planner> make_two_stage(std::string method, Form form, bool own_first) {
  return std::make_unique<TwoStage>(std::move(method), form, own_first);
}

}  // namespace zellige
