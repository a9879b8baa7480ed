// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/baseline.h"
#include "plan/baselines.h"
#include "plan/disjoint_search.h"
#include "plan/group_layout.h"
#include "zellige/error.h"

namespace zellige {
namespace {

/// What is beyond these is refused: the method is only worth its name where it proves the optimum.
constexpr std::size_t kMostLayouts = 20'000;
constexpr std::int64_t kMostNodes = 30'000'000;

constexpr int kMostRanks = 4096;  // the tables of kinds and layouts grow with the ranks

constexpr std::int64_t kNothingYet = std::numeric_limits<std::int64_t>::max();

/// The kinds of group that there can be, and what every lot costs in each.
struct KindTable {
  std::vector<GroupCosts> costs;       // by rising size
  std::vector<Configuration> configs;  // theta_j
  std::vector<int> sizes;              // those that occur, rising

  /// Kinds [first, last) of a size.
  std::pair<std::size_t, std::size_t> of_size(int size) const {
    const auto has_size = [](const GroupCosts& kind, int wanted) { return kind.size < wanted; };
    const auto first = std::lower_bound(costs.begin(), costs.end(), size, has_size);
    const auto last = std::lower_bound(first, costs.end(), size + 1, has_size);
    return {first - costs.begin(), last - costs.begin()};
  }
};

/// Whether a group of kind `a` can replace one of kind `b` of the same size whatever it holds.
bool dominates(const GroupCosts& a, const GroupCosts& b) {
  for (std::size_t lot = 0; lot < a.time_us.size(); ++lot) {
    if (b.time_us[lot] == kCannotRun) continue;
    if (a.time_us[lot] == kCannotRun || a.time_us[lot] > b.time_us[lot]) return false;
    if (a.memory_bytes[lot] > b.memory_bytes[lot]) return false;
  }
  return true;
}

/// Kinds of the sizes that `wanted` accepts: every priced configuration that no other of its size dominates.
template <class Wanted>
KindTable make_kinds(const BaselineProblem& problem, const Wanted& wanted) {
  std::vector<Configuration> all;
  for (const Lot& lot : problem.lots) {
    for (const Price& price : problem.profile.menu(lot.bucket)) {
      if (wanted(price.config.degree()) && problem.find(lot, price.config) != nullptr) all.push_back(price.config);
    }
  }
  std::sort(all.begin(), all.end(), [](const Configuration& a, const Configuration& b) {
    return a.degree() != b.degree() ? a.degree() < b.degree() : a < b;
  });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  KindTable table;
  for (const Configuration config : all) {
    GroupCosts kind{config.degree(), {}, {}};
    for (const Lot& lot : problem.lots) {
      const Price* price = problem.find(lot, config);
      kind.time_us.push_back(price == nullptr ? kCannotRun : price->time.value);
      kind.memory_bytes.push_back(price == nullptr ? 0 : price->memory.value);
    }
    bool is_needed = true;
    for (std::size_t other = 0; other < table.costs.size() && is_needed; ++other) {
      is_needed = table.costs[other].size != kind.size || !dominates(table.costs[other], kind);
    }
    if (!is_needed) continue;
    for (std::size_t other = table.costs.size(); other-- > 0;) {
      if (table.costs[other].size != kind.size || !dominates(kind, table.costs[other])) continue;
      table.costs.erase(table.costs.begin() + static_cast<std::ptrdiff_t>(other));
      table.configs.erase(table.configs.begin() + static_cast<std::ptrdiff_t>(other));
    }
    table.costs.push_back(kind);
    table.configs.push_back(config);
  }
  for (const GroupCosts& kind : table.costs) {
    if (table.sizes.empty() || table.sizes.back() != kind.size) table.sizes.push_back(kind.size);
  }
  return table;
}

/// Appends every way to choose kinds for the groups of `layout` from its `at`-th size on, to at most `limit`.
void choose_kinds(const GroupLayout& layout, std::size_t at, const KindTable& table, std::size_t limit,
                  std::vector<std::size_t>& chosen, std::vector<std::vector<std::size_t>>& found) {
  if (found.size() > limit) return;
  if (at == layout.groups.size()) {
    found.push_back(chosen);
    return;
  }
  const auto [first, last] = table.of_size(layout.groups[at].size);
  const auto fill = [&](const auto& self, std::size_t kind, int left) -> void {
    if (left == 0) return choose_kinds(layout, at + 1, table, limit, chosen, found);
    for (std::size_t next = kind; next < last && found.size() <= limit; ++next) {
      chosen.push_back(next);
      self(self, next, left - 1);
      chosen.pop_back();
    }
  };
  fill(fill, first, layout.groups[at].count);
}

/// A layout with its bound, to be searched.
struct Candidate {
  std::vector<std::size_t> groups;  // kinds, by rising size
  std::int64_t bound = 0;
};

class Disjoint final : public Baseline {
 public:
  std::string_view name() const override { return "disjoint"; }

