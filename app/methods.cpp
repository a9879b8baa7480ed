// SPDX-License-Identifier: Apache-2.0
#include "methods.h"

#include <algorithm>

#include <fmt/core.h>

#include "numbers.h"
#include "planning.h"
#include "table.h"
#include "zellige/check.h"
#include "zellige/error.h"
#include "zellige/score.h"
#include "zellige/text.h"

namespace zellige::app {
namespace {

// A method that can't run here (its solver is missing, say) is a row with a reason, not the end of the comparison.
Plan plan_or_reason(const std::string& method, const Batch& batch, const Profile& profile, const PlanOptions& options,
                    std::stop_token stop) {
  try {
    Plan plan = make_planner(method)->plan(batch, profile, options, stop);
    if (const auto findings = check(plan, batch, profile); !findings.empty()) {
      throw Error(Code::internal, "compare",
                  fmt::format("the checker refuses the plan of '{}': {}", method, findings.front().message));
    }
    return plan;
  } catch (const Error& error) {
    if (error.code() != Code::solver) throw;
    Plan plan;
    plan.method = method;
    plan.status = PlanStatus::unknown;
    plan.reason = error.what();
    return plan;
  }
}

}  // namespace

std::vector<std::string> default_methods() {
  return {"zellige", "two-stage", "naive", "adaptiveload", "usp", "knapformer", "megatron"};
}

std::string method_name(const std::string& method) { return method.substr(0, method.find(':')); }

void refuse_unused_layout(const std::string& method, const std::string& layout) {
  if (layout.empty() || takes_layout(method)) return;
  std::vector<std::string> takers;
  for (const auto& name : planner_names()) {
    if (takes_layout(name)) takers.push_back(name);
  }
  throw Error(Code::input, "layout",
              fmt::format("method {} takes no layout, and {} is given; those that do: {}", in_quotes(method),
                          in_quotes(layout), joined(takers)));
}

void check_methods(const std::vector<std::string>& methods) {
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const std::string& method = methods[i];
    make_planner(method_name(method));
    if (const auto colon = method.find(':'); colon != std::string::npos) {
      if (colon + 1 == method.size()) {
        throw Error(Code::input, "methods",
                    fmt::format("{} has no layout behind its colon; leave the colon out", in_quotes(method)));
      }
      refuse_unused_layout(method_name(method), method.substr(colon + 1));
    }
    if (std::find(methods.begin(), methods.begin() + static_cast<std::ptrdiff_t>(i), method) !=
        methods.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw Error(Code::input, "methods", fmt::format("{} comes twice", in_quotes(method)));
    }
  }
}

std::vector<Plan> plan_by_methods(const std::vector<std::string>& methods, const Batch& batch, const Profile& profile,
                                  const PlanOptions& options, std::stop_token stop) {
  check_methods(methods);
  std::vector<Plan> plans;
  for (const auto& method : methods) {
    PlanOptions own = options;
    if (const auto colon = method.find(':'); colon != std::string::npos) own.layout = method.substr(colon + 1);
    plans.push_back(plan_or_reason(method_name(method), batch, profile, own, stop));
  }
  return plans;
}

void print_methods(const std::vector<Plan>& plans, const Profile& profile) {
  Table table({"method", "status", "makespan", "over floor", "imbalance", "splits", "all-gather", "ulysses", "ring",
               "peak", "planned in"});
  for (const auto& plan : plans) {
    if (!plan.has_placement()) {
      table.add({plan.method, std::string(name(plan.status))});
      continue;
    }
    const Score s = score(plan.placement, profile, plan.load_model);
    table.add({plan.method, std::string(name(plan.status)), seconds(s.makespan), percent(over_floor(plan)),
               fmt::format("{:.3f}", s.imbalance), std::to_string(s.split_count), gibibytes(s.moved.all_gather),
               gibibytes(s.moved.ulysses), gibibytes(s.moved.ring), gibibytes(s.peak), seconds(plan.solve_time)});
  }
  table.print();
  for (const auto& plan : plans) {
    if (!plan.has_placement()) fmt::print("{}: {}\n", printable(plan.method), printable(plan.reason));
  }
}

}  // namespace zellige::app
