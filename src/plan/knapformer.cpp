// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/baseline.h"
#include "plan/baselines.h"
#include "plan/fitted_work.h"
#include "plan/group_layout.h"
#include "plan/knapformer_routing.h"
#include "zellige/error.h"
#include "zellige/text.h"

namespace zellige {
namespace {

/// So many layouts are tried; where there are more, those that mix fewer bag sizes (group_layouts).
constexpr std::size_t kMostLayouts = 20'000;

/// A layout with the batch routed into it.
struct Trial {
  GroupLayout layout;
  std::vector<Spot> spots;
  Microseconds makespan;
  Rank fullest_rank = 0;
  Bytes memory;  ///< of the fullest rank
};

/// Routes one batch into many layouts.
class Router {
 public:
  explicit Router(const BaselineProblem& problem)
      : problem_(problem),
        width_(problem.profile.catalog.model.width()),
        gamma_(fit_gamma(whole_prices(problem.profile), width_)) {
    lot_of_.resize(problem.num_sequences());
    for (std::size_t lot = 0; lot < problem.lots.size(); ++lot) {
      for (const SequenceIndex sequence : problem.lots[lot].members) lot_of_[sequence] = lot;
    }
    prices_.resize(problem.ranks + 1);
    for (int size = 1; size <= problem.ranks; ++size) {
      for (const Lot& lot : problem.lots) prices_[size].push_back(problem.find(lot, {1, size, 1}));
    }
  }

  /// Bag sizes that some sequence of the batch can run in, by Ulysses over all ranks of the bag.
  std::vector<int> usable_sizes() const {
    std::vector<int> sizes;
    for (int size = 1; size <= problem_.ranks; ++size) {
      const bool usable =
          std::any_of(prices_[size].begin(), prices_[size].end(), [](const Price* price) { return price != nullptr; });
      if (size == 1 || usable) sizes.push_back(size);
    }
    return sizes;
  }

  /// Routes the batch. A layout over fewer ranks than there are is repeated; sequences are dealt to the copies in turn.
  /// @param why  receives the reason when there is no result: a sequence was sent to a bag that it cannot run in
  /// @param below  gives up, without a reason, when the makespan reaches this
  std::optional<Trial> trial(const GroupLayout& layout, Microseconds below, std::string& why) {
    why.clear();
    const int replicas = problem_.ranks / layout.num_ranks();
    Trial result;
    result.layout = layout;
    result.spots.resize(problem_.num_sequences());
    for (int replica = 0; replica < replicas; ++replica) {
      const std::vector<RankGroup> bags = rank_groups(layout, replica * layout.num_ranks());
      const Routing routing = route(order(replica, replicas), layout);
      std::vector<Microseconds> load(bags.size());
      std::vector<Bytes> memory(bags.size());
      for (std::size_t i = 0; i < routing.bag_of.size(); ++i) {
        const auto sequence = static_cast<SequenceIndex>(i * replicas + replica);
        const std::int32_t bag = routing.bag_of[i];
        const Price* price = prices_[bags[bag].size][lot_of_[sequence]];
        if (price == nullptr) {
          why = text(layout) + ": sequence " + in_quotes(problem_.batch.sequences[sequence].id) +
                ", sent to a group of " + std::to_string(bags[bag].size) + " ranks, cannot run there: " +
                problem_.why_unavailable(problem_.lots[lot_of_[sequence]], {1, bags[bag].size, 1});
          return std::nullopt;
        }
        result.spots[sequence] = {price->config, bags[bag].first_rank};
        load[bag] += price->time;
        memory[bag] += price->memory;
        if (load[bag] >= below) return std::nullopt;
      }
      for (std::size_t bag = 0; bag < bags.size(); ++bag) {
        result.makespan = std::max(result.makespan, load[bag]);
        if (memory[bag] > result.memory) {
          result.memory = memory[bag];
          result.fullest_rank = bags[bag].first_rank;
        }
      }
    }
    return result;
  }

 private:
  const RoutingOrder& order(int replica, int replicas) {
    if (static_cast<int>(orders_.size()) != replicas) {
      orders_.clear();
      for (int r = 0; r < replicas; ++r) {
        std::vector<std::int64_t> lengths;
        for (SequenceIndex s = r; s < problem_.num_sequences(); s += replicas) {
          lengths.push_back(problem_.batch.tokens_of(s).value);
        }
        orders_.push_back(routing_order(std::move(lengths), width_, gamma_));
      }
    }
    return orders_[replica];
  }

