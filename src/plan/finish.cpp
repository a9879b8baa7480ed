// SPDX-License-Identifier: Apache-2.0
#include "plan/finish.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "plan/bounds.h"
#include "plan/wide.h"

namespace zellige {

void assign(const Problem& problem, const CountSolution& solution, std::vector<Assignment>& assignments) {
  auto placed = decode(problem, solution);
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    const Group& group = problem.groups[g];
    for (std::size_t member = 0; member < group.members.size(); ++member) {
      MemberPlacement& placement = placed[g][member];
      assignments[group.members[member]] = {group.options[placement.option].config, std::move(placement.ranks)};
    }
  }
}

std::vector<RankContent> rank_contents(const Problem& problem, const CountSolution& solution, const Profile& profile) {
  std::map<std::vector<std::int64_t>, int, std::greater<>> alike;  // pieces by group and option, ranks
  for (int rank = 0; rank < problem.ranks; ++rank) {
    std::vector<std::int64_t> pieces;
    for (const auto& group : solution.x) {
      for (const auto& option : group) pieces.push_back(option[rank]);
    }
    ++alike[std::move(pieces)];
  }
  std::vector<RankContent> contents;
  for (const auto& [pieces, ranks] : alike) {
    RankContent& content = contents.emplace_back();
    content.ranks = ranks;
    std::size_t at = 0;
    for (const Group& group : problem.groups) {
      for (const Option& option : group.options) {
        const auto held = static_cast<int>(pieces[at++]);
        if (held > 0) content.holds.push_back({profile.catalog.buckets[group.bucket].name, option.config, held});
      }
    }
  }
  return contents;
}

namespace {

/// A bound that is close to the makespan where one can be proved in some milliseconds, else the best of those.
ProvedBound proved_bound(const Problem& whole_batch, std::int64_t least_us, std::int64_t makespan_us,
                         const Profile& profile, const PlanOptions& options, const Deadline& deadline) {
  const std::int64_t enough = bound_enough_for(makespan_us);
  if (least_us >= enough || deadline.is_over()) return {};
  MakespanProver prover(whole_batch, makespan_us, deadline);
  const std::int64_t work = proof_work(whole_batch.ranks);
  if (!prover.prove(enough, work)) prover.raise(least_us, enough, work);
  if (prover.bound_us() <= least_us) return {};
  return {prover.bound_us(), prover.proof(profile, options.menu)};
}

}  // namespace

void finish_with(Plan& plan, std::vector<Assignment> assignments, const Batch& batch, const Profile& profile,
                 const Problem& whole_batch, const PlanOptions& options, const Deadline& deadline,
                 const ProvedBound& known) {
  plan.placement.ranks = batch.ranks;
  plan.placement.model = batch.catalog.model;
  plan.placement.exec = options.exec;
  plan.placement.sequences.clear();
  plan.placement.sequences.reserve(batch.sequences.size());
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const Bucket& bucket = batch.bucket_of(static_cast<SequenceIndex>(i));
    PlacedSequence placed;
    placed.id = batch.sequences[i].id;
    placed.bucket = bucket.name;
    placed.kind = bucket.kind;
    placed.tokens = bucket.tokens;
    placed.config = assignments[i].config;
    placed.ranks = std::move(assignments[i].ranks);
    plan.placement.sequences.push_back(std::move(placed));
  }
  plan.status = PlanStatus::feasible;
  plan.load_model = options.load_model;
  complete(plan, batch, profile);
  std::int64_t bound = load_lower_bound(whole_batch, plan.makespan.value);
  // All anchors are placed, so a proved bound of their largest load is one of the makespan.
  if (plan.certificate.duals) bound = std::max(bound, plan.certificate.anchor_bound->value);
  const ProvedBound proved =
      known.us > 0 ? known : proved_bound(whole_batch, bound, plan.makespan.value, profile, options, deadline);
  if (proved.us > bound) {
    bound = proved.us;
    plan.certificate.makespan_duals = proved.duals;
  }
  plan.certificate.makespan_bound = Microseconds{bound};
  if (bound == plan.makespan.value) plan.status = PlanStatus::optimal;
  plan.solve_time = Microseconds{static_cast<std::int64_t>(deadline.elapsed_s() * 1e6)};
}

void finish_without(Plan& plan, PlanStatus status, std::string reason, const Batch& batch, const Profile& profile,
                    const PlanOptions& options, const Deadline& deadline) {
  plan.status = status;
  plan.reason = std::move(reason);
  plan.certified = false;
  plan.placement = {};
  plan.placement.ranks = batch.ranks;
  plan.placement.model = batch.catalog.model;
  plan.placement.exec = options.exec;
  plan.load_model = options.load_model;
  complete(plan, batch, profile);
  plan.solve_time = Microseconds{static_cast<std::int64_t>(deadline.elapsed_s() * 1e6)};
}

std::string why_infeasible(const Problem& whole_batch_unreduced, const Batch& batch, const Profile& profile) {
  if (std::string reason = why_never_fits(whole_batch_unreduced, batch, profile); !reason.empty()) return reason;
  if (!memory_is_refuted(whole_batch_unreduced)) return "";
  Wide least_sum = 0;
  for (const Group& group : whole_batch_unreduced.groups) {
    const auto least = std::min_element(
        group.options.begin(), group.options.end(),
        [](const Option& a, const Option& b) { return a.degree * a.memory_bytes < b.degree * b.memory_bytes; });
    least_sum += static_cast<Wide>(least->degree) * least->memory_bytes * group.count();
  }
  const Wide room = static_cast<Wide>(batch.ranks) * whole_batch_unreduced.memory_cap_bytes;
  const std::string held = std::to_string(batch.ranks) + " ranks with a memory cap of " +
                           std::to_string(whole_batch_unreduced.memory_cap_bytes) + " bytes hold " +
                           std::to_string(static_cast<std::int64_t>(room)) + " bytes; the batch needs at least " +
                           std::to_string(static_cast<std::int64_t>(least_sum));
  if (least_sum > room) {
    return held + ", " + std::to_string(static_cast<std::int64_t>(least_sum - room)) + " over";
  }
  return held + ", in pieces so large that they cannot be packed";
}

}  // namespace zellige
