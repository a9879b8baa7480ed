// SPDX-License-Identifier: Apache-2.0
// zellige explain: a plan in words and as a picture.
#include <memory>

#include <fmt/core.h>

#include "option_values.h"
#include "outputs.h"
#include "planning.h"
#include "subcommands.h"
#include "words.h"
#include "zellige/report.h"

namespace zellige::app {
namespace {

struct Arguments {
  std::string plan;
  std::string trace;
  int width = 100;
  bool all_ranks = false;
  bool json = false;
};

Code run(const Arguments& arguments) {
  const std::vector<NamedFile> outputs = {{"--trace", arguments.trace}};
  check_outputs("explain", {{"PLAN", arguments.plan}}, outputs, arguments.json);
  const Plan plan = read_plan_for_display(arguments.plan);
  if (!arguments.trace.empty()) write_output(arguments.trace, chrome_trace(plan));
  if (takes_stdout(outputs)) return Code::ok;
  if (arguments.json) {
    print_json({{"code", 0}, {"plan", nlohmann::ordered_json::parse(plan_json(plan))}});
    return Code::ok;
  }
  // Prices, floor and status can't be told from the plan alone.
  fmt::print("{}\nas the plan says; zellige check judges that by batch and profile\n", headline(plan));
  if (!plan.has_placement()) return Code::ok;

  const int most = arguments.all_ranks ? kMostInt : kRanksShown;
  fmt::print("\n{}\n{}", in_words(plan, most), text_picture(plan, arguments.width, most));
  return Code::ok;
}

}  // namespace

void add_explain(CLI::App& root, Run& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = root.add_subcommand("explain", "Say in words and as a picture who runs what");
  command->add_option("PLAN", arguments->plan, "Plan (JSON)")->required();
  command->add_option("--trace", arguments->trace, "Where to write a Chrome/Perfetto trace (JSON); - is stdout")
      ->check(file_name());
  command->add_option("--width", arguments->width, "Columns of the picture")
      ->check(whole_number(40, 400))
      ->capture_default_str();
  command->add_flag("--all-ranks", arguments->all_ranks,
                    fmt::format("Show every rank and split sequence; without it the first {}", kRanksShown));
  command->add_flag("--json", arguments->json, "Print the plan as JSON");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace zellige::app
