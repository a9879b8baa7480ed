// SPDX-License-Identifier: Apache-2.0
// zellige explain: a plan in words and as a picture.
#include <map>
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "numbers.h"
#include "planning.h"
#include "subcommands.h"
#include "zellige/report.h"

namespace zellige::app {
namespace {

struct Arguments {
  std::string plan;
  std::string trace;
  int width = 100;
  bool json = false;
};

// "3 x 1080p, 2 x 720p": whole sequences of one rank, by bucket, in order of first appearance.
std::string by_bucket(const std::vector<const PlacedSequence*>& sequences) {
  std::vector<std::pair<std::string, int>> counts;
  for (const auto* sequence : sequences) {
    auto found =
        std::find_if(counts.begin(), counts.end(), [&](const auto& entry) { return entry.first == sequence->bucket; });
    if (found == counts.end()) found = counts.insert(counts.end(), {sequence->bucket, 0});
    ++found->second;
  }
  std::string text;
  for (const auto& [bucket, count] : counts) text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, bucket);
  return text;
}

std::string in_words(const PlacedSequence& sequence) {
  std::vector<std::string> ways;
  if (sequence.config.q > 1) ways.push_back(fmt::format("queries {} ways (all-gather)", sequence.config.q));
  if (sequence.config.h > 1) ways.push_back(fmt::format("heads {} ways (Ulysses)", sequence.config.h));
  if (sequence.config.k > 1) ways.push_back(fmt::format("keys {} ways (ring)", sequence.config.k));
  return fmt::format("{} ({} {}, {} tokens) is split over ranks {}: {}; {} and {} a rank", sequence.id,
                     name(sequence.kind), sequence.bucket, grouped(sequence.tokens.value),
                     fmt::join(sequence.ranks, ", "), fmt::join(ways, ", "), seconds(sequence.time),
                     gibibytes(sequence.memory));
}

Code run(const Arguments& arguments) {
  const Plan plan = read_plan_for_display(arguments.plan);
  if (!arguments.trace.empty()) write_output(arguments.trace, chrome_trace(plan));
  if (arguments.json) {
    print_json({{"code", 0}, {"plan", nlohmann::ordered_json::parse(plan_json(plan))}});
    return Code::ok;
  }
  fmt::print("{}\n", headline(plan));
  if (!plan.has_placement()) return Code::ok;

  std::vector<std::vector<const PlacedSequence*>> whole(plan.placement.ranks), shards(plan.placement.ranks);
  fmt::print("\n");
  for (const auto& sequence : plan.placement.sequences) {
    for (Rank rank : sequence.ranks) (sequence.config.is_whole() ? whole : shards).at(rank).push_back(&sequence);
    if (!sequence.config.is_whole()) fmt::print("{}\n", in_words(sequence));
  }
  if (plan.split_count == 0) fmt::print("every sequence is whole: nothing is exchanged\n");
  for (int r = 0; r < plan.placement.ranks; ++r) {
    std::vector<std::string> parts;
    if (!shards[r].empty()) {
      std::vector<std::string> ids;
      for (const auto* sequence : shards[r]) ids.push_back(sequence->id);
      parts.push_back(fmt::format("shards of {}", fmt::join(ids, ", ")));
    }
    if (!whole[r].empty()) parts.push_back("whole " + by_bucket(whole[r]));
    fmt::print("rank {}: {}; {}, {}\n", r, parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, "; ")),
               seconds(plan.load[r]), gibibytes(plan.memory[r]));
  }
  fmt::print("\n{}", text_picture(plan, arguments.width));
  return Code::ok;
}

}  // namespace

void add_explain(CLI::App& root, Run& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = root.add_subcommand("explain", "Say in words and as a picture who runs what");
  command->add_option("PLAN", arguments->plan, "Plan (JSON)")->required();
  command->add_option("--trace", arguments->trace, "Where to write a Chrome/Perfetto trace (JSON)");
  command->add_option("--width", arguments->width, "Columns of the picture")
      ->check(CLI::Range(40, 400))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print the plan as JSON");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace zellige::app
