// SPDX-License-Identifier: Apache-2.0
#include "plan/cp_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "zellige/error.h"

namespace zellige::cp {
namespace {

using Json = nlohmann::json;

std::string hex(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

/// Runs a Python program with OR-Tools' own message classes, one argument, and returns what it printed.
std::string run_python(const std::string& program, const std::string& argument) {
  const std::string command = std::string("'") + ZELLIGE_PYTHON + "' -c '" + program + "' '" + argument + "' 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  char buffer[4096];
  while (const std::size_t length = fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, length);
  const int status = pclose(pipe);
  EXPECT_EQ(status, 0) << output;
  return output;
}

bool has_message_classes() {
  return std::system(
             (std::string("'") + ZELLIGE_PYTHON + "' -c 'import ortools.sat.cp_model_pb2' > /dev/null 2>&1").c_str()) ==
         0;
}

constexpr const char* kReadModel = R"(
import json, sys
from ortools.sat import cp_model_pb2
model = cp_model_pb2.CpModelProto()
model.MergeFromString(bytes.fromhex(sys.argv[1]))
def fields(message): return sorted(field.name for field, value in message.ListFields())
print(json.dumps({
    "fields": fields(model),
    "variables": [list(v.domain) for v in model.variables],
    "constraints": [{"fields": fields(c), "vars": list(c.linear.vars), "coeffs": list(c.linear.coeffs),
                     "domain": list(c.linear.domain)} for c in model.constraints],
    "objective": {"fields": fields(model.objective), "vars": list(model.objective.vars),
                  "coeffs": list(model.objective.coeffs), "scaling": model.objective.scaling_factor,
                  "offset": model.objective.offset},
    "hint": {"vars": list(model.solution_hint.vars), "values": list(model.solution_hint.values)},
}))
)";

TEST(CpModel, IsReadFieldByFieldByOrToolsOwnClasses) {
  if (!has_message_classes()) GTEST_SKIP() << "OR-Tools' Python package is not in " ZELLIGE_PYTHON;
  Model model;
  const Variable a = model.add_variable(0, 7);
  const Variable b = model.add_variable(-5'000'000'000, 9'000'000'000'000);
  const Variable c = model.add_variable(3, 3);
  const Term first[] = {{a, 2}, {b, -3'000'000'000}};
  const Term second[] = {{c, 1}};
  model.add_linear(first, kNoLowerLimit, 12);
  model.add_linear(second, -4, kNoUpperLimit);
  const Term objective[] = {{b, 1}, {a, -6}};
  model.minimize(objective);
  model.hint(a, 5);
  model.hint(b, -1);
  const Json read = Json::parse(run_python(kReadModel, hex(model.encode())));
  EXPECT_EQ(read["fields"], (Json{"constraints", "objective", "solution_hint", "variables"}));
  EXPECT_EQ(read["variables"], (Json{{0, 7}, {-5'000'000'000, 9'000'000'000'000}, {3, 3}}));
  ASSERT_EQ(read["constraints"].size(), 2u);
  EXPECT_EQ(read["constraints"][0], (Json{{"fields", {"linear"}},
                                          {"vars", {0, 1}},
                                          {"coeffs", {2, -3'000'000'000}},
                                          {"domain", {std::numeric_limits<std::int64_t>::min(), 12}}}));
  EXPECT_EQ(read["constraints"][1], (Json{{"fields", {"linear"}},
                                          {"vars", {2}},
                                          {"coeffs", {1}},
                                          {"domain", {-4, std::numeric_limits<std::int64_t>::max()}}}));
  EXPECT_EQ(read["objective"], (Json{{"fields", {"coeffs", "scaling_factor", "vars"}},
                                     {"vars", {1, 0}},
                                     {"coeffs", {1, -6}},
                                     {"scaling", 1.0},
                                     {"offset", 0.0}}));
  EXPECT_EQ(read["hint"], (Json{{"vars", {0, 1}}, {"values", {5, -1}}}));
}

TEST(CpModel, RandomModelsAreReadAsTheyWereMade) {
  if (!has_message_classes()) GTEST_SKIP() << "OR-Tools' Python package is not in " ZELLIGE_PYTHON;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    const auto number = [&] {
      return static_cast<std::int64_t>(engine() >> draw_below(engine, 64)) * (draw_below(engine, 2) ? 1 : -1);
    };
    Model model;
    Json variables = Json::array(), constraints = Json::array();
    for (int i = 0; i < 40; ++i) {
      std::int64_t low = number(), high = number();
      if (low > high) std::swap(low, high);
      model.add_variable(low, high);
      variables.push_back({low, high});
    }
    for (int i = 0; i < 30; ++i) {
      std::vector<Term> terms;
      Json vars = Json::array(), coeffs = Json::array();
      for (Variable v = 0; v < 40; ++v) {
        if (draw_below(engine, 4) != 0) continue;
        terms.push_back({v, number()});
        vars.push_back(v);
        coeffs.push_back(terms.back().coefficient);
      }
      const std::int64_t least = number(), most = number();
      model.add_linear(terms, least, most);
      constraints.push_back({{"fields", {"linear"}}, {"vars", vars}, {"coeffs", coeffs}, {"domain", {least, most}}});
    }
    const Json read = Json::parse(run_python(kReadModel, hex(model.encode())));
    EXPECT_EQ(read["fields"], (Json{"constraints", "variables"}));
    EXPECT_EQ(read["variables"], variables);
    EXPECT_EQ(read["constraints"], constraints);
  }
}

constexpr const char* kReadParameters = R"(
import json, sys
from ortools.sat import sat_parameters_pb2
p = sat_parameters_pb2.SatParameters()
p.MergeFromString(bytes.fromhex(sys.argv[1]))
print(json.dumps({field.name: value for field, value in p.ListFields()}))
)";

TEST(CpParameters, AreReadByOrToolsOwnClasses) {
  if (!has_message_classes()) GTEST_SKIP() << "OR-Tools' Python package is not in " ZELLIGE_PYTHON;
  Parameters parameters;
  parameters.wall_limit_s = 2.5;
  parameters.workers = 3;
  parameters.seed = 77;
  EXPECT_EQ(
      Json::parse(run_python(kReadParameters, hex(parameters.encode()))),
      (Json{{"max_time_in_seconds", 2.5}, {"num_workers", 3}, {"random_seed", 77}, {"catch_sigint_signal", false}}));
  parameters.wall_limit_s = 0;
  parameters.work_limit = 0.125;
  EXPECT_EQ(
      Json::parse(run_python(kReadParameters, hex(parameters.encode()))),
      (Json{
          {"max_deterministic_time", 0.125}, {"num_workers", 3}, {"random_seed", 77}, {"catch_sigint_signal", false}}));
}

constexpr const char* kWriteResponse = R"(
from ortools.sat import cp_model_pb2
r = cp_model_pb2.CpSolverResponse()
r.status = cp_model_pb2.FEASIBLE
r.solution.extend([3, -4, 0, 5000000000])
r.objective_value = 12.5
r.best_objective_bound = 11.5
r.inner_objective_lower_bound = -7
r.wall_time = 0.25
r.deterministic_time = 0.75
r.num_conflicts = 99
r.solution_info = "anything"
r.additional_solutions.add().values.extend([1, 2])
print(r.SerializeToString().hex(), end="")
)";

TEST(CpResponse, OfOrToolsOwnClassesIsRead) {
  if (!has_message_classes()) GTEST_SKIP() << "OR-Tools' Python package is not in " ZELLIGE_PYTHON;
  const std::string text = run_python(kWriteResponse, "");
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  const Response response = decode_response(bytes);
  EXPECT_EQ(response.outcome, Outcome::feasible);
  EXPECT_EQ(response.solution, (std::vector<std::int64_t>{3, -4, 0, 5'000'000'000}));
  EXPECT_EQ(response.objective, 12.5);
  EXPECT_EQ(response.bound, -7);
  EXPECT_EQ(response.wall_s, 0.25);
  EXPECT_EQ(response.work, 0.75);
  EXPECT_TRUE(response.has_solution());
}

TEST(CpResponse, ThatIsCutOffIsRefused) {
  try {
    decode_response(std::string("\x12\x7f\x01", 3));  // solution: 127 bytes announced, 1 there
    FAIL() << "cut bytes were read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::solver);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("CpSolverResponse"));
  }
  EXPECT_EQ(decode_response("").outcome, Outcome::unknown);
}

TEST(CpModel, KnowsWhenSumsLeaveTheSolversRange) {
  Model model;
  const Variable a = model.add_variable(0, std::int64_t{1} << 40);
  const Term small[] = {{a, std::int64_t{1} << 20}};
  model.add_linear(small, 0, 1);
  EXPECT_TRUE(model.is_in_range());
  const Term large[] = {{a, -(std::int64_t{1} << 22)}};
  model.add_linear(large, kNoLowerLimit, 1);
  EXPECT_FALSE(model.is_in_range());
}

}  // namespace
}  // namespace zellige::cp
