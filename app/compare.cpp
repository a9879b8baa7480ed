// SPDX-License-Identifier: Apache-2.0
// zellige compare: several methods on the same batch, side by side.
#include <algorithm>
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "interrupt.h"
#include "methods.h"
#include "numbers.h"
#include "option_values.h"
#include "outputs.h"
#include "planning.h"
#include "subcommands.h"
#include "zellige/report.h"

namespace zellige::app {
namespace {

struct Arguments {
  PlanningArguments planning;
  std::vector<std::string> methods = default_methods();
  std::string report;
  bool json = false;
};

// 0 when any method has a plan; else 4 when time ran out for all of them, or 3.
Code code_of_all(const std::vector<Plan>& plans) {
  if (std::any_of(plans.begin(), plans.end(), [](const Plan& plan) { return plan.has_placement(); })) return Code::ok;
  const bool timed_out =
      std::all_of(plans.begin(), plans.end(), [](const Plan& plan) { return plan.status == PlanStatus::timeout; });
  return timed_out ? Code::timeout : Code::infeasible;
}

Code run(const Arguments& arguments) {
  const std::vector<NamedFile> outputs = {{"--report", arguments.report}};
  check_outputs("compare", {{"BATCH", arguments.planning.batch}, {"--profile", arguments.planning.profile}}, outputs,
                arguments.json);
  check_methods(arguments.methods);
  const Batch batch = read_batch(arguments.planning.batch);
  const Profile profile = load_profile(arguments.planning.profile, batch);
  std::vector<Plan> plans;
  {
    const Interrupt interrupt;
    plans = plan_by_methods(arguments.methods, batch, profile, arguments.planning.resolved(), interrupt.token());
  }
  if (!arguments.report.empty()) {
    write_output(arguments.report,
                 html_page({fmt::format("{} on {}", plural(static_cast<std::int64_t>(plans.size()), "method"),
                                        plural(batch.ranks, "rank")),
                            plans,
                            {},
                            ""},
                           profile));
  }
  const Code code = code_of_all(plans);
  if (takes_stdout(outputs)) return code;
  if (arguments.json) {
    nlohmann::ordered_json json = {{"code", static_cast<int>(code)}, {"methods", nlohmann::ordered_json::array()}};
    for (const auto& plan : plans) {
      nlohmann::ordered_json row = {{"method", plan.method},
                                    {"solver", plan.solver},
                                    {"status", std::string(name(plan.status))},
                                    {"reason", plan.reason},
                                    {"solve_us", plan.solve_time.value}};
      if (plan.has_placement()) row["score"] = to_json(score(plan.placement, profile, plan.load_model));
      json["methods"].push_back(std::move(row));
    }
    print_json(json);
  } else {
    fmt::print("{} on {}, times by the profile's prices (modelled){}\n\n",
               plural(static_cast<std::int64_t>(batch.sequences.size()), "sequence"), plural(batch.ranks, "rank"),
               arguments.planning.load_model == "overlapped"
                   ? "; overlapped loads: zellige and joint plan by them, the baselines by their own policies"
                   : "");
    print_methods(plans, profile);
  }
  return code;
}

}  // namespace

void add_compare(CLI::App& root, Run& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = root.add_subcommand("compare", "Plan one batch by several methods and show them side by side");
  arguments->planning.add_to(*command);
  command
      ->add_option("--methods", arguments->methods,
                   fmt::format("Separated by commas, each with a layout after a colon or without, of {}",
                               fmt::join(planner_names(), ", ")))
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--report", arguments->report, "Where to write a page to look at (HTML); - is stdout")
      ->check(file_name());
  command->add_flag("--json", arguments->json, "Print the table as JSON");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace zellige::app
