// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/baseline.h"
#include "plan/baselines.h"
#include "plan/fitted_work.h"
#include "zellige/text.h"

namespace zellige {
namespace {

/// Longest-first is close to balance already; this bounds the time on batches of many thousands.
constexpr int kMostExchanges = 10'000;

/// How many of each lot's sequences every rank holds whole, with what that costs it. Sequences of a lot are alike, so
/// counts say it all.
class WholeLedger {
 public:
  WholeLedger(const BaselineProblem& problem, const PowerLaw& model)
      : counts_(problem.ranks, std::vector<std::int64_t>(problem.lots.size())),
        work_(problem.ranks),
        memory_(problem.ranks),
        cap_(problem.cap) {
    for (const Lot& lot : problem.lots) {
      lot_work_.push_back(model(static_cast<double>(lot.tokens.value)));
      lot_memory_.push_back(problem.profile.whole(lot.bucket).memory);
    }
  }

  int ranks() const { return static_cast<int>(work_.size()); }
  std::size_t num_lots() const { return lot_work_.size(); }
  std::int64_t count(Rank rank, std::size_t lot) const { return counts_[rank][lot]; }
  double work(Rank rank) const { return work_[rank]; }
  double work_of(std::size_t lot) const { return lot_work_[lot]; }
  Bytes memory(Rank rank) const { return memory_[rank]; }
  Bytes memory_of(std::size_t lot) const { return lot_memory_[lot]; }
  bool fits(Rank rank, Bytes more) const { return memory_[rank] + more <= cap_; }

  void add(Rank rank, std::size_t lot, std::int64_t count) {
    counts_[rank][lot] += count;
    work_[rank] += lot_work_[lot] * static_cast<double>(count);
    memory_[rank] += lot_memory_[lot] * count;
  }

 private:
  std::vector<std::vector<std::int64_t>> counts_;  // [ranks][lots]
  std::vector<double> work_;                       // [ranks], fitted
  std::vector<Bytes> memory_;                      // [ranks]
  std::vector<double> lot_work_;                   // [lots]
  std::vector<Bytes> lot_memory_;                  // [lots]
  Bytes cap_;
};

/// In what order the ranks that have room are preferred.
enum class Prefer { least_work, most_room, least_room };

std::optional<Rank> pick(const WholeLedger& ledger, std::size_t lot, Prefer prefer) {
  std::optional<Rank> best;
  for (Rank rank = 0; rank < ledger.ranks(); ++rank) {
    if (!ledger.fits(rank, ledger.memory_of(lot))) continue;
    const bool better = !best || (prefer == Prefer::least_work  ? ledger.work(rank) < ledger.work(*best)
                                  : prefer == Prefer::most_room ? ledger.memory(rank) < ledger.memory(*best)
                                                                : ledger.memory(rank) > ledger.memory(*best));
    if (better) best = rank;
  }
  return best;
}

/// Places all sequences, longest first. Returns whether all found room.
bool place_all(const BaselineProblem& problem, Prefer prefer, WholeLedger& ledger) {
  for (std::size_t lot = 0; lot < problem.lots.size(); ++lot) {
    for (std::int64_t i = 0; i < problem.lots[lot].count(); ++i) {
      const std::optional<Rank> rank = pick(ledger, lot, prefer);
      if (!rank) return false;
      ledger.add(*rank, lot, 1);
    }
  }
  return true;
}

/// Takes work off the busiest rank by the best move of a sequence, or exchange of two, that memory allows. Returns
/// whether there was one.
bool relieve(WholeLedger& ledger) {
  Rank busiest = 0;
  for (Rank rank = 1; rank < ledger.ranks(); ++rank) {
    if (ledger.work(rank) > ledger.work(busiest)) busiest = rank;
  }
  struct Exchange {
    Rank other = 0;
    std::size_t give = 0;
    std::optional<std::size_t> take;
  };
  std::optional<Exchange> best;
  // An improvement of less than this is rounding and could go on for ever.
  double least = ledger.work(busiest) * (1 - 1e-9);
  const auto consider = [&](Rank other, std::size_t give, std::optional<std::size_t> take) {
    const double passed = ledger.work_of(give) - (take ? ledger.work_of(*take) : 0.0);
    const double after = std::max(ledger.work(busiest) - passed, ledger.work(other) + passed);
    if (passed <= 0 || after >= least) return;
    const Bytes grown = ledger.memory_of(give) - (take ? ledger.memory_of(*take) : Bytes{});
    if (!ledger.fits(other, grown) || !ledger.fits(busiest, Bytes{} - grown)) return;
    least = after;
    best = Exchange{other, give, take};
  };
  for (Rank other = 0; other < ledger.ranks(); ++other) {
    if (other == busiest) continue;
    for (std::size_t give = 0; give < ledger.num_lots(); ++give) {
      if (ledger.count(busiest, give) == 0) continue;
      consider(other, give, std::nullopt);
      for (std::size_t take = 0; take < ledger.num_lots(); ++take) {
        if (ledger.count(other, take) > 0) consider(other, give, take);
      }
    }
  }
  if (!best) return false;
  ledger.add(busiest, best->give, -1);
  ledger.add(best->other, best->give, 1);
  if (best->take) {
    ledger.add(best->other, *best->take, -1);
    ledger.add(busiest, *best->take, 1);
  }
  return true;
}

class AdaptiveLoad final : public Baseline {
 public:
  std::string_view name() const override { return "adaptiveload"; }

 protected:
  Decision decide(const BaselineProblem& problem, const PlanOptions& options, const Deadline& deadline) const override {
    refuse_layout(options);
    if (deadline.is_over()) return timed_out(deadline, "starting");
    const PowerLaw model = fit_power_law(whole_prices(problem.profile));
    // The first order balances best; the others are for memory so tight that it strands a sequence.
    std::optional<WholeLedger> ledger;
    for (const Prefer prefer : {Prefer::least_work, Prefer::most_room, Prefer::least_room}) {
      ledger.emplace(problem, model);
      if (place_all(problem, prefer, *ledger)) break;
      ledger.reset();
    }
    if (!ledger) return no_placement(why_stranded(problem));
    for (int i = 0; i < kMostExchanges && !deadline.is_over() && relieve(*ledger); ++i) {
    }
    Decision decision;
    decision.spots.resize(problem.num_sequences());
    for (std::size_t lot = 0; lot < problem.lots.size(); ++lot) {
      std::size_t next = 0;
      for (Rank rank = 0; rank < problem.ranks; ++rank) {
        for (std::int64_t i = 0; i < ledger->count(rank, lot); ++i) {
          decision.spots[problem.lots[lot].members[next++]] = {{1, 1, 1}, rank};
        }
      }
    }
    return decision;
  }

 private:
  static std::string why_stranded(const BaselineProblem& problem) {
    const std::string cap = " the memory cap of " + std::to_string(problem.cap.value) + " bytes a rank";
    for (const Lot& lot : problem.lots) {
      const Bytes need = problem.profile.whole(lot.bucket).memory;
      if (need <= problem.cap) continue;
      return "OOM: sequence " + in_quotes(problem.batch.sequences[lot.members.front()].id) + " kept whole needs " +
             std::to_string(need.value) + " bytes, over" + cap;
    }
    return "OOM: whole sequences were not found to fit on " + std::to_string(problem.ranks) + " ranks under" + cap;
  }
};

}  // namespace

std::unique_ptr<Planner> make_adaptiveload() { return std::make_unique<AdaptiveLoad>(); }

}  // namespace zellige
