// SPDX-License-Identifier: Apache-2.0
// zellige dry-run: will any step of an epoch run out of memory, and which take longest.
#include <limits>
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "interrupt.h"
#include "numbers.h"
#include "option_values.h"
#include "planning.h"
#include "progress.h"
#include "subcommands.h"
#include "table.h"
#include "zellige/dry_run.h"
#include "zellige/env.h"

namespace zellige::app {
namespace {

struct Arguments {
  std::string manifest;
  std::string rules;
  std::string profile;
  std::string method = "zellige";
  std::string menu = "powers-of-two";
  std::int64_t tokens_per_rank = 0;
  double video_share = -1;
  int ranks = 1;
  std::uint64_t seed = 0;
  std::size_t worst = 5;
  double time_limit_s = 60;
  bool no_checkpointing = false;
  bool json = false;
};

// What the run was made of; remedies and samples refer to it.
struct Subject {
  Manifest manifest;
  BucketedSamples samples;
  Profile profile;
  DryRunOptions options;
};

// "2 x 480p10s, 40 x 256p", longest first.
std::string contents(const Batch& batch) {
  std::vector<std::int64_t> count(batch.catalog.buckets.size());
  for (const auto& sequence : batch.sequences) ++count[sequence.bucket];
  std::vector<std::size_t> order;
  for (std::size_t b = 0; b < count.size(); ++b) {
    if (count[b] > 0) order.push_back(b);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return batch.catalog.buckets[a].tokens > batch.catalog.buckets[b].tokens;
  });
  std::vector<std::string> parts;
  for (const auto b : order) parts.push_back(fmt::format("{} x {}", grouped(count[b]), batch.catalog.buckets[b].name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::int64_t tokens_of(const Batch& batch) {
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i)
    tokens += batch.tokens_of(static_cast<SequenceIndex>(i)).value;
  return tokens;
}

std::string in_words(const Remedy& remedy, const Profile& profile) {
  const auto bucket = [&](std::int64_t index) {
    return profile.catalog.buckets.at(static_cast<std::size_t>(index)).name;
  };
  const std::string need =
      remedy.need.value > 0
          ? fmt::format(": {} as {} takes {} of each of {}", bucket(remedy.bucket), text(remedy.config),
                        gibibytes(remedy.need), plural(remedy.config.degree(), "rank"))
          : "";
  switch (remedy.kind) {
    case Remedy::Kind::all_degrees: return "configurations of every degree (--menu all)" + need;
    case Remedy::Kind::checkpointing: return "activation checkpointing" + need;
    case Remedy::Kind::more_ranks: return fmt::format("{} ranks{}", remedy.value, need);
    case Remedy::Kind::fewer_frames:
      return fmt::format("{} with at most {} frames{}", bucket(remedy.bucket), remedy.value, need);
    case Remedy::Kind::smaller_bucket:
      return fmt::format("{} in bucket {} instead{}", bucket(remedy.bucket), bucket(remedy.value), need);
    case Remedy::Kind::fewer_tokens: return fmt::format("--tokens-per-rank {}: every step fits", remedy.value);
  }
  return "";
}

void print_steps(const char* title, const std::vector<DryRunStep>& steps, const Profile& profile) {
  if (steps.empty()) return;
  fmt::print("\n{}\n", title);
  Table table({"step", "sequences", "tokens", "predicted", "peak", "of usable", "splits"});
  for (const auto& step : steps) {
    table.add({fmt::format("{}: {}", step.number, contents(step.batch)),
               grouped(static_cast<std::int64_t>(step.batch.sequences.size())), grouped(tokens_of(step.batch)),
               seconds(step.time), gibibytes(step.peak),
               fmt::format("{:.1f}%", 100 * static_cast<double>(step.peak.value) /
                                          static_cast<double>(profile.memory_usable.value)),
               std::to_string(step.split_count)});
  }
  table.print();
}

void print_failing(const DryRunStep& step, const Profile& profile, std::size_t most) {
  fmt::print("\nstep {} runs out of memory: {} ({} tokens)\n", step.number, contents(step.batch),
             grouped(tokens_of(step.batch)));
  if (step.oversized.empty()) fmt::print("  {}\n", step.reason);
  for (std::size_t i = 0; i < std::min(most, step.oversized.size()); ++i) {
    const OversizedSample& sample = step.oversized[i];
    const BatchSequence& sequence = step.batch.sequences[sample.sequence];
    const Bucket& bucket = step.batch.bucket_of(sample.sequence);
    fmt::print("  {} ({}; {}, {} tokens) needs {} of each of {} as {}: ", sequence.id, sequence.source, bucket.name,
               grouped(bucket.tokens.value), gibibytes(sample.need), plural(sample.config.degree(), "rank"),
               text(sample.config));
    fmt::print("{}\n", sample.over.value > 0 ? fmt::format("{} over the memory cap of {}", gibibytes(sample.over),
                                                           gibibytes(profile.memory_cap()))
                                             : std::string("without it the others would fit"));
  }
  if (step.oversized.size() > most) fmt::print("  and {} more\n", step.oversized.size() - most);
  for (const auto& remedy : step.remedies) fmt::print("  fits with {}\n", in_words(remedy, profile));
}

nlohmann::ordered_json to_json(const Remedy& remedy, const Profile& profile) {
  nlohmann::ordered_json json = {{"kind", std::string(name(remedy.kind))}};
  if (remedy.kind == Remedy::Kind::more_ranks) json["ranks"] = remedy.value;
  if (remedy.kind == Remedy::Kind::fewer_frames) json["frames"] = remedy.value;
  if (remedy.kind == Remedy::Kind::fewer_tokens) json["tokens_per_rank"] = remedy.value;
  if (remedy.kind == Remedy::Kind::smaller_bucket) json["to_bucket"] = profile.catalog.buckets.at(remedy.value).name;
  if (remedy.need.value > 0) {
    json["bucket"] = profile.catalog.buckets.at(remedy.bucket).name;
    json["config"] = {remedy.config.q, remedy.config.h, remedy.config.k};
    json["need_bytes"] = remedy.need.value;
  }
  return json;
}

nlohmann::ordered_json to_json(const DryRunStep& step, const Profile& profile) {
  nlohmann::ordered_json json = {{"step", step.number},
                                 {"status", std::string(name(step.status))},
                                 {"sequences", step.batch.sequences.size()},
                                 {"tokens", tokens_of(step.batch)}};
  if (step.has_placement()) {
    json["predicted_us"] = step.time.value;
    json["peak_bytes"] = step.peak.value;
    json["split_count"] = step.split_count;
    return json;
  }
  json["reason"] = step.reason;
  json["oversized"] = nlohmann::ordered_json::array();
  for (const auto& sample : step.oversized) {
    const BatchSequence& sequence = step.batch.sequences[sample.sequence];
    json["oversized"].push_back({{"id", sequence.id},
                                 {"source", sequence.source},
                                 {"bucket", step.batch.bucket_of(sample.sequence).name},
                                 {"config", {sample.config.q, sample.config.h, sample.config.k}},
                                 {"need_bytes", sample.need.value},
                                 {"over_bytes", sample.over.value}});
  }
  json["remedies"] = nlohmann::ordered_json::array();
  for (const auto& remedy : step.remedies) json["remedies"].push_back(to_json(remedy, profile));
  return json;
}

nlohmann::ordered_json to_json(const DryRun& run, const Subject& subject, Code code) {
  const auto list = [&](const std::vector<DryRunStep>& steps) {
    auto rows = nlohmann::ordered_json::array();
    for (const auto& step : steps) rows.push_back(to_json(step, subject.profile));
    return rows;
  };
  auto remedies = nlohmann::ordered_json::array();
  for (const auto& remedy : run.remedies) remedies.push_back(to_json(remedy, subject.profile));
  return {{"code", static_cast<int>(code)},
          {"complete", run.complete},
          {"steps", run.steps},
          {"compositions", run.compositions},
          {"samples", run.samples},
          {"drawn", run.drawn},
          {"out_of_memory", run.out_of_memory},
          {"undecided", run.undecided},
          {"total_us", run.total_time.value},
          {"usable_bytes", subject.profile.memory_usable.value},
          {"largest", list(run.largest)},
          {"longest", list(run.longest)},
          {"failing", list(run.failing)},
          {"remedies", remedies},
          {"elapsed_s", run.elapsed_s}};
}

void print(const DryRun& run, const Subject& subject) {
  const Profile& profile = subject.profile;
  fmt::print("{} of {} samples in {} ({} different) on {}, {} a rank; planned in {:.2f} s\n",
             run.complete ? "all" : grouped(run.drawn), grouped(run.samples), plural(run.steps, "step"),
             grouped(run.compositions), plural(subject.options.draw.ranks, "rank"),
             plural(subject.options.draw.tokens_per_rank.value, "token"), run.elapsed_s);
  if (run.out_of_memory == 0) {
    // Of what was not looked at nothing is said.
    const bool all = run.complete && run.undecided == 0;
    fmt::print("no step {}runs out of memory ({} usable a rank)\n", all ? "" : "that was planned ",
               gibibytes(profile.memory_usable));
  } else {
    fmt::print("{} out of memory ({} usable a rank)\n",
               plural(run.out_of_memory, "step") + (run.out_of_memory == 1 ? " runs" : " run"),
               gibibytes(profile.memory_usable));
  }
  if (!run.complete) {
    fmt::print("cut short: {} are not looked at; a larger --time-limit may\n",
               plural(run.samples - run.drawn, "sample"));
  }
  if (run.undecided > 0) fmt::print("{} undecided: the planner ran out of time\n", plural(run.undecided, "step"));
  const std::int64_t placed = run.steps - run.out_of_memory - run.undecided;
  if (placed > 0) {
    fmt::print("predicted: {} in all, {} a step\n", seconds(run.total_time), seconds({run.total_time.value / placed}));
  }
  for (const auto& step : run.failing) print_failing(step, profile, subject.options.listed);
  if (run.out_of_memory > static_cast<std::int64_t>(run.failing.size())) {
    fmt::print("\nand {} (--worst N shows more)\n",
               plural(run.out_of_memory - static_cast<std::int64_t>(run.failing.size()), "more step"));
  }
  for (const auto& remedy : run.remedies) fmt::print("\n{}\n", in_words(remedy, profile));
  print_steps("largest steps by memory:", run.largest, profile);
  print_steps("longest steps:", run.longest, profile);
}

Subject subject_of(const Arguments& arguments) {
  Subject subject;
  subject.manifest = read_manifest(arguments.manifest);
  const BucketRules rules = read_rules(arguments.rules);
  subject.samples = apply_rules(subject.manifest, rules);
  Batch priced;
  priced.ranks = arguments.ranks;
  priced.catalog = subject.samples.catalog;
  subject.profile = load_profile(arguments.profile, priced, !arguments.no_checkpointing);
  if (arguments.no_checkpointing && subject.profile.key.checkpointing) {
    throw Error(Code::input, "dry-run",
                fmt::format("profile '{}' was made with activation checkpointing, which --no-checkpointing leaves out",
                            arguments.profile));
  }
  DryRunOptions& options = subject.options;
  options.draw = {.ranks = arguments.ranks,
                  .tokens_per_rank = Tokens{arguments.tokens_per_rank},
                  .video_share = arguments.video_share >= 0 ? arguments.video_share : rules.video_share,
                  .seed = arguments.seed};
  options.method = arguments.method;
  options.plan.menu = arguments.menu == "all" ? Menu::all : Menu::powers_of_two;
  options.plan.ortools = Env::from_process().ortools.value_or("");
  options.listed = arguments.worst;
  options.time_limit_s = arguments.time_limit_s;
  return subject;
}

Code run(const Arguments& arguments) {
  Subject subject = subject_of(arguments);
  const Interrupt interrupt;
  subject.options.stop = interrupt.token();
  ProgressLine line;
  subject.options.progress = [&](std::int64_t steps, std::int64_t drawn, std::int64_t samples) {
    line.show(static_cast<double>(drawn) / static_cast<double>(samples), plural(steps, "step"));
  };
  const DryRun result = dry_run(subject.manifest, subject.samples, subject.profile, subject.options);
  line.clear();
  // A step that runs out is an answer, also where the time was too short to look at all.
  const Code code = result.out_of_memory > 0                   ? Code::infeasible
                    : !result.complete || result.undecided > 0 ? Code::timeout
                                                               : Code::ok;
  if (arguments.json) {
    print_json(to_json(result, subject, code));
  } else {
    print(result, subject);
  }
  return code;
}

}  // namespace

void add_dry_run(CLI::App& root, Run& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = root.add_subcommand(
      "dry-run", "Look through an epoch: which steps run out of memory, which take longest; needs no GPU");
  command->add_option("MANIFEST", arguments->manifest, "CSV, JSON, JSON lines or Parquet")->required();
  command->add_option("--rules", arguments->rules, "Bucket rules (TOML)")->required();
  command
      ->add_option("--profile", arguments->profile,
                   fmt::format("Prices: a file, or built in: {}", fmt::join(built_in_profile_names(), ", ")))
      ->required();
  command->add_option("--ranks", arguments->ranks, "Ranks to draw and plan for")
      ->required()
      ->check(whole_number(1, kMostRanks));
  command->add_option("--tokens-per-rank", arguments->tokens_per_rank, "Token budget of a rank")
      ->required()
      ->check(whole_number(1, kMostLong));
  command
      ->add_option("--video-share", arguments->video_share,
                   "Part of the tokens in videos, 0 to 1; the rules' own when not given")
      ->check(number_between(0, 1));
  command->add_option("--seed", arguments->seed, "Seed of the draw")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  command->add_option("--method", arguments->method, fmt::format("One of {}", fmt::join(planner_names(), ", ")))
      ->capture_default_str();
  command->add_option("--menu", arguments->menu, "Configurations to choose from, as in plan")
      ->check(CLI::IsMember({"powers-of-two", "all"}))
      ->capture_default_str();
  command->add_flag("--no-checkpointing", arguments->no_checkpointing,
                    "Price a built-in profile without activation checkpointing");
  command->add_option("--worst", arguments->worst, "Steps to list of each kind")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--time-limit", arguments->time_limit_s,
                   "Seconds after which the rest of the epoch, or of what would help, is left out")
      ->check(number_above(0, kMostSeconds))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace zellige::app
