// SPDX-License-Identifier: Apache-2.0
// ECF exactness (section IV-C): the integer programs themselves, read back from the bytes that CP-SAT gets, have the
// same set of (loads, memory, K) in all three forms as the placements of single sequences listed one by one.
#include <gtest/gtest.h>

#include <functional>
#include <protozero/pbf_reader.hpp>
#include <set>

#include "brute_force.h"
#include "instance.h"
#include "plan/anchor_model.h"

namespace zellige {
namespace {

/// Bounds and linear rows of a CpModelProto (fields 2: variables, 3: constraints; LinearConstraintProto is field 12).
struct Program {
  struct Row {
    std::vector<std::int32_t> variables;
    std::vector<std::int64_t> coefficients;
    std::int64_t least = 0, most = 0;
  };
  std::vector<std::pair<std::int64_t, std::int64_t>> domains;
  std::vector<Row> rows;
};

std::vector<std::int64_t> numbers(protozero::pbf_reader& reader) {
  const auto range = reader.get_packed_int64();
  return {range.begin(), range.end()};
}

Program read_program(const std::string& bytes) {
  Program program;
  protozero::pbf_reader model(bytes);
  while (model.next()) {
    if (model.tag() == 2) {
      protozero::pbf_reader variable = model.get_message();
      while (variable.next()) {
        if (variable.tag() != 2) {
          variable.skip();
          continue;
        }
        const auto domain = numbers(variable);
        program.domains.emplace_back(domain.at(0), domain.at(1));
      }
    } else if (model.tag() == 3) {
      protozero::pbf_reader constraint = model.get_message();
      while (constraint.next(12)) {
        protozero::pbf_reader linear = constraint.get_message();
        Program::Row row;
        while (linear.next()) {
          if (linear.tag() == 1) {
            const auto range = linear.get_packed_int32();
            row.variables.assign(range.begin(), range.end());
          } else if (linear.tag() == 2) {
            row.coefficients = numbers(linear);
          } else if (linear.tag() == 3) {
            const auto domain = numbers(linear);
            row.least = domain.at(0);
            row.most = domain.at(1);
          } else {
            linear.skip();
          }
        }
        program.rows.push_back(row);
      }
    } else {
      model.skip();
    }
  }
  return program;
}

/// Visits every solution, variables in order (sums of these small programs fit 64 bits); a row is given up as soon as
/// the rest cannot bring it into its limits.
class Enumeration {
 public:
  Enumeration(const Program& program, const std::function<void(const std::vector<std::int64_t>&)>& visit)
      : program_(program), visit_(visit), values_(program.domains.size()), rows_of_(program.domains.size()) {
    for (std::size_t r = 0; r < program.rows.size(); ++r) {
      const Program::Row& row = program.rows[r];
      std::int64_t low = 0, high = 0;
      for (std::size_t t = 0; t < row.variables.size(); ++t) {
        const auto [from, to] = term(row.coefficients[t], program.domains[row.variables[t]]);
        low += from;
        high += to;
        rows_of_[row.variables[t]].push_back({r, row.coefficients[t]});
      }
      reach_.emplace_back(low, high);
    }
    visit_from(0);
  }

 private:
  static std::pair<std::int64_t, std::int64_t> term(std::int64_t coefficient,
                                                    std::pair<std::int64_t, std::int64_t> domain) {
    const std::int64_t a = coefficient * domain.first;
    const std::int64_t b = coefficient * domain.second;
    return {std::min(a, b), std::max(a, b)};
  }

  void visit_from(std::size_t variable) {
    if (variable == values_.size()) {
      visit_(values_);
      return;
    }
    const auto [least, most] = program_.domains[variable];
    for (std::int64_t value = least; value <= most; ++value) {
      values_[variable] = value;
      bool possible = true;
      for (const auto& [r, coefficient] : rows_of_[variable]) {
        const auto [from, to] = term(coefficient, {least, most});
        reach_[r].first += coefficient * value - from;
        reach_[r].second += coefficient * value - to;
        possible = possible && reach_[r].first <= program_.rows[r].most && reach_[r].second >= program_.rows[r].least;
      }
      if (possible) visit_from(variable + 1);
      for (const auto& [r, coefficient] : rows_of_[variable]) {
        const auto [from, to] = term(coefficient, {least, most});
        reach_[r].first -= coefficient * value - from;
        reach_[r].second -= coefficient * value - to;
      }
    }
  }

