// SPDX-License-Identifier: Apache-2.0
// zellige compare: several methods on the same batch, side by side.
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "interrupt.h"
#include "numbers.h"
#include "planning.h"
#include "subcommands.h"
#include "table.h"
#include "zellige/check.h"
#include "zellige/report.h"

namespace zellige::app {
namespace {

struct Arguments {
  PlanningArguments planning;
  std::vector<std::string> methods{"zellige", "naive", "adaptiveload", "usp", "knapformer", "megatron"};
  std::string report;
  bool json = false;
};

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

void print_table(const std::vector<Plan>& plans, const Profile& profile) {
  Table table({"method", "status", "makespan", "over floor", "imbalance", "splits", "all-gather", "ulysses", "ring",
               "peak", "planned in"});
  for (const auto& plan : plans) {
    if (!plan.has_placement()) {
      table.add({plan.method, std::string(name(plan.status))});
      continue;
    }
    const Score s = score(plan.placement, profile);
    table.add({plan.method, std::string(name(plan.status)), seconds(s.makespan), percent(s.over_floor),
               fmt::format("{:.3f}", s.imbalance), std::to_string(s.split_count), gibibytes(s.moved.all_gather),
               gibibytes(s.moved.ulysses), gibibytes(s.moved.ring), gibibytes(s.peak), seconds(plan.solve_time)});
  }
  table.print();
  for (const auto& plan : plans) {
    if (!plan.has_placement()) fmt::print("{}: {}\n", plan.method, plan.reason);
  }
}

Code run(const Arguments& arguments) {
  for (const auto& method : arguments.methods)
    make_planner(method);  // a misspelt name is refused before anything is planned
  const Batch batch = read_batch(arguments.planning.batch);
  const Profile profile = load_profile(arguments.planning.profile, batch.catalog);
  std::vector<Plan> plans;
  {
    const Interrupt interrupt;
    for (const auto& method : arguments.methods) {
      plans.push_back(plan_or_reason(method, batch, profile, arguments.planning.resolved(), interrupt.token()));
    }
  }
  if (!arguments.report.empty()) {
    write_output(arguments.report,
                 html_page({fmt::format("{} methods on {} ranks", plans.size(), batch.ranks), plans, {}, ""}, profile));
  }
  if (arguments.json) {
    nlohmann::ordered_json json = {{"code", 0}, {"methods", nlohmann::ordered_json::array()}};
    for (const auto& plan : plans) {
      nlohmann::ordered_json row = {{"method", plan.method},
                                    {"solver", plan.solver},
                                    {"status", std::string(name(plan.status))},
                                    {"reason", plan.reason},
                                    {"solve_us", plan.solve_time.value}};
      if (plan.has_placement()) row["score"] = to_json(score(plan.placement, profile));
      json["methods"].push_back(std::move(row));
    }
    print_json(json);
  } else {
    fmt::print("{} on {}, times by the profile's prices (modelled)\n\n",
               plural(static_cast<std::int64_t>(batch.sequences.size()), "sequence"), plural(batch.ranks, "rank"));
    print_table(plans, profile);
  }
  return Code::ok;
}

}  // namespace

void add_compare(CLI::App& root, Run& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = root.add_subcommand("compare", "Plan one batch by several methods and show them side by side");
  arguments->planning.add_to(*command);
  command
      ->add_option("--methods", arguments->methods,
                   fmt::format("Separated by commas, of {}", fmt::join(planner_names(), ", ")))
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--report", arguments->report, "Where to write a page to look at (HTML)");
  command->add_flag("--json", arguments->json, "Print the table as JSON");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace zellige::app
