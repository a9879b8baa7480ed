// SPDX-License-Identifier: Apache-2.0
#include "plan/repair.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "plan/bounds.h"
#include "plan/filler.h"
#include "plan/finish.h"
#include "plan/greedy.h"
#include "plan/level.h"
#include "plan/own_anchor.h"
#include "plan/settings.h"

namespace zellige {
namespace {

// Work limits. A step is a piece placed, a rank or a pair looked at: some nanoseconds.
constexpr std::int64_t kLevelWork = 400'000;
constexpr std::int64_t kGreedyWork = 250'000;
constexpr std::int64_t kMinSplitWork = 60'000;
constexpr int kRanksOfLimits = 32;  // what the limits above are for; more ranks get more
constexpr int kMostTimes = 10;

// Shares of the makespan that a placement must gain to be taken.
constexpr std::int64_t kMovesAnchors = 2'000;
constexpr std::int64_t kSplitsFillers = 10'000;

/// What a placement is judged by, in this order.
struct Value {
  std::int64_t makespan_us = 0;
  std::int64_t splits = 0;
};

class Repair {
 public:
  Repair(const RepairTask& task, const PlanOptions& options, const Deadline& deadline)
      : task_(task), whole_(*task.whole), options_(options), deadline_(deadline) {
    times_ = std::clamp(whole_.ranks / kRanksOfLimits, 1, kMostTimes);
  }

  Repaired run();

 private:
  bool has_placement() const { return best_.has_value(); }
  bool is_close() const { return has_placement() && best_value_.makespan_us <= target_us_; }
  void set_bound(std::int64_t bound_us);
  /// Takes a placement when it keeps the cap and is better by more than `margin_us`.
  bool offer(CountSolution candidate, std::int64_t margin_us, const Repaired& from);
  /// Tries to prove that the best placement is close; one linear program, so it comes before every search for a better.
  void prove_close();
  void raise_bound();
  void search();
  void level_start();
  void anchors_over_sand();
  void whole_on_own_solver();
  void whole_by_list_scheduling();
  void whole_on_cp_sat();
  std::optional<CountSolution> with_fillers(const CountSolution& anchors);
  Certificate whole_certificate(const AnchorResult& result) const;
  void note_overflow(const std::vector<std::int64_t>& memory);

