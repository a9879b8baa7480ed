// SPDX-License-Identifier: Apache-2.0
// zellige check: the independent checker.
#include <algorithm>
#include <map>
#include <memory>

#include <fmt/core.h>

#include "numbers.h"
#include "planning.h"
#include "subcommands.h"
#include "zellige/check.h"
#include "zellige/text.h"

namespace zellige::app {
namespace {

struct Arguments {
  std::string plan;
  std::string batch;
  std::string profile;
  bool json = false;
};

/// Lines of one kind that are printed; a plan held against another batch has one for every sequence.
constexpr int kLinesOfAKind = 8;

/// One line a finding; of a kind with many the first ones and how many more. Another profile comes first, since then
/// all else follows from it.
void print_findings(std::vector<Finding> findings) {
  std::stable_partition(findings.begin(), findings.end(),
                        [](const Finding& finding) { return finding.what == Violation::wrong_profile; });
  std::map<Violation, std::int64_t> lines;
  for (const auto& [what, message] : findings) {
    if (lines[what]++ < kLinesOfAKind) fmt::print("{}: {}\n", name(what), printable(message));
  }
  for (const auto& [what, count] : lines) {
    if (count > kLinesOfAKind) {
      fmt::print("{}: and {} more (--json lists them all)\n", name(what), count - kLinesOfAKind);
    }
  }
}

Code run(const Arguments& arguments) {
  const Batch batch = read_batch(arguments.batch);
  const Profile profile = load_profile(arguments.profile, batch);
  const Plan plan = read_plan_to_check(arguments.plan, batch);
  const auto [findings, unverified] = judge(plan, batch, profile);
  // Nothing to run is nothing that is right: the code is that of the planning which found no plan.
  const Code code = findings.empty()                    ? code_of(plan)
                    : is_only_over_memory_cap(findings) ? Code::infeasible
                                                        : Code::input;
  if (arguments.json) {
    nlohmann::ordered_json json = {{"code", static_cast<int>(code)}, {"findings", nlohmann::ordered_json::array()}};
    for (const auto& finding : findings) {
      json["findings"].push_back({{"what", std::string(name(finding.what))}, {"message", finding.message}});
    }
    json["unverified"] = nlohmann::ordered_json::array();
    for (const auto& claim : unverified) {
      json["unverified"].push_back({{"field", claim.field}, {"message", claim.message}});
    }
    print_json(json);
    return code;
  }
  print_findings(findings);
  for (const auto& claim : unverified) fmt::print("unverified: {}\n", printable(claim.message));
  if (findings.empty() && !plan.has_placement()) {
    fmt::print("{}: nothing is wrong, but it holds no placement: {}\n", printable(arguments.plan), headline(plan));
  } else if (findings.empty()) {
    const auto claims = static_cast<std::int64_t>(unverified.size());
    const std::string but = claims == 0 ? "" : fmt::format(", {} unverified", plural(claims, "claim"));
    fmt::print("{}: nothing is wrong{} ({} on {})\n", printable(arguments.plan), but,
               plural(static_cast<std::int64_t>(plan.placement.sequences.size()), "sequence"),
               plural(batch.ranks, "rank"));
  }
  return code;
}

}  // namespace

void add_check(CLI::App& root, Run& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = root.add_subcommand("check", "Judge a plan by recomputing everything from batch and profile");
  command->add_option("PLAN", arguments->plan, "Plan (JSON)")->required();
  command->add_option("BATCH", arguments->batch, "The batch that it plans (JSON)")->required();
  command->add_option("--profile", arguments->profile, "Prices: a file, or a built-in profile's name")->required();
  command->add_flag("--json", arguments->json, "Print the findings as JSON");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace zellige::app
