// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "plan/baseline.h"
#include "plan/baselines.h"
#include "plan/cp_sat.h"
#include "plan/group_layout.h"
#include "plan/settings.h"
#include "zellige/error.h"
#include "zellige/text.h"

namespace zellige {
namespace {

/// Every possible group is a variable a bucket: more ranks make a program that takes gigabytes to write down.
constexpr int kMostRanks = 4096;

/// A group that the program may open: `size` ranks, Ulysses over all of them.
struct Slot {
  int size = 1;
  cp::Variable open = 0;
  std::vector<cp::Variable> take;    // [lots], sequences of each lot; kCannot where the group cannot run it
  std::vector<const Price*> prices;  // [lots]
};
constexpr cp::Variable kCannot = -1;

/// FlexSP's program: which groups to open so that their sizes sum to N, and how many sequences of each bucket each
/// group takes, so that the slowest group ends as early as possible and no rank runs out of memory.
struct GroupProgram {
  cp::Model model;
  std::vector<Slot> slots;  // by falling size
};

/// Longest step that could be needed: everything one after another, each in its dearest group.
std::int64_t time_horizon(const BaselineProblem& problem, const std::vector<Slot>& slots) {
  std::int64_t horizon = 0;
  for (std::size_t lot = 0; lot < problem.lots.size(); ++lot) {
    std::int64_t dearest = 0;
    for (const Slot& slot : slots) {
      if (slot.prices[lot] != nullptr) dearest = std::max(dearest, slot.prices[lot]->time.value);
    }
    horizon += dearest * problem.lots[lot].count();
  }
  return horizon;
}

/// Power-of-two sizes, as many slots of each as there is room for.
std::vector<Slot> make_slots(const BaselineProblem& problem) {
  std::vector<Slot> slots;
  for (int size = 1; size <= problem.ranks; size *= 2) {
    Slot slot;
    slot.size = size;
    for (const Lot& lot : problem.lots) slot.prices.push_back(problem.find(lot, {1, size, 1}));
    const bool useful =
        std::any_of(slot.prices.begin(), slot.prices.end(), [](auto* price) { return price != nullptr; });
    if (size == 1 || useful) slots.insert(slots.begin(), problem.ranks / size, slot);
  }
  return slots;
}

/// Names a sequence that no group can hold; empty when there is none.
std::string why_too_large(const BaselineProblem& problem) {
  for (const Lot& lot : problem.lots) {
    bool fits = false;
    for (int size = 1; size <= problem.ranks; size *= 2) {
      const Price* price = problem.find(lot, {1, size, 1});
      fits = fits || (price != nullptr && price->memory <= problem.cap);
    }
    if (fits) continue;
    return "OOM: sequence " + in_quotes(problem.batch.sequences[lot.members.front()].id) +
           " fits no Ulysses group of a power of two of ranks under the memory cap of " +
           std::to_string(problem.cap.value) + " bytes a rank";
  }
  return {};
}

GroupProgram make_program(const BaselineProblem& problem) {
  GroupProgram program;
  cp::Model& model = program.model;
  program.slots = make_slots(problem);
  const cp::Variable makespan = model.add_variable(0, time_horizon(problem, program.slots));
  std::vector<cp::Term> sizes;
  std::vector<std::vector<cp::Term>> takers(problem.lots.size());
  for (Slot& slot : program.slots) {
    slot.open = model.add_variable(0, 1);
    sizes.push_back({slot.open, slot.size});
    std::vector<cp::Term> time, memory;
    for (std::size_t lot = 0; lot < problem.lots.size(); ++lot) {
      const Price* price = slot.prices[lot];
      slot.take.push_back(kCannot);
      if (price == nullptr || price->memory > problem.cap) continue;
      const std::int64_t room =
          price->memory.value > 0 ? problem.cap.value / price->memory.value : std::numeric_limits<std::int64_t>::max();
      const std::int64_t most = std::min(problem.lots[lot].count(), room);
      const cp::Variable take = model.add_variable(0, most);
      slot.take.back() = take;
      takers[lot].push_back({take, 1});
      time.push_back({take, price->time.value});
      memory.push_back({take, price->memory.value});
      // Only an open group takes anything.
      const std::vector<cp::Term> only_open = {{take, 1}, {slot.open, -most}};
      model.add_linear(only_open, cp::kNoLowerLimit, 0);
    }
    time.push_back({makespan, -1});
    model.add_linear(time, cp::kNoLowerLimit, 0);
    if (!memory.empty()) model.add_linear(memory, cp::kNoLowerLimit, problem.cap.value);
  }
  model.add_linear(sizes, problem.ranks, problem.ranks);
  for (std::size_t lot = 0; lot < problem.lots.size(); ++lot) {
    model.add_linear(takers[lot], problem.lots[lot].count(), problem.lots[lot].count());
  }
  // Groups of one size are interchangeable: open the first ones.
  for (std::size_t i = 1; i < program.slots.size(); ++i) {
    if (program.slots[i].size != program.slots[i - 1].size) continue;
    const std::vector<cp::Term> first_ones = {{program.slots[i].open, 1}, {program.slots[i - 1].open, -1}};
    model.add_linear(first_ones, cp::kNoLowerLimit, 0);
  }
  const std::vector<cp::Term> objective = {{makespan, 1}};
  model.minimize(objective);
  return program;
}

/// Lays the open groups out rank by rank, smallest first like every layout here, and hands each lot's sequences out in
/// batch order.
Decision decode(const BaselineProblem& problem, const GroupProgram& program,
                const std::vector<std::int64_t>& solution) {
  Decision decision;
  decision.spots.resize(problem.num_sequences());
  std::vector<std::size_t> next(problem.lots.size());
  GroupLayout layout;
  Rank first_rank = 0;
  for (auto slot = program.slots.rbegin(); slot != program.slots.rend(); ++slot) {
    if (solution[slot->open] == 0) continue;
    if (layout.groups.empty() || layout.groups.back().size != slot->size) layout.groups.push_back({slot->size, 0});
    ++layout.groups.back().count;
    for (std::size_t lot = 0; lot < problem.lots.size(); ++lot) {
      const std::int64_t taken = slot->take[lot] == kCannot ? 0 : solution[slot->take[lot]];
      for (std::int64_t i = 0; i < taken; ++i) {
        decision.spots[problem.lots[lot].members[next[lot]++]] = {slot->prices[lot]->config, first_rank};
      }
    }
    first_rank += slot->size;
  }
  decision.layout = text(layout);
  return decision;
}

class Flexsp final : public Baseline {
 public:
  std::string_view name() const override { return "flexsp"; }