  const Program& program_;
  const std::function<void(const std::vector<std::int64_t>&)>& visit_;
  std::vector<std::int64_t> values_;
  std::vector<std::vector<std::pair<std::size_t, std::int64_t>>> rows_of_;  // [variable] -> row, coefficient
  std::vector<std::pair<std::int64_t, std::int64_t>> reach_;  // [row] least and largest sum still possible
};

using Outcomes = std::set<testing::Outcome>;

Outcomes outcomes_of(const Problem& problem, Form form, std::int64_t& solutions) {
  Round round;
  round.objective = Round::Objective::splits;  // no T: every placement within the limits is a solution
  round.load_most_us = 1'000'000;
  round.splits_most = problem.num_sequences();
  const AnchorModel model(problem, form, round);
  const Program program = read_program(model.program().encode());
  EXPECT_EQ(program.domains.size(), model.program().num_variables());
  EXPECT_EQ(program.rows.size(), model.program().num_constraints());
  Outcomes outcomes;
  Enumeration(program, [&](const std::vector<std::int64_t>& values) {
    ++solutions;
    const CountSolution solution = model.read(values);
    outcomes.insert({rank_loads(problem, solution), rank_memory(problem, solution),
                     static_cast<int>(num_split(problem, solution))});
  });
  return outcomes;
}

TEST(ExactCompactFormulation, AllFormsOfTheProgramHaveTheOutcomesOfSingleSequences) {
  std::size_t largest = 0;
  std::int64_t with = 0, on_sets = 0, without = 0;
  int bound_by_memory = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    testing::InstanceShape shape;
    shape.ranks = 2 + static_cast<int>(draw_below(engine, 3));
    shape.buckets = 1 + static_cast<int>(draw_below(engine, 2));
    shape.sequences = shape.ranks == 2 ? 4 : 3;
    shape.largest_degree = shape.ranks;
    shape.configurations_a_degree = shape.ranks == 4 ? 1 : 2;
    shape.memory_over_mean = 0.9 + draw_unit(engine);
    const testing::Instance instance = testing::random_instance(engine, shape);
    const Problem problem =
        make_problem(instance.batch, instance.profile, match_buckets(instance.batch, instance.profile),
                     std::vector<bool>(instance.profile.catalog.buckets.size(), true), Menu::all);
    Outcomes expected;
    std::int64_t placements = 0, unbound = 0;
    const std::vector<bool> all(instance.batch.sequences.size(), true);
    testing::for_each_placement(instance.batch, instance.profile, all, Menu::all, [&](const testing::Outcome& outcome) {
      ++placements;
      expected.insert(outcome);
    });
    testing::Instance roomy = instance;
    roomy.profile.memory_usable = roomy.profile.memory_usable * 100;
    testing::for_each_placement(roomy.batch, roomy.profile, all, Menu::all,
                                [&](const testing::Outcome&) { ++unbound; });
    bound_by_memory += placements < unbound;
    std::int64_t compact = 0, sets = 0, single = 0;
    EXPECT_EQ(outcomes_of(problem, Form::rank_counts, compact), expected) << "counts on ranks";
    EXPECT_EQ(outcomes_of(problem, Form::rank_sets, sets), expected) << "counts on rank sets, Eq. 5";
    EXPECT_EQ(outcomes_of(problem, Form::sequences, single), expected) << "without ECF, Eq. 1";
    EXPECT_EQ(single, placements) << "one Boolean an option: a solution is a placement";
    EXPECT_LE(compact, sets);
    EXPECT_LE(sets, single);
    largest = std::max(largest, expected.size());
    with += compact;
    on_sets += sets;
    without += single;
  }
  EXPECT_GT(largest, 100u);
  EXPECT_GT(bound_by_memory, 10);
  EXPECT_LT(2 * on_sets, without) << "ECF removes permutations of equal sequences";
  EXPECT_LT(with, on_sets) << "and counts on ranks those of equal rank counts";
}

/// Positive control: a program that lacks a row has other outcomes.
TEST(ExactCompactFormulation, AnOtherProgramWouldBeNoticed) {
  RandomEngine engine(1);
  testing::InstanceShape shape;
  shape.ranks = shape.largest_degree = 2;
  shape.buckets = 1;
  shape.sequences = 2;
  shape.memory_over_mean = 100;
  const testing::Instance instance = testing::random_instance(engine, shape);
  Problem problem = make_problem(instance.batch, instance.profile, match_buckets(instance.batch, instance.profile),
                                 std::vector<bool>(1, true), Menu::all);
  std::int64_t solutions = 0;
  const Outcomes right = outcomes_of(problem, Form::rank_counts, solutions);
  problem.groups[0].options.back().time_us += 1;
  EXPECT_NE(outcomes_of(problem, Form::rank_counts, solutions), right);
}

}  // namespace
}  // namespace zellige
