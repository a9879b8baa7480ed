// SPDX-License-Identifier: Apache-2.0
#include "plan/cp_model.h"

#include <algorithm>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "plan/wide.h"
#include "zellige/error.h"

namespace zellige::cp {
namespace {

// Field numbers of the messages of OR-Tools 9.15; cp_model_test.cpp reads our bytes with its own Python classes.
namespace model_field {
constexpr protozero::pbf_tag_type variables = 2, constraints = 3, objective = 4, solution_hint = 6;
}
namespace variable_field {
constexpr protozero::pbf_tag_type domain = 2;
}
namespace constraint_field {
constexpr protozero::pbf_tag_type linear = 12;
}
namespace linear_field {
constexpr protozero::pbf_tag_type vars = 1, coeffs = 2, domain = 3;
}
namespace objective_field {
constexpr protozero::pbf_tag_type vars = 1, scaling_factor = 3, coeffs = 4;
}
namespace hint_field {
constexpr protozero::pbf_tag_type vars = 1, values = 2;
}
namespace response_field {
constexpr protozero::pbf_tag_type status = 1, solution = 2, objective_value = 3, wall_time = 15,
                                  deterministic_time = 17, inner_objective_lower_bound = 29;
}
namespace parameter_field {
constexpr protozero::pbf_tag_type random_seed = 31, max_time_in_seconds = 36, max_deterministic_time = 67,
                                  catch_sigint_signal = 135, num_workers = 206;
}

void write_terms(protozero::pbf_writer& message, protozero::pbf_tag_type variables_tag,
                 protozero::pbf_tag_type values_tag, std::span<const Term> terms) {
  std::vector<std::int32_t> variables;
  std::vector<std::int64_t> values;
  variables.reserve(terms.size());
  values.reserve(terms.size());
  for (const Term& term : terms) {
    variables.push_back(term.variable);
    values.push_back(term.coefficient);
  }
  message.add_packed_int32(variables_tag, variables.begin(), variables.end());
  message.add_packed_int64(values_tag, values.begin(), values.end());
}

void write_domain(protozero::pbf_writer& message, protozero::pbf_tag_type tag, std::int64_t least, std::int64_t most) {
  const std::int64_t domain[] = {least, most};
  message.add_packed_int64(tag, std::begin(domain), std::end(domain));
}

}  // namespace

Variable Model::add_variable(std::int64_t least, std::int64_t most) {
  least_.push_back(least);
  most_.push_back(most);
  return static_cast<Variable>(least_.size() - 1);
}

void Model::add_linear(std::span<const Term> terms, std::int64_t least, std::int64_t most) {
  limits_.push_back({terms_.size(), least, most});
  terms_.insert(terms_.end(), terms.begin(), terms.end());
}

void Model::minimize(std::span<const Term> terms) { objective_.assign(terms.begin(), terms.end()); }

void Model::hint(Variable variable, std::int64_t value) { hint_.push_back({variable, value}); }

bool Model::is_in_range() const {
  const auto fits = [this](std::span<const Term> terms) {
    Wide reach = 0;
    for (const Term& term : terms) {
      const Wide coefficient = term.coefficient < 0 ? -static_cast<Wide>(term.coefficient) : term.coefficient;
      const Wide least = least_[term.variable] < 0 ? -static_cast<Wide>(least_[term.variable]) : 0;
      reach += coefficient * std::max<Wide>(least, most_[term.variable]);
      if (reach >= static_cast<Wide>(1) << 62) return false;
    }
    return true;
  };
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    const std::size_t end = i + 1 < limits_.size() ? limits_[i + 1].first_term : terms_.size();
    if (!fits(std::span(terms_).subspan(limits_[i].first_term, end - limits_[i].first_term))) return false;
  }
  return fits(objective_);
}

std::string Model::encode() const {
  std::string bytes;
  protozero::pbf_writer model(bytes);
  for (std::size_t i = 0; i < least_.size(); ++i) {
    protozero::pbf_writer variable(model, model_field::variables);
    write_domain(variable, variable_field::domain, least_[i], most_[i]);
  }
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    const std::size_t end = i + 1 < limits_.size() ? limits_[i + 1].first_term : terms_.size();
    protozero::pbf_writer constraint(model, model_field::constraints);
    protozero::pbf_writer linear(constraint, constraint_field::linear);
    write_terms(linear, linear_field::vars, linear_field::coeffs,
                std::span(terms_).subspan(limits_[i].first_term, end - limits_[i].first_term));
    write_domain(linear, linear_field::domain, limits_[i].least, limits_[i].most);
  }
  if (!objective_.empty()) {
    protozero::pbf_writer objective(model, model_field::objective);
    write_terms(objective, objective_field::vars, objective_field::coeffs, objective_);
    objective.add_double(objective_field::scaling_factor, 1.0);
  }
  if (!hint_.empty()) {
    protozero::pbf_writer hint_message(model, model_field::solution_hint);
    write_terms(hint_message, hint_field::vars, hint_field::values, hint_);
  }
  return bytes;
}

std::string Parameters::encode() const {
  std::string bytes;
  protozero::pbf_writer parameters(bytes);
  parameters.add_int32(parameter_field::random_seed, seed);
  if (wall_limit_s > 0) parameters.add_double(parameter_field::max_time_in_seconds, wall_limit_s);
  if (work_limit > 0) parameters.add_double(parameter_field::max_deterministic_time, work_limit);
  // A library leaves the signals of its host alone; who wants to stop a solve has a stop token.
  parameters.add_bool(parameter_field::catch_sigint_signal, false);
  parameters.add_int32(parameter_field::num_workers, workers);
  return bytes;
}

Response decode_response(std::string_view bytes) {
  Response response;
  try {
    protozero::pbf_reader message(bytes.data(), bytes.size());
    while (message.next()) {
      switch (message.tag()) {
        case response_field::status: response.outcome = static_cast<Outcome>(message.get_enum()); break;
        case response_field::solution: {
          const auto values = message.get_packed_int64();
          response.solution.assign(values.begin(), values.end());
          break;
        }
        case response_field::objective_value: response.objective = message.get_double(); break;
        case response_field::wall_time: response.wall_s = message.get_double(); break;
        case response_field::deterministic_time: response.work = message.get_double(); break;
        case response_field::inner_objective_lower_bound: response.bound = message.get_int64(); break;
        default: message.skip();
      }
    }
  } catch (const protozero::exception& error) {
    throw Error(Code::solver, "plan.cp_sat", std::string("CP-SAT's answer is no CpSolverResponse: ") + error.what());
  }
  return response;
}

}  // namespace zellige::cp
