// SPDX-License-Identifier: Apache-2.0
// zellige train: the training loop, its log and its page.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "command_line.h"
#include "interrupt.h"
#include "methods.h"
#include "numbers.h"
#include "option_values.h"
#include "outputs.h"
#include "planning.h"
#include "subcommands.h"
#include "torch_subcommands.h"
#include "words.h"
#include "zellige/env.h"
#include "zellige/report.h"
#include "zellige/text.h"
#include "zellige/trainer.h"

namespace zellige::app {
namespace {

struct Arguments {
  std::string config;
  int steps = 0;
  std::string log;
  std::string report;
  std::optional<std::string> engine, kernel;
  std::optional<bool> overlap;
  std::vector<std::string> compare;
  bool parity = false;
  bool json = false;
};

// What the first step was planned from: shown at once, and again on the page at the end.
struct FirstStep {
  Batch batch;
  Plan plan;
  Profile profile;
};

double mean_loss(const std::vector<StepRecord>& records, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += records[i].loss;
  return sum / static_cast<double>(end - begin);
}

void print_step(const StepRecord& record, int steps) {
  Microseconds waiting;
  for (const RankRecord& rank : record.ranks) waiting = std::max(waiting, rank.waiting);
  fmt::print("step {:>3}/{}  loss {:.4f}  {} ({}), predicted {}, took {}, exchanges waited for {}\n", record.step + 1,
             steps, record.loss, plural(record.sequences, "sequence"), plural(record.split_count, "split"),
             seconds(record.predicted), seconds(record.measured), seconds(waiting));
  std::fflush(stdout);
}

void print_parity(const Parity& parity, int ranks) {
  fmt::print(
      "first step's loss: {:.9f} on {}, {:.9f} on one; relative difference {:.1e}; gradients differ by at most {:.1e} "
      "({})\n",
      parity.loss, plural(ranks, "rank"), parity.loss_one_rank, parity.loss_difference, parity.gradient_difference,
      parity.parameter);
}

std::string page(const TrainConfig& config, const FirstStep& first, const std::vector<Plan>& others,
                 const std::vector<StepRecord>& records) {
  Page result;
  result.title = fmt::format("{} on {}, {}", config.model.name, plural(config.ranks.count, "rank"),
                             plural(static_cast<std::int64_t>(records.size()), "step"));
  result.note =
      fmt::format("First step's plan by profile {}; data: {}. Times of the plan are modelled, losses measured.",
                  config.plan.profile, records.empty() ? config.data.latents : records.front().data);
  result.plans = others;
  if (others.empty()) result.plans = {first.plan};
  Series loss{"flow-matching loss of the batch", "step", "loss", {}, {}};
  Series time{"longest rank, measured", "step", "seconds", {}, {}};
  for (const auto& record : records) {
    loss.x.push_back(record.step + 1);
    loss.y.push_back(record.loss);
    time.x.push_back(record.step + 1);
    time.y.push_back(static_cast<double>(record.measured.value) / 1e6);
  }
  result.series = {loss, time};
  return html_page(result, first.profile);
}

// Of the compared methods the trained one is not planned again: the page shows the plan that ran.
std::vector<Plan> compare_first(const Arguments& arguments, const TrainConfig& config, const FirstStep& first,
                                std::stop_token stop) {
  if (arguments.compare.empty()) return {};
  PlanOptions options = config.plan.options;
  options.ortools = Env::from_process().ortools.value_or("");
  std::vector<Plan> plans = plan_by_methods(arguments.compare, first.batch, first.profile, options, stop);
  for (auto& plan : plans) {
    if (plan.method == first.plan.method) plan = first.plan;
  }
  return plans;
}

Code run(const Arguments& arguments) {
  TrainConfig config = read_train_config(arguments.config);
  if (arguments.steps > 0) config.run.steps = arguments.steps;
  if (!arguments.log.empty()) config.run.log = arguments.log;
  if (!arguments.report.empty()) config.run.report = arguments.report;
  ExecOptions& exec = config.plan.options.exec;
  if (arguments.engine) exec.engine = *arguments.engine;
  if (arguments.overlap) exec.overlap = *arguments.overlap;
  if (arguments.kernel) config.run.kernel = *arguments.kernel;
  if (arguments.parity && config.ranks.backend == "nccl") {
    throw Error(Code::input, "train", "--parity runs the step on one rank too, which needs [ranks] backend 'threads'");
  }
  check_methods(arguments.compare);
  const std::vector<NamedFile> outputs = {{"--log", config.run.log}, {"--report", config.run.report}};
  check_outputs("train",
                {{"CONFIG", arguments.config},
                 {"[data] manifest", config.data.manifest},
                 {"[data] rules", config.data.rules},
                 {"[plan] profile", config.plan.profile}},
                outputs, arguments.json);

  // Of several processes rank 0 speaks.
  const Env env = Env::from_process();
  const bool speaks = config.ranks.backend != "nccl" || env.rank.value_or(0) == 0;
  std::ofstream log;
  const bool log_to_stdout = config.run.log == "-";
  if (speaks && !config.run.log.empty() && !log_to_stdout) {
    log.open(config.run.log, std::ios::trunc);
    if (!log)
      throw Error(Code::input, "train",
                  fmt::format("log '{}' can't be written: {}", config.run.log, std::strerror(errno)));
  }
  const bool text = speaks && !arguments.json && !takes_stdout(outputs);
  // Until the first step is planned there is nothing to keep: reading, set-up and planning end at once.
  Interrupt interrupt(
      [json = arguments.json] { std::_Exit(fail(Code::timeout, "[train] stopped before the first step", json)); });
  TrainHooks hooks;
  hooks.ortools = env.ortools.value_or("");
  hooks.env = env;
  hooks.stop = interrupt.token();
  FirstStep first;
  hooks.planned = [&](int step, const Batch& batch, const Plan& plan, const Profile& profile) {
    if (step != 0) return;
    interrupt.keep();
    first = {batch, plan, profile};
    if (text) fmt::print("first step: {}\n{}\n", headline(plan), in_words(plan, kRanksShown));
  };
  hooks.stepped = [&](const StepRecord& record) {
    if (text) print_step(record, config.run.steps);
    if (log.is_open()) log << json_line(record) << std::endl;
    if (log_to_stdout) fmt::print("{}\n", json_line(record));
  };

  if (text) {
    fmt::print("{} on {}, {}, {} latents\n", config.model.name, plural(config.ranks.count, "rank"),
               plural(config.run.steps, "step"), config.data.latents);
  }
  const std::vector<StepRecord> records = train(config, hooks);
  if (log.is_open() && !log) {
    throw Error(Code::input, "train", fmt::format("log {} could not be written in full", in_quotes(config.run.log)));
  }
  if (!speaks) return static_cast<int>(records.size()) < config.run.steps ? Code::timeout : Code::ok;
  const std::vector<Plan> compared =
      records.empty() ? std::vector<Plan>{} : compare_first(arguments, config, first, hooks.stop);
  if (!records.empty() && !config.run.report.empty())
    write_output(config.run.report, page(config, first, compared, records));

  nlohmann::ordered_json json = {{"code", 0}, {"steps", records.size()}, {"losses", nlohmann::ordered_json::array()}};
  for (const auto& record : records) json["losses"].push_back(record.loss);
  if (records.size() >= 5) {
    const std::size_t fifth = records.size() / 5;
    const double before = mean_loss(records, 0, fifth);
    const double after = mean_loss(records, records.size() - fifth, records.size());
    json["first_fifth"] = before;
    json["last_fifth"] = after;
    if (text) fmt::print("\nmean loss: {:.4f} in the first fifth of the steps, {:.4f} in the last\n", before, after);
  }
  if (text && !compared.empty()) {
    fmt::print("\nthe first step's batch by every method (modelled):\n");
    print_methods(compared, first.profile);
  }
  if (arguments.parity) {
    TrainHooks quiet;
    quiet.ortools = hooks.ortools;
    const Parity parity = first_step_parity(config, quiet);
    json["parity"] = {{"loss", parity.loss},
                      {"loss_one_rank", parity.loss_one_rank},
                      {"loss_difference", parity.loss_difference},
                      {"gradient_difference", parity.gradient_difference},
                      {"parameter", parity.parameter}};
    if (text) {
      fmt::print("\n");
      print_parity(parity, config.ranks.count);
    }
  }
  if (text && !config.run.log.empty()) fmt::print("step log: {}\n", config.run.log);
  if (text && !config.run.report.empty()) fmt::print("page: {}\n", config.run.report);
  if (arguments.json) print_json(json);
  // Cut short by Ctrl-C: what was done is kept, and the code says that it is not all.
  return static_cast<int>(records.size()) < config.run.steps ? Code::timeout : Code::ok;
}

}  // namespace

void add_train(CLI::App& root, Run& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = root.add_subcommand(std::string(kTrain.name), std::string(kTrain.description));
  command->add_option("CONFIG", arguments->config, "train.toml")->required();
  command->add_option("--steps", arguments->steps, "Steps, instead of the file's")->check(whole_number(1, kMostInt));
  command
      ->add_option("--log", arguments->log,
                   "Where to write the step log (JSON lines), instead of the file's; - is stdout")
      ->check(file_name());
  command
      ->add_option("--report", arguments->report, "Where to write the page (HTML), instead of the file's; - is stdout")
      ->check(file_name());
  command->add_option("--engine", arguments->engine, "coalesced or paper, instead of the file's")
      ->check(CLI::IsMember({"coalesced", "paper"}));
  command->add_flag("--overlap,!--no-overlap", arguments->overlap, "Run exchanges beside other work, or not");
  command->add_option("--kernel", arguments->kernel,
                      "The one attention kernel to use, instead of the best for each shape; 'flash-attention-2' is the "
                      "paper's");
  command
      ->add_option("--compare", arguments->compare,
                   "Methods to plan the first step's batch by as well, for the page and a table")
      ->delimiter(',');
  command->add_flag("--parity", arguments->parity, "Run the first step on one rank too and compare loss and gradients");
  command->add_flag("--json", arguments->json, "Print a summary as JSON");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace zellige::app
