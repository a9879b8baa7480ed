// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "plan/baseline.h"
#include "plan/baselines.h"
#include "plan/differencing.h"
#include "zellige/error.h"

namespace zellige {
namespace {

/// Naive data parallelism: longest first onto the rank with the fewest tokens, ties to the lowest rank.
std::vector<Spot> balance_tokens(const BaselineProblem& problem) {
  using Entry = std::pair<std::int64_t, Rank>;  // tokens, rank
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> emptiest;
  for (Rank rank = 0; rank < problem.ranks; ++rank) emptiest.push({0, rank});
  std::vector<Spot> spots(problem.num_sequences());
  for (const Lot& lot : problem.lots) {
    for (const SequenceIndex sequence : lot.members) {
      auto [tokens, rank] = emptiest.top();
      emptiest.pop();
      spots[sequence].first_rank = rank;
      emptiest.push({tokens + lot.tokens.value, rank});
    }
  }
  return spots;
}

/// Compute balance by differencing. The work of l tokens at width d, up to a factor: 6 d l for projections and
/// feed-forward, l^2 for attention (24,576 l + l^2 at the width of 4,096 for which it is published).
std::vector<Spot> balance_compute(const BaselineProblem& problem) {
  const std::int64_t width = problem.profile.catalog.model.width();
  std::vector<std::int64_t> work(problem.num_sequences());
  for (SequenceIndex s = 0; s < problem.num_sequences(); ++s) {
    const std::int64_t length = problem.batch.tokens_of(s).value;
    work[s] = 6 * width * length + length * length;
  }
  const std::vector<int> part = largest_differencing(work, problem.ranks);
  std::vector<Spot> spots(problem.num_sequences());
  for (SequenceIndex s = 0; s < problem.num_sequences(); ++s) spots[s].first_rank = part[s];
  return spots;
}

class Naive final : public Baseline {
 public:
  std::string_view name() const override { return "naive"; }

 protected:
  Decision decide(const BaselineProblem& problem, const PlanOptions& options, const Deadline& deadline) const override {
    if (!options.layout.empty() && options.layout != "karmarkar-karp") {
      throw Error(Code::input, where(),
                  "layout '" + options.layout + "': leave it empty (token balance) or write karmarkar-karp");
    }
    if (deadline.is_over()) return timed_out(deadline, "starting");
    Decision decision;
    decision.layout = options.layout;
    decision.spots = options.layout.empty() ? balance_tokens(problem) : balance_compute(problem);
    return decision;
  }
};

}  // namespace

std::unique_ptr<Planner> make_naive() { return std::make_unique<Naive>(); }

}  // namespace zellige
