// SPDX-License-Identifier: Apache-2.0
#include "plan/baseline.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

#include "plan/bounds.h"
#include "plan/option.h"
#include "plan/settings.h"
#include "zellige/error.h"

namespace zellige {
namespace {

std::string bytes_text(Bytes bytes) { return std::to_string(bytes.value) + " bytes"; }

/// The batch with every option that the profile prices, whatever the menu.
Problem priced_problem(const BaselineProblem& problem, const LoadModel& model) {
  Problem priced{problem.ranks, problem.cap.value, {}};
  for (const Lot& lot : problem.lots) {
    Group group{lot.bucket, lot.members, {}};
    for (const Price& price : problem.profile.menu(lot.bucket)) {
      if (problem.find(lot, price.config) == nullptr) continue;
      const Charge charged = charge(price, model);
      group.options.push_back(
          {price.config, price.config.degree(), charged.time.value, price.memory.value, charged.exchange.value});
    }
    priced.groups.push_back(std::move(group));
  }
  return priced;
}

bool is_on(Menu menu, int degree) {
  const bool is_power_of_two = std::has_single_bit(static_cast<unsigned>(degree));
  return degree <= kLargestMenuDegree && (menu == Menu::all || is_power_of_two);
}

/// The proved lower bound that a plan carries: over the menu, or over all that has a price for a plan that leaves the
/// menu (KnapFormer's groups of 3 or 6, USP over more ranks than a menu goes up to), which a bound over the menu could
/// exceed.
Microseconds bound_of(const Plan& plan, const BaselineProblem& problem, const PlanOptions& options) {
  const bool keeps_to_menu =
      std::all_of(plan.placement.sequences.begin(), plan.placement.sequences.end(),
                  [&](const PlacedSequence& sequence) { return is_on(options.menu, sequence.config.degree()); });
  if (keeps_to_menu) return makespan_lower_bound(problem.batch, problem.profile, options, plan.makespan);
  return {load_lower_bound(reduced(priced_problem(problem, options.load_model)), plan.makespan.value)};
}

}  // namespace

BaselineProblem::BaselineProblem(const Batch& the_batch, const Profile& the_profile)
    : batch(the_batch),
      profile(the_profile),
      ranks(the_batch.ranks),
      cap(the_profile.memory_cap()),
      buckets(match_buckets(the_batch, the_profile)) {
  std::map<BucketIndex, std::size_t> lot_of;
  for (SequenceIndex s = 0; s < num_sequences(); ++s) {
    const auto [entry, is_new] = lot_of.try_emplace(buckets[s], lots.size());
    if (is_new) lots.push_back({buckets[s], profile.catalog.buckets[buckets[s]].tokens, {}});
    lots[entry->second].members.push_back(s);
  }
  std::sort(lots.begin(), lots.end(), [](const Lot& a, const Lot& b) {
    return a.tokens != b.tokens ? a.tokens > b.tokens : a.bucket < b.bucket;
  });
}

const Price* BaselineProblem::find(const Lot& lot, Configuration configuration) const {
  if (!why_illegal(profile.catalog.model, lot.tokens, configuration, ranks).empty()) return nullptr;
  return profile.find(lot.bucket, configuration);
}

std::string BaselineProblem::why_unavailable(const Lot& lot, Configuration configuration) const {
  std::string why = why_illegal(profile.catalog.model, lot.tokens, configuration, ranks);
  if (why.empty()) why = "the profile has no price of " + text(configuration);
  return "bucket '" + profile.catalog.buckets[lot.bucket].name + "': " + why;
}

std::string BaselineProblem::why_infeasible() const {
  const Problem priced = priced_problem(*this, {});  // memory alone is looked at
  const std::string never = why_never_fits(priced, batch, profile);
  if (!never.empty()) return "OOM: " + never;
  if (!memory_is_refuted(priced)) return {};
  return "OOM: whatever is split, the sequences need more than the memory cap of " + bytes_text(cap) +
         " on some of the " + std::to_string(ranks) + " ranks";
}

Decision no_placement(std::string reason) {
  Decision decision;
  decision.reason = std::move(reason);
  return decision;
}

Decision timed_out(const Deadline& deadline, std::string_view while_doing) {
  Decision decision =
      no_placement((deadline.cancelled() ? "cancelled while " : "out of time while ") + std::string(while_doing));
  decision.timed_out = true;
  return decision;
}

std::string over_memory(Rank rank, Bytes need, Bytes cap) {
  return "OOM: rank " + std::to_string(rank) + " needs " + bytes_text(need) + ", " + bytes_text(need - cap) +
         " over the memory cap of " + bytes_text(cap);
}

void Baseline::refuse_layout(const PlanOptions& options) const { zellige::refuse_layout(where(), options); }

Plan Baseline::plan(const Batch& batch, const Profile& profile, const PlanOptions& options,
                    std::stop_token stop) const {
  check_options(options);
  if (batch.ranks < 1) {
    throw Error(Code::input, where(), "the batch is for " + std::to_string(batch.ranks) + " ranks; at least 1");
  }
  const Deadline deadline(options.time_limit_s, std::move(stop));
  const BaselineProblem problem(batch, profile);
  Decision decision = decide(problem, options, deadline);

  Plan plan;
  plan.method = name();
  plan.solver = std::string(name()) + (decision.layout.empty() ? "" : " " + decision.layout);
  plan.placement.ranks = batch.ranks;
  plan.placement.model = profile.catalog.model;
  plan.placement.exec = options.exec;
  plan.load_model = options.load_model;
  if (decision.reason.empty()) {
    plan.status = PlanStatus::feasible;
    plan.placement.sequences.reserve(batch.sequences.size());
    for (SequenceIndex s = 0; s < problem.num_sequences(); ++s) {
      const Spot spot = decision.spots[s];
      const Bucket& bucket = batch.bucket_of(s);
      std::vector<Rank> ranks(spot.config.degree());
      std::iota(ranks.begin(), ranks.end(), spot.first_rank);
      plan.placement.sequences.push_back(
          {batch.sequences[s].id, bucket.name, bucket.kind, bucket.tokens, spot.config, std::move(ranks), {}, {}});
    }
    complete(plan, batch, profile);
    const auto fullest = std::max_element(plan.memory.begin(), plan.memory.end());
    if (*fullest > problem.cap) {
      decision.reason = over_memory(static_cast<Rank>(fullest - plan.memory.begin()), *fullest, problem.cap);
    }
  }
  if (decision.reason.empty()) {
    plan.certificate.makespan_bound = bound_of(plan, problem, options);
    if (plan.certificate.makespan_bound == plan.makespan) plan.status = PlanStatus::optimal;
  } else {
    const std::string hopeless = problem.why_infeasible();
    plan.status = !hopeless.empty()    ? PlanStatus::infeasible
                  : decision.timed_out ? PlanStatus::timeout
                                       : PlanStatus::unknown;
    plan.reason = hopeless.empty() ? decision.reason : hopeless;
    complete(plan, batch, profile);
  }
  plan.solve_time = {static_cast<std::int64_t>(deadline.elapsed_s() * 1e6)};
  return plan;
}

}  // namespace zellige
