// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zellige::cp {

/// Position of a variable in its model.
using Variable = std::int32_t;

/// coefficient x variable, a summand of a linear expression.
struct Term {
  Variable variable = 0;
  std::int64_t coefficient = 1;
};

inline constexpr std::int64_t kNoLowerLimit = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kNoUpperLimit = std::numeric_limits<std::int64_t>::max();

/// An integer program in the form that CP-SAT takes: bounded integer variables, linear constraints, a linear objective
/// to minimise, a hint. `encode` writes it as the bytes of a CpModelProto.
class Model {
 public:
  Variable add_variable(std::int64_t least, std::int64_t most);
  /// least <= sum of terms <= most. A variable may occur once only.
  void add_linear(std::span<const Term> terms, std::int64_t least, std::int64_t most);
  void minimize(std::span<const Term> terms);
  /// A value to try first; hints may be partial and need not be right.
  void hint(Variable variable, std::int64_t value);

  std::size_t num_variables() const { return least_.size(); }
  std::size_t num_constraints() const { return limits_.size(); }
  std::size_t num_terms() const { return terms_.size(); }
  /// Whether every expression stays within 62 bits for all values of its variables, as CP-SAT demands.
  bool is_in_range() const;
  std::string encode() const;

 private:
  struct Limits {
    std::size_t first_term = 0;
    std::int64_t least = 0, most = 0;
  };
  std::vector<std::int64_t> least_, most_;
  std::vector<Limits> limits_;  // terms of constraint i: from limits_[i].first_term to the next one's
  std::vector<Term> terms_;
  std::vector<Term> objective_;
  std::vector<Term> hint_;  // coefficient is the value
};

/// What a solve may spend, and how. Encoded as SatParameters.
struct Parameters {
  double wall_limit_s = 0;  ///< 0: none
  double work_limit = 0;    ///< CP-SAT's deterministic time; 0: none
  int workers = 1;
  std::int32_t seed = 0;  ///< >= 0

  std::string encode() const;
};

/// CpSolverStatus.
enum class Outcome { unknown = 0, invalid = 1, feasible = 2, infeasible = 3, optimal = 4 };

/// What came back.
struct Response {
  Outcome outcome = Outcome::unknown;
  std::vector<std::int64_t> solution;  ///< a value for every variable; empty without a solution
  double objective = 0;                ///< of the solution
  std::int64_t bound = kNoLowerLimit;  ///< proved lower bound of the objective (integer coefficients, no offset)
  double wall_s = 0;
  double work = 0;  ///< deterministic time spent

  bool has_solution() const { return outcome == Outcome::feasible || outcome == Outcome::optimal; }
};

/// Reads the bytes of a CpSolverResponse. Errors: Code::solver when they are none.
Response decode_response(std::string_view bytes);

}  // namespace zellige::cp
