// SPDX-License-Identifier: Apache-2.0
#include "plan/anchor_model.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "plan/wide.h"

namespace zellige {
namespace {

/// C(n, k), or the largest number when it does not fit.
std::int64_t binomial(int n, int k) {
  Wide value = 1;
  for (int i = 1; i <= k; ++i) {
    value = value * (n - k + i) / i;
    if (value > std::numeric_limits<std::int64_t>::max()) return std::numeric_limits<std::int64_t>::max();
  }
  return static_cast<std::int64_t>(value);
}

/// All sets of `degree` ranks in lexicographic order.  // B_{g,j}
std::vector<std::vector<Rank>> rank_sets(int ranks, int degree) {
  std::vector<std::vector<Rank>> sets;
  std::vector<Rank> set(degree);
  std::iota(set.begin(), set.end(), 0);
  while (true) {
    sets.push_back(set);
    int i = degree - 1;
    while (i >= 0 && set[i] == ranks - degree + i) --i;
    if (i < 0) return sets;
    ++set[i];
    for (int next = i + 1; next < degree; ++next) set[next] = set[next - 1] + 1;
  }
}

constexpr std::int64_t kMostVariables = 2'000'000;
/// Every rank of a set brings a term of its load and one of its memory.
constexpr std::int64_t kMostTerms = 40'000'000;

}  // namespace

std::string why_too_large(const Problem& problem, Form form) {
  Wide variables = 0;
  Wide terms = 0;
  for (const Group& group : problem.groups) {
    for (const Option& option : group.options) {
      const Wide sets = form == Form::rank_counts ? problem.ranks : binomial(problem.ranks, option.degree);
      const Wide added = form == Form::sequences ? sets * group.count() : sets;
      variables += added;
      terms += form == Form::rank_counts ? 2 * added : 2 * added * option.degree;
    }
  }
  if (variables <= kMostVariables && terms <= kMostTerms) return "";
  const auto in_words = [](Wide number) {
    constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();
    return number > kLargest ? "more than " + std::to_string(kLargest)
                             : std::to_string(static_cast<std::int64_t>(number));
  };
  const std::string what = form == Form::rank_counts ? "counts on ranks"
                           : form == Form::rank_sets ? "counts on rank sets (Eq. 5)"
                                                     : "choices of a sequence, configuration and rank set";
  return "written as " + what + " the model of " + std::to_string(problem.num_sequences()) + " sequences on " +
         std::to_string(problem.ranks) + " ranks has " + in_words(variables) + " variables in " + in_words(terms) +
         " terms; at most " + std::to_string(kMostVariables) + " and " + std::to_string(kMostTerms) + " are taken" +
         (form == Form::rank_counts ? "" : "; the ECF methods do not list rank sets");
}

AnchorModel::AnchorModel(const Problem& problem, Form form, const Round& round)
    : problem_(problem), form_(form), sand_(round.sand) {
  add_variables(round.load_most_us);
  add_choices();
  add_loads(round);
  add_memory();
  add_sand(round);
  add_splits(round);
}

void AnchorModel::add_variables(std::int64_t load_most_us) {
  if (form_ != Form::rank_counts) {
    sets_of_degree_.resize(problem_.ranks + 1);
    for (const Group& group : problem_.groups) {
      for (const Option& option : group.options) {
        auto& sets = sets_of_degree_[option.degree];
        if (sets.empty()) sets = rank_sets(problem_.ranks, option.degree);
      }
    }
  }
  for (std::size_t g = 0; g < problem_.groups.size(); ++g) {
    variables_.emplace_back(problem_.groups[g].options.size());
    for (std::size_t j = 0; j < problem_.groups[g].options.size(); ++j) {
      if (problem_.groups[g].options[j].load_us() > load_most_us) continue;  // no rank may take a piece of it
      if (form_ == Form::rank_counts) {
        add_counts(g, j);
      } else {
        add_sets(g, j);
      }
    }
  }
}

void AnchorModel::add_counts(std::size_t g, std::size_t j) {
  const std::int64_t n = problem_.groups[g].count();
  const Option& option = problem_.groups[g].options[j];
  OptionVariables& variables = variables_[g][j];
  variables.z = program_.add_variable(0, n);
  // An option that takes every rank adds the same to each: z says all.
  if (option.degree == problem_.ranks) return;
  std::vector<cp::Term> slots{{variables.z, -option.degree}};
  for (int r = 0; r < problem_.ranks; ++r) {
    variables.x.push_back(program_.add_variable(0, n));
    slots.push_back({variables.x.back(), 1});
  }
  program_.add_linear(slots, 0, 0);  // sum_r x = degree * z
  if (!option.is_split()) return;    // x <= z follows
  for (const cp::Variable x : variables.x) {
    const cp::Term at_most[] = {{x, 1}, {variables.z, -1}};
    program_.add_linear(at_most, cp::kNoLowerLimit, 0);
  }
}

void AnchorModel::add_sets(std::size_t g, std::size_t j) {
  const Group& group = problem_.groups[g];
  OptionVariables& variables = variables_[g][j];
  variables.sets = &sets_of_degree_[group.options[j].degree];
  const bool is_grouped = form_ == Form::rank_sets;
  if (is_grouped) variables.z = program_.add_variable(0, group.count());
  variables.on_set.resize(is_grouped ? 1 : group.members.size());
  for (auto& choices : variables.on_set) {
    choices.reserve(variables.sets->size());
    for (std::size_t set = 0; set < variables.sets->size(); ++set) {
      choices.push_back(program_.add_variable(0, is_grouped ? group.count() : 1));
    }
  }
  if (!is_grouped) return;
  std::vector<cp::Term> terms{{variables.z, -1}};  // Eq. 5: sum_B u = z
  for (const cp::Variable u : variables.on_set.front()) terms.push_back({u, 1});
  program_.add_linear(terms, 0, 0);
}

std::vector<cp::Term> AnchorModel::members_with(std::size_t g, std::size_t j) const {
  const OptionVariables& variables = variables_[g][j];
  if (variables.z >= 0) return {{variables.z, 1}};
  std::vector<cp::Term> terms;
  for (const auto& choices : variables.on_set) {
    for (const cp::Variable choice : choices) terms.push_back({choice, 1});
  }
  return terms;
}

void AnchorModel::add_choices() {
  for (std::size_t g = 0; g < problem_.groups.size(); ++g) {
    const Group& group = problem_.groups[g];
    if (form_ == Form::sequences) {  // Eq. 1: sum_c x_{s,c} = 1
      for (std::size_t member = 0; member < group.members.size(); ++member) {
        std::vector<cp::Term> terms;
        for (const OptionVariables& variables : variables_[g]) {
          if (variables.on_set.empty()) continue;
          for (const cp::Variable choice : variables.on_set[member]) terms.push_back({choice, 1});
        }
        program_.add_linear(terms, 1, 1);
      }
      continue;
    }
    std::vector<cp::Term> all;  // Eq. 5: sum_j z = n
    for (std::size_t j = 0; j < group.options.size(); ++j) {
      const auto terms = members_with(g, j);
      all.insert(all.end(), terms.begin(), terms.end());
    }
    program_.add_linear(all, group.count(), group.count());
  }
}

std::vector<cp::Term> AnchorModel::on_rank(Rank rank, std::int64_t Option::*weight, std::int64_t divisor) const {
  std::vector<cp::Term> terms;
  for (std::size_t g = 0; g < problem_.groups.size(); ++g) {
    for (std::size_t j = 0; j < problem_.groups[g].options.size(); ++j) {
      const OptionVariables& variables = variables_[g][j];
      const std::int64_t coefficient = problem_.groups[g].options[j].*weight / divisor;
      if (coefficient == 0) continue;
      if (form_ == Form::rank_counts && variables.z >= 0) {
        terms.push_back({variables.x.empty() ? variables.z : variables.x[rank], coefficient});
      }
      for (const auto& choices : variables.on_set) {
        for (std::size_t set = 0; set < choices.size(); ++set) {
          if (std::binary_search((*variables.sets)[set].begin(), (*variables.sets)[set].end(), rank)) {
            terms.push_back({choices[set], coefficient});
          }
        }
      }
    }
  }
  return terms;
}

void AnchorModel::add_loads(const Round& round) {
  const bool is_objective = round.objective == Round::Objective::load;
  if (is_objective) {
    load_ = program_.add_variable(round.load_least_us, round.load_most_us);
    const cp::Term objective[] = {{load_, 1}};
    program_.minimize(objective);
  }
  cp::Variable previous = -1;
  for (Rank r = 0; r < problem_.ranks; ++r) {
    if (std::vector<cp::Term> exchanges = on_rank(r, &Option::exchange_us, 1); !exchanges.empty()) {
      if (is_objective) exchanges.push_back({load_, -1});
      program_.add_linear(exchanges, cp::kNoLowerLimit, is_objective ? 0 : round.load_most_us);
    }
    std::vector<cp::Term> terms = on_rank(r, &Option::time_us, 1);
    if (round.order_ranks) {
      // Off by default: CP-SAT finds the symmetry itself, and on 16 and more ranks the order hides good placements.
      const cp::Variable load = program_.add_variable(0, round.load_most_us);
      std::vector<cp::Term> definition = terms;
      definition.push_back({load, -1});
      program_.add_linear(definition, 0, 0);
      const cp::Term falling[] = {{previous, 1}, {load, -1}};
      if (r > 0) program_.add_linear(falling, 0, cp::kNoUpperLimit);
      previous = load;
    }
    if (is_objective) {
      terms.push_back({load_, -1});
      program_.add_linear(terms, cp::kNoLowerLimit, 0);
    } else {
      program_.add_linear(terms, cp::kNoLowerLimit, round.load_most_us);
    }
  }
}

void AnchorModel::add_memory() {
  std::int64_t most = 0;     // that a rank can ever hold: no rank meets a sequence twice
  std::int64_t divisor = 0;  // of all needs
  for (std::size_t g = 0; g < problem_.groups.size(); ++g) {
    std::int64_t largest = 0;
    for (std::size_t j = 0; j < problem_.groups[g].options.size(); ++j) {
      const OptionVariables& variables = variables_[g][j];
      if (variables.z < 0 && variables.on_set.empty()) continue;
      largest = std::max(largest, problem_.groups[g].options[j].memory_bytes);
      divisor = std::gcd(divisor, problem_.groups[g].options[j].memory_bytes);
    }
    most += largest * problem_.groups[g].count();
  }
  if (most <= problem_.memory_cap_bytes) return;
  for (Rank r = 0; r < problem_.ranks; ++r) {
    // Sums are multiples of the divisor, so the cap may be rounded down to one: exact.
    program_.add_linear(on_rank(r, &Option::memory_bytes, divisor), cp::kNoLowerLimit,
                        problem_.memory_cap_bytes / divisor);
  }
}

std::vector<cp::Term> AnchorModel::on_all_ranks(std::int64_t Option::*weight) const {
  std::vector<cp::Term> terms;
  for (std::size_t g = 0; g < problem_.groups.size(); ++g) {
    for (std::size_t j = 0; j < problem_.groups[g].options.size(); ++j) {
      const Option& option = problem_.groups[g].options[j];
      if (option.*weight == 0) continue;
      for (const cp::Term& term : members_with(g, j)) {
        terms.push_back({term.variable, option.degree * (option.*weight)});
      }
    }
  }
  return terms;
}

void AnchorModel::add_sand(const Round& round) {
  if (round.sand.time_us > 0) {
    std::vector<cp::Term> terms = on_all_ranks(&Option::time_us);
    if (load_ >= 0) terms.push_back({load_, -std::int64_t{problem_.ranks}});
    const std::int64_t room = load_ >= 0 ? 0 : round.load_most_us * problem_.ranks;
    program_.add_linear(terms, cp::kNoLowerLimit, room - round.sand.time_us);
  }
  if (round.sand.memory_bytes > 0) {
    program_.add_linear(on_all_ranks(&Option::memory_bytes), cp::kNoLowerLimit,
                        problem_.memory_cap_bytes * problem_.ranks - round.sand.memory_bytes);
  }
}

void AnchorModel::add_splits(const Round& round) {
  if (round.objective != Round::Objective::splits) return;
  std::vector<cp::Term> terms;
  for (std::size_t g = 0; g < problem_.groups.size(); ++g) {
    for (std::size_t j = 0; j < problem_.groups[g].options.size(); ++j) {
      if (!problem_.groups[g].options[j].is_split()) continue;
      const auto added = members_with(g, j);
      terms.insert(terms.end(), added.begin(), added.end());
    }
  }
  program_.add_linear(terms, round.splits_least, round.splits_most);
  program_.minimize(terms);
}

void AnchorModel::hint(const CountSolution& start) {
  if (load_ >= 0) program_.hint(load_, sand_level(problem_, start, {sand_.time_us, 0}));
  const auto placed =
      form_ == Form::rank_counts ? std::vector<std::vector<MemberPlacement>>() : decode(problem_, start);
  for (std::size_t g = 0; g < problem_.groups.size(); ++g) {
    for (std::size_t j = 0; j < problem_.groups[g].options.size(); ++j) {
      const OptionVariables& variables = variables_[g][j];
      if (variables.z >= 0) program_.hint(variables.z, start.z[g][j]);
      for (std::size_t r = 0; r < variables.x.size(); ++r) program_.hint(variables.x[r], start.x[g][j][r]);
      if (variables.on_set.empty()) continue;
      std::vector<std::vector<std::int64_t>> on_set(variables.on_set.size(),
                                                    std::vector<std::int64_t>(variables.sets->size(), 0));
      for (std::size_t member = 0; member < placed[g].size(); ++member) {
        if (placed[g][member].option != static_cast<int>(j)) continue;
        const auto set = std::lower_bound(variables.sets->begin(), variables.sets->end(), placed[g][member].ranks);
        ++on_set[form_ == Form::sequences ? member : 0][set - variables.sets->begin()];
      }
      for (std::size_t row = 0; row < on_set.size(); ++row) {
        for (std::size_t set = 0; set < on_set[row].size(); ++set) {
          program_.hint(variables.on_set[row][set], on_set[row][set]);
        }
      }
    }
  }
}

CountSolution AnchorModel::read(std::span<const std::int64_t> values) const {
  CountSolution solution(problem_);
  for (std::size_t g = 0; g < problem_.groups.size(); ++g) {
    for (std::size_t j = 0; j < problem_.groups[g].options.size(); ++j) {
      const OptionVariables& variables = variables_[g][j];
      auto& z = solution.z[g][j];
      auto& x = solution.x[g][j];
      if (form_ == Form::rank_counts && variables.z >= 0) {
        z = values[variables.z];
        for (std::size_t r = 0; r < x.size(); ++r) x[r] = variables.x.empty() ? z : values[variables.x[r]];
      }
      for (const auto& choices : variables.on_set) {
        for (std::size_t set = 0; set < choices.size(); ++set) {
          const std::int64_t members = values[choices[set]];
          z += members;
          for (const Rank r : (*variables.sets)[set]) x[r] += members;
        }
      }
    }
  }
  return solution;
}

}  // namespace zellige
