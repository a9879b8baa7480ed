// SPDX-License-Identifier: Apache-2.0
// zellige plan: makes a plan, checks it, and writes it.
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "interrupt.h"
#include "methods.h"
#include "numbers.h"
#include "option_values.h"
#include "outputs.h"
#include "planning.h"
#include "rank_table.h"
#include "subcommands.h"
#include "zellige/check.h"
#include "zellige/report.h"

namespace zellige::app {
namespace {

struct Arguments {
  PlanningArguments planning;
  std::string method = "zellige";
  std::string output;
  std::string report;
  bool all_ranks = false;
  bool json = false;
};

Code run(const Arguments& arguments) {
  const std::vector<NamedFile> outputs = {{"-o", arguments.output}, {"--report", arguments.report}};
  check_outputs("plan", {{"BATCH", arguments.planning.batch}, {"--profile", arguments.planning.profile}}, outputs,
                arguments.json);
  const auto planner = make_planner(arguments.method);
  refuse_unused_layout(arguments.method, arguments.planning.options.layout);
  const Batch batch = read_batch(arguments.planning.batch);
  const Profile profile = load_profile(arguments.planning.profile, batch);
  Plan plan;
  {
    const Interrupt interrupt;
    plan = planner->plan(batch, profile, arguments.planning.resolved(), interrupt.token());
  }
  // A plan that we would refuse to run is a bug of ours, not something to hand out.
  if (const auto findings = check(plan, batch, profile); !findings.empty()) {
    throw Error(Code::internal, "plan",
                fmt::format("the checker refuses the plan of '{}': {}", plan.method, findings.front().message));
  }
  if (!arguments.output.empty()) write_output(arguments.output, plan_json(plan));
  if (!arguments.report.empty()) {
    write_output(
        arguments.report,
        html_page({fmt::format("{} on {}", plan.method, plural(batch.ranks, "rank")), {plan}, {}, ""}, profile));
  }
  if (takes_stdout(outputs)) return code_of(plan);
  if (arguments.json) {
    nlohmann::ordered_json json = {{"code", static_cast<int>(code_of(plan))},
                                   {"plan", nlohmann::ordered_json::parse(plan_json(plan))}};
    if (plan.has_placement()) json["score"] = to_json(score(plan.placement, profile, plan.load_model));
    print_json(json);
    return code_of(plan);
  }
  fmt::print("{}\n", headline(plan));
  if (plan.has_placement()) {
    const int most = arguments.all_ranks ? kMostInt : kRanksShown;
    print_ranks(score(plan.placement, profile, plan.load_model), profile, most);
    fmt::print("\n{}", text_picture(plan, 100, most));
  }
  return code_of(plan);
}

}  // namespace

void add_plan(CLI::App& root, Run& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      root.add_subcommand("plan", "Decide how every sequence of a batch is split and which ranks share it");
  arguments->planning.add_to(*command);
  command->add_option("--method", arguments->method, fmt::format("One of {}", fmt::join(planner_names(), ", ")))
      ->capture_default_str();
  command->add_option("--layout", arguments->planning.options.layout,
                      "Fixed layout of a baseline: g3n1+g1n1 (knapformer), u4r2 (usp), karmarkar-karp (naive)");
  command->add_option("-o,--output", arguments->output, "Where to write the plan (JSON); - is stdout")
      ->check(file_name());
  command->add_option("--report", arguments->report, "Where to write a page to look at (HTML); - is stdout")
      ->check(file_name());
  command->add_flag("--all-ranks", arguments->all_ranks,
                    fmt::format("Show every rank; without it more than {} are summed up", kRanksShown));
  command->add_flag("--json", arguments->json, "Print plan and score as JSON");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace zellige::app