  const BaselineProblem& problem_;
  int width_;
  double gamma_;
  std::vector<std::size_t> lot_of_;                // [sequences]
  std::vector<std::vector<const Price*>> prices_;  // [bag size][lots], of (1, size, 1); null where there is none
  std::vector<RoutingOrder> orders_;               // [replicas], for the number of replicas last asked for
};

class Knapformer final : public Baseline {
 public:
  std::string_view name() const override { return "knapformer"; }

 protected:
  Decision decide(const BaselineProblem& problem, const PlanOptions& options, const Deadline& deadline) const override {
    std::optional<GroupLayout> layout;
    if (!options.layout.empty()) {
      layout = parse_group_layout(options.layout, problem.ranks, where());
      if (problem.ranks % layout->num_ranks() != 0) {
        throw Error(Code::input, where(),
                    "layout '" + options.layout + "' covers " + std::to_string(layout->num_ranks()) +
                        " ranks, which do not divide the batch's " + std::to_string(problem.ranks));
      }
    }
    if (deadline.is_over()) return timed_out(deadline, "starting");
    Router router(problem);
    return layout ? fixed(router, problem, *layout) : best(router, problem, deadline);
  }

 private:
  static Decision accept(Trial trial) {
    Decision decision;
    decision.layout = text(trial.layout);
    decision.spots = std::move(trial.spots);
    return decision;
  }

  static Decision fixed(Router& router, const BaselineProblem& problem, const GroupLayout& layout) {
    for (const GroupCount& group : layout.groups) {
      const std::string why =
          why_illegal(problem.profile.catalog.model, Tokens{group.size}, {1, group.size, 1}, problem.ranks);
      if (!why.empty()) return no_placement("layout " + text(layout) + " is not legal: " + why);
    }
    std::string why;
    std::optional<Trial> trial = router.trial(layout, {std::numeric_limits<std::int64_t>::max()}, why);
    if (!trial) return no_placement("layout " + why);
    if (trial->memory > problem.cap) {
      return no_placement(over_memory(trial->fullest_rank, trial->memory, problem.cap) + " in layout " + text(layout));
    }
    return accept(std::move(*trial));
  }

  /// Every layout of the grammar: over all ranks, then those over fewer that the ranks repeat.
  static std::vector<GroupLayout> all_layouts(int ranks, const std::vector<int>& sizes) {
    std::vector<GroupLayout> layouts = group_layouts(ranks, sizes, kMostLayouts).layouts;
    for (int copies = 2; copies <= ranks && layouts.size() < kMostLayouts; ++copies) {
      if (ranks % copies != 0) continue;
      const LayoutList fewer = group_layouts(ranks / copies, sizes, kMostLayouts - layouts.size());
      layouts.insert(layouts.end(), fewer.layouts.begin(), fewer.layouts.end());
    }
    return layouts;
  }

  static Decision best(Router& router, const BaselineProblem& problem, const Deadline& deadline) {
    const std::vector<GroupLayout> layouts = all_layouts(problem.ranks, router.usable_sizes());
    std::optional<Trial> best;
    std::optional<Trial> leanest;  // breaks the memory cap by least
    std::string why, first_why;
    for (const GroupLayout& layout : layouts) {
      if (deadline.is_over()) {
        if (best) break;
        return timed_out(deadline, "trying layouts");
      }
      const Microseconds below = best ? best->makespan : Microseconds{std::numeric_limits<std::int64_t>::max()};
      std::optional<Trial> trial = router.trial(layout, below, why);
      if (first_why.empty()) first_why = why;
      if (!trial) continue;
      if (trial->memory <= problem.cap) {
        best = std::move(trial);
      } else if (!leanest || trial->memory < leanest->memory) {
        leanest = std::move(trial);
      }
    }
    if (best) return accept(std::move(*best));
    const std::string all =
        "none of " + std::to_string(layouts.size()) + " layouts of " + std::to_string(problem.ranks) + " ranks fits";
    if (!leanest) return no_placement(all + "; the first: " + first_why);
    return no_placement(over_memory(leanest->fullest_rank, leanest->memory, problem.cap) + " in layout " +
                        text(leanest->layout) + ", the leanest: " + all);
  }
};

}  // namespace

std::unique_ptr<Planner> make_knapformer() { return std::make_unique<Knapformer>(); }

}  // namespace zellige