 protected:
  Decision decide(const BaselineProblem& problem, const PlanOptions& options, const Deadline& deadline) const override {
    std::optional<GroupLayout> fixed;
    if (!options.layout.empty()) {
      fixed = parse_group_layout(options.layout, problem.ranks, where());
      if (fixed->num_ranks() != problem.ranks) {
        throw Error(Code::input, where(),
                    "layout '" + options.layout + "' covers " + std::to_string(fixed->num_ranks()) +
                        " of the batch's " + std::to_string(problem.ranks) + " ranks; it has to cover all");
      }
    }
    if (problem.ranks > kMostRanks) {
      return no_placement("this method takes at most " + std::to_string(kMostRanks) + " ranks; the batch has " +
                          std::to_string(problem.ranks));
    }
    if (deadline.is_over()) return timed_out(deadline, "starting");
    if (problem.num_sequences() == 0) return {};  // nothing to group
    const KindTable kinds = make_kinds(problem, [&](int degree) {
      if (fixed) {
        return std::any_of(fixed->groups.begin(), fixed->groups.end(),
                           [&](const GroupCount& group) { return group.size == degree; });
      }
      return options.menu == Menu::all || std::has_single_bit(static_cast<unsigned>(degree));
    });
    LayoutList list;
    if (fixed) {
      list.layouts.push_back(*fixed);
    } else {
      std::vector<int> sizes = kinds.sizes;
      if (sizes.empty() || sizes.front() != 1) sizes.insert(sizes.begin(), 1);
      list = group_layouts(problem.ranks, sizes, kMostLayouts);
    }
    std::vector<std::vector<std::size_t>> layouts;
    for (const GroupLayout& layout : list.layouts) {
      std::vector<std::size_t> chosen;
      choose_kinds(layout, 0, kinds, kMostLayouts, chosen, layouts);
    }
    if (!list.complete || layouts.size() > kMostLayouts) {
      return no_placement("too large to solve exactly: there are more than " + std::to_string(kMostLayouts) +
                          " layouts of groups over " + std::to_string(problem.ranks) + " ranks");
    }
    return search(problem, kinds, layouts, deadline);
  }

 private:
  static Decision search(const BaselineProblem& problem, const KindTable& kinds,
                         const std::vector<std::vector<std::size_t>>& layouts, const Deadline& deadline) {
    GroupInstance instance;
    instance.kinds = kinds.costs;
    instance.cap_bytes = problem.cap.value;
    for (const Lot& lot : problem.lots) instance.counts.push_back(lot.count());

    std::vector<Candidate> candidates;
    for (const std::vector<std::size_t>& groups : layouts) {
      if (deadline.is_over()) return timed_out(deadline, "bounding layouts");
      instance.groups = groups;
      candidates.push_back({groups, group_lower_bound(instance)});
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.bound < b.bound; });

    SearchBudget budget{kMostNodes, [&] { return deadline.is_over(); }};
    std::optional<GroupAssignment> best;
    std::vector<std::size_t> best_groups;
    for (const Candidate& candidate : candidates) {
      const std::int64_t below = best ? best->makespan_us : kNothingYet;
      if (candidate.bound >= below) break;
      instance.groups = candidate.groups;
      std::optional<GroupAssignment> found = best_assignment(instance, below, budget);
      if (found) {
        best = std::move(found);
        best_groups = candidate.groups;
      }
      if (budget.spent) return gave_up(deadline, best, candidate.bound);
    }
    if (!best) {
      return no_placement("OOM: no disjoint groups over " + std::to_string(problem.ranks) +
                          " ranks hold the batch under the memory cap of " + std::to_string(problem.cap.value) +
                          " bytes a rank (proved)");
    }
    return decode(problem, kinds, best_groups, *best);
  }

  static Decision gave_up(const Deadline& deadline, const std::optional<GroupAssignment>& best, std::int64_t bound) {
    const std::string known = best ? "the best found takes " + std::to_string(best->makespan_us) +
                                         " us, and none takes less than " + std::to_string(bound) + " us"
                                   : "none was found";
    if (deadline.is_over()) return timed_out(deadline, "proving the best groups; " + known);
    return no_placement("too large to solve exactly: not done after " + std::to_string(kMostNodes) +
                        " nodes of branch and bound; " + known);
  }

  static Decision decode(const BaselineProblem& problem, const KindTable& kinds, const std::vector<std::size_t>& groups,
                         const GroupAssignment& assignment) {
    Decision decision;
    decision.spots.resize(problem.num_sequences());
    std::vector<std::size_t> next(problem.lots.size());
    GroupLayout layout;
    Rank first_rank = 0;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      const Configuration config = kinds.configs[groups[group]];
      const int size = config.degree();
      if (layout.groups.empty() || layout.groups.back().size != size) layout.groups.push_back({size, 0});
      ++layout.groups.back().count;
      for (std::size_t lot = 0; lot < problem.lots.size(); ++lot) {
        for (std::int64_t i = 0; i < assignment.taken[group][lot]; ++i) {
          decision.spots[problem.lots[lot].members[next[lot]++]] = {config, first_rank};
        }
      }
      first_rank += size;
    }
    decision.layout = text(layout);
    return decision;
  }
};

}  // namespace

std::unique_ptr<Planner> make_disjoint() { return std::make_unique<Disjoint>(); }

}  // namespace zellige