  const RepairTask& task_;
  const Problem& whole_;
  const PlanOptions& options_;
  const Deadline& deadline_;
  std::int64_t times_ = 1;
  std::int64_t bound_us_ = 0, target_us_ = 0;
  std::optional<MakespanProver> prover_;
  ProvedBound whole_bound_;         // of the own solver on the whole batch
  std::int64_t sand_level_us_ = 0;  // that the fillers would come to over the anchors of step 2
  std::optional<CountSolution> best_;
  Value best_value_;
  bool is_refuted_by_own_ = false;
  std::int64_t least_overflow_bytes_ = 0;
  std::string overflow_words_;
  Repaired result_;
};

void Repair::set_bound(std::int64_t bound_us) {
  bound_us_ = std::max(bound_us_, bound_us);
  target_us_ = relaxed_load(bound_us_, kRepairTolerance);
}

bool Repair::offer(CountSolution candidate, std::int64_t margin_us, const Repaired& from) {
  const std::vector<std::int64_t> memory = rank_memory(whole_, candidate);
  if (*std::max_element(memory.begin(), memory.end()) > whole_.memory_cap_bytes) return false;
  const Value value{largest_load(whole_, candidate), num_split(whole_, candidate)};
  if (has_placement() && value.makespan_us >= best_value_.makespan_us - margin_us) return false;
  best_ = std::move(candidate);
  best_value_ = value;
  result_ = from;  // the bound is filled in at the end
  result_.status = Repaired::Status::better;
  return true;
}

void Repair::prove_close() {
  if (is_close() || !has_placement() || deadline_.is_over()) return;
  if (!prover_) prover_.emplace(whole_, best_value_.makespan_us, deadline_);
  // A limit with a fractional placement has been asked about.
  const std::int64_t enough = bound_enough_for(best_value_.makespan_us);
  if (prover_->fits_us() > 0 && enough > prover_->fits_us()) return;
  if (prover_->prove(enough, proof_work(whole_.ranks))) set_bound(prover_->bound_us());
}

void Repair::raise_bound() {
  if (is_close() || !has_placement() || deadline_.is_over()) return;
  if (!prover_) prover_.emplace(whole_, best_value_.makespan_us, deadline_);
  prover_->raise(bound_us_, bound_enough_for(best_value_.makespan_us), proof_work(whole_.ranks));
  set_bound(prover_->bound_us());
}

void Repair::level_start() {
  CountSolution solution = *task_.start;
  Leveller(whole_, solution).level_load(target_us_, kLevelWork * times_);
  offer(std::move(solution), 0, {.solver = "own"});
}

/// Anchors as given, fillers by Eq. 8; those that fit no rank go where most memory is left, and then the ranks trade
/// until they keep the cap.
std::optional<CountSolution> Repair::with_fillers(const CountSolution& anchors) {
  CountSolution solution(whole_);
  FillerLedger ledger;
  ledger.load_us = rank_times(*task_.anchors, anchors);
  ledger.memory_bytes = rank_memory(*task_.anchors, anchors);
  ledger.memory_cap_bytes = whole_.memory_cap_bytes;
  std::vector<Filler> fillers;
  std::vector<std::pair<std::size_t, std::size_t>> kind;  // [fillers] group and whole option
  std::size_t anchor_group = 0;
  for (std::size_t g = 0; g < whole_.groups.size(); ++g) {
    const Group& group = whole_.groups[g];
    if (task_.is_anchor[g]) {
      solution.z[g] = anchors.z[anchor_group];
      solution.x[g] = anchors.x[anchor_group];
      ++anchor_group;
    }
    const Price& price = task_.profile->whole(group.bucket);
    ledger.whole_time_us += price.time.value * group.count();
    if (task_.is_anchor[g]) continue;
    if (group.options.empty() || group.options.front().is_split()) return std::nullopt;  // too large to stay whole
    solution.z[g][0] = group.count();
    for (std::int64_t i = 0; i < group.count(); ++i) {
      fillers.push_back({0, group.options.front().time_us, price.memory.value});
      kind.emplace_back(g, 0);
    }
  }
  bool is_over = false;
  std::vector<Rank> rank = pack_fillers(fillers, ledger).rank;
  for (std::size_t f = 0; f < fillers.size(); ++f) {
    if (rank[f] < 0) {
      const auto roomiest = std::min_element(ledger.memory_bytes.begin(), ledger.memory_bytes.end());
      rank[f] = static_cast<Rank>(roomiest - ledger.memory_bytes.begin());
      *roomiest += fillers[f].memory_bytes;
      is_over = true;
    }
    ++solution.x[kind[f].first][kind[f].second][rank[f]];
  }
  Leveller leveller(whole_, solution);
  if (is_over && !leveller.shed_memory(kLevelWork * times_)) {
    note_overflow(leveller.memory());
    return std::nullopt;
  }
  leveller.level_load(target_us_, kLevelWork * times_);
  return solution;
}

/// Keeps, in words, the attempt whose ranks are over by least.
void Repair::note_overflow(const std::vector<std::int64_t>& memory) {
  std::int64_t sum = 0;
  std::string ranks;
  int listed = 0;
  constexpr int kMostListed = 4;
  for (std::size_t r = 0; r < memory.size(); ++r) {
    const std::int64_t over = memory[r] - whole_.memory_cap_bytes;
    if (over <= 0) continue;
    sum += over;
    if (++listed > kMostListed) continue;
    ranks.append(listed == 1 ? "" : ", ").append("rank ").append(std::to_string(r)).append(" by ");
    ranks.append(std::to_string(over));
  }
  if (sum == 0 || (least_overflow_bytes_ > 0 && sum >= least_overflow_bytes_)) return;
  least_overflow_bytes_ = sum;
  if (listed > kMostListed) ranks.append(" and ").append(std::to_string(listed - kMostListed)).append(" others");
  overflow_words_ = "the closest placement found is over the memory cap of " + std::to_string(whole_.memory_cap_bytes) +
                    " bytes on " + ranks + " (" + std::to_string(sum) + " bytes in all)";
}

void Repair::anchors_over_sand() {
  if (task_.anchors->groups.empty()) {
    // Nothing but fillers: Eq. 8 may have failed in memory alone.
    if (auto solution = with_fillers(CountSolution(*task_.anchors))) offer(std::move(*solution), 0, {.solver = "own"});
    return;
  }
  Aim aim;
  for (std::size_t g = 0; g < whole_.groups.size(); ++g) {
    if (task_.is_anchor[g]) continue;
    const Price& price = task_.profile->whole(whole_.groups[g].bucket);
    aim.sand.time_us += price.time.value * whole_.groups[g].count();
    aim.sand.memory_bytes += price.memory.value * whole_.groups[g].count();
  }
  // Packed, the fillers come a little higher than sand: half of the tolerance is theirs.
  aim.enough_us = relaxed_load(bound_us_, kRepairTolerance / 2);
  auto anchors = greedy_balance(*task_.anchors, kGreedyWork * times_, deadline_, aim);
  if (!anchors) return;
  const std::int64_t level = sand_level(*task_.anchors, *anchors, aim.sand);
  *anchors = greedy_min_split(*task_.anchors, *anchors, std::max(level, aim.enough_us), kMinSplitWork * times_,
                              deadline_, aim.sand);
  sand_level_us_ = sand_level(*task_.anchors, *anchors, aim.sand);
  if (auto solution = with_fillers(*anchors)) {
    // Other anchors than the rounds' own cost the plan their certificate: for half of the tolerance at least.
    const std::int64_t margin = has_placement() ? best_value_.makespan_us / kMovesAnchors : 0;
    offer(std::move(*solution), margin, {.solver = "own"});
  }
}

/// Of a solve over the whole batch.
Certificate Repair::whole_certificate(const AnchorResult& result) const {
  Certificate certificate = result.certificate;
  certificate.anchor_buckets.emplace();
  for (const Group& group : whole_.groups) {
    certificate.anchor_buckets->push_back(task_.profile->catalog.buckets[group.bucket].name);
  }
  if (result.balanced) certificate.anchor_placement = rank_contents(whole_, *result.balanced, *task_.profile);
  return certificate;
}

void Repair::whole_on_own_solver() {
  // Patterns of many pieces are what the own solver is slow at, and sand is good enough at.
  constexpr std::int64_t kMostSequences = 256;
  if (whole_.num_sequences() > kMostSequences * times_) return;
  AnchorResult result = place_anchors_own(whole_, *task_.profile, options_, deadline_);
  is_refuted_by_own_ = result.status == AnchorResult::Status::infeasible;
  if (result.status != AnchorResult::Status::solved) return;
  if (result.certificate.duals) {
    whole_bound_ = {result.certificate.anchor_bound->value, result.certificate.duals};
    set_bound(whole_bound_.us);
  }
  Repaired from;
  from.certificate = whole_certificate(result);
  from.solver = "own";
  const std::int64_t margin = has_placement() ? best_value_.makespan_us / kSplitsFillers : 0;
  offer(std::move(result.solution), margin, from);
}

void Repair::whole_by_list_scheduling() {
  auto solution = greedy_balance(whole_, kGreedyWork * times_, deadline_, {.sand = {}, .enough_us = target_us_});
  if (!solution) return;
  const std::int64_t limit = std::max(target_us_, largest_load(whole_, *solution));
  *solution = greedy_min_split(whole_, *solution, limit, kMinSplitWork * times_, deadline_);
  Leveller(whole_, *solution).level_load(target_us_, kLevelWork * times_);
  const std::int64_t margin = has_placement() ? best_value_.makespan_us / kSplitsFillers : 0;
  offer(std::move(*solution), margin, {.fillers_split = true, .solver = "greedy"});
}

void Repair::whole_on_cp_sat() {
  if (deadline_.is_over()) return;
  const std::shared_ptr<const cp::Solver> solver = task_.find_solver();
  if (!solver) return;
  AnchorSettings settings;
  settings.fall_back = true;
  AnchorResult result = place_anchors(whole_, solver.get(), settings, options_, deadline_);
  if (result.status == AnchorResult::Status::solved) {
    Repaired from;
    prove_bounds(result.certificate, whole_, *task_.profile, options_, deadline_);
    from.certificate = whole_certificate(result);
    from.solver = result.is_greedy ? "greedy" : "cp-sat";
    offer(std::move(result.solution), 0, from);
    return;
  }
  result_.status =
      result.status == AnchorResult::Status::infeasible ? Repaired::Status::infeasible : Repaired::Status::unknown;
  result_.solver = "cp-sat";
  result_.reason = std::move(result.reason);
}

void Repair::search() {
  if (task_.start) level_start();
  prove_close();
  if (!is_close() && !deadline_.is_over()) anchors_over_sand();
  prove_close();
  if (!is_close() && !deadline_.is_over()) whole_on_own_solver();
  prove_close();
  // Fillers that came to the sand's level leave nothing to gain but by other anchors.
  const bool is_level =
      has_placement() && best_value_.makespan_us <= relaxed_load(sand_level_us_, kRepairTolerance / 2);
  if (!is_close() && !is_level && !is_refuted_by_own_ && !deadline_.is_over()) whole_by_list_scheduling();
  if (!has_placement()) whole_on_cp_sat();
  raise_bound();
}

Repaired Repair::run() {
  if (task_.start) {
    best_ = *task_.start;
    best_value_ = {largest_load(whole_, *best_), num_split(whole_, *best_)};
  }
  const std::int64_t simple_us = load_lower_bound(whole_, has_placement() ? best_value_.makespan_us : kNoLoadLimit);
  set_bound(simple_us);
  prove_close();
  if (!is_close()) search();
  if (!has_placement() && result_.status == Repaired::Status::unchanged) result_.status = Repaired::Status::unknown;
  result_.overflow = overflow_words_;
  result_.bound.us = bound_us_;
  if (prover_ && prover_->bound_us() == bound_us_ && bound_us_ > simple_us) {
    result_.bound.duals = prover_->proof(*task_.profile, options_.menu);
  } else if (whole_bound_.us == bound_us_ && bound_us_ > simple_us) {
    result_.bound.duals = whole_bound_.duals;
  }
  if (result_.status == Repaired::Status::unknown && is_refuted_by_own_) {
    // Its search was complete, but leaves no proof that the checker could verify: not called infeasible.
    result_.reason = "the own solver searched all placements of these " + std::to_string(whole_.num_sequences()) +
                     " sequences and found none that keeps the memory cap of " +
                     std::to_string(whole_.memory_cap_bytes) + " bytes a rank";
  }
  if (result_.status == Repaired::Status::better) result_.solution = canonical(whole_, *best_);
  return result_;
}

}  // namespace

Repaired repair(const RepairTask& task, const PlanOptions& options, const Deadline& deadline) {
  return Repair(task, options, deadline).run();
}

}  // namespace zellige
