// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/count_solution.h"
#include "plan/cp_model.h"
#include "plan/list_schedule.h"
#include "plan/option.h"

namespace zellige {

/// How a problem is written down for CP-SAT. All have the same optima (tests), so they differ in size only.
enum class Form {
  rank_counts,  ///< ECF, compact: x[g][j][r] members of group g with option j run on rank r; no rank set is listed
  rank_sets,    ///< ECF, Eq. 5 word for word: u[g][j][B] members of group g with option j run on rank set B
  sequences,    ///< without ECF: one Boolean for every sequence, configuration and rank set
};

/// Why a problem is too large to be written in a form, naming the number of variables; empty when it is not.
std::string why_too_large(const Problem& problem, Form form);

/// One of the two solves of Eq. 7.
struct Round {
  enum class Objective { load, splits } objective = Objective::load;
  std::int64_t load_least_us = 0;  ///< loads: proved lower bound of T
  std::int64_t load_most_us = 0;   ///< no load exceeds this
  std::int64_t splits_least = 0;   ///< splits: proved lower bound of K
  std::int64_t splits_most = 0;    ///< splits: K does not exceed this
  /// What all ranks together must hold besides, as load and as memory: N T >= sum of loads + sand, and the like for
  /// memory. With the least that fillers can add it makes T a lower bound of the makespan of the whole batch.
  Sand sand;
  bool order_ranks = false;  ///< L_0 >= L_1 >= ...: ranks are interchangeable, so no optimum is lost
};

/// Anchor Placement as an integer program, and how its solutions read.
class AnchorModel {
 public:
  AnchorModel(const Problem& problem, Form form, const Round& round);
  AnchorModel(const AnchorModel&) = delete;
  AnchorModel& operator=(const AnchorModel&) = delete;

  const cp::Model& program() const { return program_; }
  /// Makes a known placement the hint.
  void hint(const CountSolution& start);
  CountSolution read(std::span<const std::int64_t> values) const;

 private:
  struct OptionVariables {
    cp::Variable z = -1;                                   // rank_counts, rank_sets
    std::vector<cp::Variable> x;                           // rank_counts: [rank], empty when the option takes all ranks
    std::vector<std::vector<cp::Variable>> on_set;         // rank_sets: [0][set]; sequences: [member][set]
    const std::vector<std::vector<Rank>>* sets = nullptr;  // rank sets, in lexicographic order
  };

  void add_variables(std::int64_t load_most_us);
  void add_counts(std::size_t g, std::size_t j);
  void add_sets(std::size_t g, std::size_t j);
  /// Terms of sum over (g, j) of weight x (members of g with j that run on `rank`).
  std::vector<cp::Term> on_rank(Rank rank, std::int64_t Option::*weight, std::int64_t divisor) const;
  std::vector<cp::Term> members_with(std::size_t g, std::size_t j) const;
  void add_choices();
  void add_loads(const Round& round);
  void add_memory();
  /// Terms of sum over (g, j) of degree x weight x (members of g with j): what all ranks hold.
  std::vector<cp::Term> on_all_ranks(std::int64_t Option::*weight) const;
  void add_sand(const Round& round);
  void add_splits(const Round& round);

  const Problem& problem_;
  Form form_;
  Sand sand_;
  cp::Model program_;
  cp::Variable load_ = -1;                                      // T
  std::vector<std::vector<OptionVariables>> variables_;         // [group][option]
  std::vector<std::vector<std::vector<Rank>>> sets_of_degree_;  // [degree][set] -> ranks
};

}  // namespace zellige