 protected:
  Decision decide(const BaselineProblem& problem, const PlanOptions& options, const Deadline& deadline) const override {
    refuse_layout(options);
    if (problem.ranks > kMostRanks) {
      return no_placement("this method takes at most " + std::to_string(kMostRanks) + " ranks; the batch has " +
                          std::to_string(problem.ranks));
    }
    std::string why_not;
    const std::shared_ptr<const cp::Solver> solver = cp::Solver::find(options.ortools, why_not);
    if (solver == nullptr) throw Error(Code::solver, where(), "this method needs OR-Tools: " + why_not);
    if (deadline.is_over()) return timed_out(deadline, "starting");
    const std::string too_large = why_too_large(problem);
    if (!too_large.empty()) return no_placement(too_large);
    const GroupProgram program = make_program(problem);
    if (!program.model.is_in_range()) {
      throw Error(Code::input, where(), "times or memory needs of this batch add up beyond what CP-SAT can hold");
    }
    const cp::Response response = solver->solve(program.model, cp_parameters(options, deadline, 1.0), deadline.stop());
    if (response.has_solution()) return decode(problem, program, response.solution);
    if (response.outcome == cp::Outcome::infeasible) {
      return no_placement("OOM: no set of disjoint Ulysses groups of power-of-two sizes over " +
                          std::to_string(problem.ranks) + " ranks holds the batch under the memory cap of " +
                          std::to_string(problem.cap.value) + " bytes a rank (proved by CP-SAT)");
    }
    if (deadline.is_over()) return timed_out(deadline, "CP-SAT was looking for groups");
    Decision decision =
        no_placement("CP-SAT found no groups within its work limit of " + std::to_string(options.work_limit));
    decision.timed_out = true;
    return decision;
  }
};

}  // namespace

std::unique_ptr<Planner> make_flexsp() { return std::make_unique<Flexsp>(); }

}  // namespace zellige
