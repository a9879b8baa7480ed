// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/baseline.h"
#include "plan/baselines.h"
#include "zellige/error.h"

namespace zellige {
namespace {

std::string notation(Configuration grid) { return "u" + std::to_string(grid.h) + "r" + std::to_string(grid.k); }

/// Ulysses degree x ring degree of all ranks; the widest Ulysses first. Ulysses groups are consecutive ranks and rings
/// are strided, which is the coordinate order of a placement.
std::vector<Configuration> grids(int ranks) {
  std::vector<Configuration> all;
  for (int ulysses = ranks; ulysses >= 1; --ulysses) {
    if (ranks % ulysses == 0) all.push_back({1, ulysses, ranks / ulysses});
  }
  return all;
}

/// What every rank bears when all sequences run on the grid.
struct GridCost {
  Microseconds load;
  Bytes memory;
};

/// @param why  receives the reason when a sequence cannot run on the grid
std::optional<GridCost> grid_cost(const BaselineProblem& problem, Configuration grid, std::string& why) {
  GridCost cost;
  for (const Lot& lot : problem.lots) {
    const Price* price = problem.find(lot, grid);
    if (price == nullptr) {
      why = notation(grid) + ": " + problem.why_unavailable(lot, grid);
      return std::nullopt;
    }
    cost.load += price->time * lot.count();
    cost.memory += price->memory * lot.count();
  }
  if (cost.memory > problem.cap) {
    why = over_memory(0, cost.memory, problem.cap) + " with " + notation(grid);
    return std::nullopt;
  }
  return cost;
}

/// Memory first: where some grid could run but for memory, the reason is to start with "OOM".
std::string joined(std::vector<std::string> reasons) {
  std::stable_partition(reasons.begin(), reasons.end(),
                        [](const std::string& reason) { return reason.starts_with("OOM"); });
  std::string all;
  for (const std::string& reason : reasons) all += (all.empty() ? "" : "; ") + reason;
  return all;
}

class Usp final : public Baseline {
 public:
  std::string_view name() const override { return "usp"; }

 protected:
  Decision decide(const BaselineProblem& problem, const PlanOptions& options, const Deadline& deadline) const override {
    const std::vector<Configuration> candidates = chosen_grids(problem.ranks, options.layout);
    if (deadline.is_over()) return timed_out(deadline, "starting");
    std::optional<GridCost> best;
    Configuration best_grid;
    std::vector<std::string> reasons;
    for (const Configuration grid : candidates) {
      std::string why;
      const std::optional<GridCost> cost = grid_cost(problem, grid, why);
      if (!cost) {
        reasons.push_back(why);
      } else if (!best || cost->load < best->load) {
        best = cost;
        best_grid = grid;
      }
    }
    if (!best) return no_placement(joined(std::move(reasons)));
    Decision decision;
    decision.layout = notation(best_grid);
    decision.spots.assign(problem.num_sequences(), {best_grid, 0});
    return decision;
  }

 private:
  /// All grids, or the one that `layout` names.
  std::vector<Configuration> chosen_grids(int ranks, std::string_view layout) const {
    const std::vector<Configuration> all = grids(ranks);
    if (layout.empty()) return all;
    std::string known;
    for (const Configuration grid : all) {
      if (notation(grid) == layout) return {grid};
      known += (known.empty() ? "" : ", ") + notation(grid);
    }
    throw Error(Code::input, where(),
                "layout '" + std::string(layout) + "' is no Ulysses x ring grid of " + std::to_string(ranks) +
                    " ranks; there are " + known);
  }
};

}  // namespace

std::unique_ptr<Planner> make_usp() { return std::make_unique<Usp>(); }

}  // namespace zellige
