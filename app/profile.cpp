// SPDX-License-Identifier: Apache-2.0
// zellige profile: the Hardware Profiler.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "command_line.h"
#include "interrupt.h"
#include "numbers.h"
#include "option_values.h"
#include "outputs.h"
#include "planning.h"
#include "progress.h"
#include "subcommands.h"
#include "table.h"
#include "torch_subcommands.h"
#include "zellige/calibrate.h"
#include "zellige/env.h"
#include "zellige/manifest.h"
#include "zellige/text.h"
#include "zellige/trainer.h"

namespace zellige::app {
namespace {

struct Arguments {
  std::string config;
  std::string catalog;
  std::string rules;
  std::string output;
  std::string backend = "threads";
  std::string precision = "fp32";
  std::string menu = "powers-of-two";
  std::string device;
  int ranks = 1;
  int threads_per_rank = 1;
  int text_dim = 4096;
  int depth = 0;
  std::int64_t tokens_per_rank = 0;
  double budget_s = 600;
  double spread = 0.01;
  bool no_checkpointing = false;
  bool resume = false;
  bool json = false;
};

Catalog catalog_of(const std::string& rules_path, const std::optional<ModelGeometry>& model) {
  BucketRules rules = read_rules(rules_path);
  if (model) rules.model = *model;
  return apply_rules(Manifest{}, rules).catalog;
}

// A training run is measured as it trains: its model, sizes, precision and ranks.
void take_train_config(Arguments& arguments, CalibrateOptions& options) {
  const TrainConfig config = read_train_config(arguments.config);
  options.catalog = catalog_of(config.data.rules, config.model);
  arguments.text_dim = config.text_dim;
  arguments.ranks = config.ranks.count;
  arguments.backend = config.ranks.backend;
  arguments.threads_per_rank = config.ranks.threads_per_rank;
  arguments.no_checkpointing = !config.run.checkpointing;
  arguments.precision = config.run.precision == Precision::fp64   ? "fp64"
                        : config.run.precision == Precision::bf16 ? "bf16"
                                                                  : "fp32";
  arguments.menu = config.plan.options.menu == Menu::all ? "all" : "powers-of-two";
  if (arguments.tokens_per_rank == 0) {
    arguments.tokens_per_rank = std::min<std::int64_t>(config.batch.tokens_per_rank.value, 32768);
  }
}

CalibrateOptions options_of(Arguments& arguments) {
  CalibrateOptions options;
  if (!arguments.config.empty()) {
    take_train_config(arguments, options);
  } else {
    options.catalog =
        arguments.catalog.empty() ? catalog_of(arguments.rules, std::nullopt) : read_catalog(arguments.catalog);
  }
  options.text_dim = arguments.text_dim;
  options.precision = arguments.precision;
  options.menu = arguments.menu == "all" ? Menu::all : Menu::powers_of_two;
  options.checkpointing = !arguments.no_checkpointing;
  options.depth = arguments.depth;
  if (arguments.tokens_per_rank > 0) options.tokens_per_rank.value = arguments.tokens_per_rank;
  options.spread = arguments.spread;
  options.budget_s = arguments.budget_s;
  options.device = arguments.device;
  return options;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string source_of(const Price& price) {
  if (price.spread) return fmt::format("measured, spread {:.1f}%", 100 * *price.spread);
  if (price.error) return fmt::format("{}, error about {:.0f}%", name(price.source), 100 * *price.error);
  return std::string(name(price.source));
}

void print(const Calibration& result, const Arguments& arguments) {
  const Profile& profile = result.profile;
  fmt::print("{}: {} points measured in {:.1f} s on {} ({} on {}, {}){}\n", arguments.output,
             grouped(static_cast<std::int64_t>(result.points.size())), result.elapsed_s,
             plural(profile.key.ranks, "rank"), profile.catalog.model.name, profile.key.device, profile.key.precision,
             result.complete ? "" : "; the budget was too short for all, the rest is not measured");
  fmt::print("a step's own cost {}: blocks without sequences {}, gradient sync {}, optimizer {}\n",
             seconds(profile.step_base),
             seconds(profile.step_base -
                     Microseconds{static_cast<std::int64_t>(result.gradient_sync_us + result.optimizer_us)}),
             seconds({static_cast<std::int64_t>(result.gradient_sync_us)}),
             seconds({static_cast<std::int64_t>(result.optimizer_us)}));
  fmt::print("memory: base {}, usable {}\n\n", gibibytes(profile.memory_base), gibibytes(profile.memory_usable));
  Table table({"bucket", "tokens", "config", "time", "exchange", "memory", "source"});
  for (std::size_t b = 0; b < profile.catalog.buckets.size(); ++b) {
    const Bucket& bucket = profile.catalog.buckets[b];
    for (const Price& price : profile.menu(static_cast<BucketIndex>(b))) {
      if (price.config.degree() > profile.key.ranks) continue;
      table.add({bucket.name, grouped(bucket.tokens.value), text(price.config), seconds(price.time),
                 seconds(price.exchange), gibibytes(price.memory), source_of(price)});
    }
  }
  table.print();
  if (result.checks.empty()) return;
  fmt::print("\nall blocks, measured, against {} scaled up:\n", plural(result.depth, "block"));
  Table checks({"tokens", "config", "sequences", "measured", "predicted", "off by"});
  for (const auto& check : result.checks) {
    checks.add({grouped(check.tokens.value), text(check.config), std::to_string(check.sequences),
                seconds({static_cast<std::int64_t>(check.measured_us)}),
                seconds({static_cast<std::int64_t>(check.predicted_us)}),
                percent(check.predicted_us / check.measured_us - 1)});
  }
  checks.print();
}

nlohmann::ordered_json to_json(const Calibration& result) {
  auto points = nlohmann::ordered_json::array(), checks = nlohmann::ordered_json::array();
  for (const auto& p : result.points) {
    points.push_back({{"tokens", p.tokens.value},
                      {"config", {p.config.q, p.config.h, p.config.k}},
                      {"sequences", p.sequences},
                      {"time_us", p.time_us},
                      {"exchange_us", p.exchange_us},
                      {"spread", p.spread},
                      {"repeats", p.repeats},
                      {"peak_bytes", p.peak_bytes}});
  }
  for (const auto& c : result.checks) {
    checks.push_back({{"tokens", c.tokens.value},
                      {"config", {c.config.q, c.config.h, c.config.k}},
                      {"sequences", c.sequences},
                      {"measured_us", c.measured_us},
                      {"predicted_us", c.predicted_us}});
  }
  return {{"code", 0},
          {"complete", result.complete},
          {"depth", result.depth},
          {"fixed_us", result.fixed_us},
          {"token_us", result.token_us},
          {"gradient_sync_us", result.gradient_sync_us},
          {"optimizer_us", result.optimizer_us},
          {"elapsed_s", result.elapsed_s},
          {"points", points},
          {"checks", checks}};
}

Code run(Arguments arguments) {
  const int sources = !arguments.config.empty() + !arguments.catalog.empty() + !arguments.rules.empty();
  if (sources != 1) throw Error(Code::input, "profile", "give one of CONFIG, --catalog and --rules");
  // What is measured so far is kept beside the profile; beside stdout or a device there is no place.
  std::error_code status;
  const std::filesystem::path output = arguments.output;
  const bool keeps_partial =
      arguments.output != "-" && (!std::filesystem::exists(output, status) || std::filesystem::is_regular_file(output));
  const std::string partial = keeps_partial ? arguments.output + ".partial" : "";
  const std::vector<NamedFile> outputs = {{"-o", arguments.output}, {"the measurements so far,", partial}};
  check_outputs("profile",
                {{"CONFIG", arguments.config}, {"--catalog", arguments.catalog}, {"--rules", arguments.rules}}, outputs,
                arguments.json);
  if (arguments.resume && !keeps_partial) {
    throw Error(Code::input, "profile",
                fmt::format("--resume goes on from OUTPUT.partial, which {} can't have; give -o a file",
                            in_quotes(arguments.output)));
  }
  CalibrateOptions options = options_of(arguments);
  if (arguments.resume && std::filesystem::exists(partial, status)) options.resume = read_text(partial);
  options.flash_attention_3 = Env::from_process().flash_attention_3.value_or("");
  // Until a point is measured there is nothing to keep: set-up and warming up end at once.
  Interrupt interrupt([json = arguments.json] {
    std::_Exit(fail(Code::timeout, "[profile] stopped before the first measurement", json));
  });
  options.stop = interrupt.token();
  ProgressLine line;
  options.progress = [&line](double done, const std::string& what) { line.show(done, what); };
  options.save = [&](const std::string& points) {
    interrupt.keep();
    write_output(partial, points);
  };
  const Calibration result = calibrate(options, {.backend = arguments.backend,
                                                 .count = arguments.ranks,
                                                 .threads_per_rank = arguments.threads_per_rank,
                                                 .env = Env::from_process()});
  line.clear();
  if (result.rank != 0) return Code::ok;
  write_output(arguments.output, profile_json(result.profile));
  // What is not complete can be gone on with.
  if (result.complete) std::filesystem::remove(partial, status);
  if (arguments.json) {
    print_json(to_json(result));
  } else if (!takes_stdout(outputs)) {
    print(result, arguments);
  }
  return Code::ok;
}

}  // namespace

void add_profile(CLI::App& root, Run& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = root.add_subcommand(std::string(kProfile.name), std::string(kProfile.description));
  command->add_option("CONFIG", arguments->config, "train.toml of the run to measure for");
  command->add_option("--catalog", arguments->catalog, "Instead: a catalog (JSON)");
  command->add_option("--rules", arguments->rules, "Instead: bucket rules (TOML)");
  command->add_option("-o,--output", arguments->output, "Where to write the profile (JSON); - is stdout")
      ->check(file_name())
      ->required();
  command->add_option("--backend", arguments->backend, "threads, or nccl under torchrun --no-python")
      ->check(CLI::IsMember({"threads", "nccl"}))
      ->capture_default_str();
  command->add_option("--ranks", arguments->ranks, "Thread ranks")->check(whole_number(1, 256))->capture_default_str();
  command->add_option("--threads-per-rank", arguments->threads_per_rank, "Threads of a rank that is a thread")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  command->add_option("--precision", arguments->precision, "Of the layers")
      ->check(CLI::IsMember({"fp32", "fp64", "bf16"}))
      ->capture_default_str();
  command->add_option("--text-dim", arguments->text_dim, "Channels of the text encoder")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  command->add_flag("--no-checkpointing", arguments->no_checkpointing, "Measure without activation checkpointing");
  command->add_option("--menu", arguments->menu, "Configurations to measure, as in plan")
      ->check(CLI::IsMember({"powers-of-two", "all"}))
      ->capture_default_str();
  command
      ->add_option("--tokens-per-rank", arguments->tokens_per_rank,
                   "Tokens that a measurement puts on a rank; 32768, or the CONFIG's when that is less")
      ->check(whole_number(1, kMostLong));
  command->add_option("--depth", arguments->depth, "Blocks that are measured and scaled to all; 0: one, or all of two")
      ->check(whole_number(0, kMostInt));
  command
      ->add_option("--spread", arguments->spread, "A point is done when its relative standard deviation is below this")
      ->check(number_above(0, 1e6))
      ->capture_default_str();
  command
      ->add_option("--budget", arguments->budget_s,
                   "Seconds; what is not measured by then is interpolated or estimated")
      ->check(number_above(0, kMostSeconds))
      ->capture_default_str();
  command->add_option("--estimates", arguments->device, "Built-in profile from which what is not measured is scaled")
      ->check(CLI::IsMember(built_in_profile_names()));
  command->add_flag("--resume", arguments->resume, "Go on from OUTPUT.partial, which an earlier run left");
  command->add_flag("--json", arguments->json, "Print the measurements as JSON");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace zellige::app
