// SPDX-License-Identifier: Apache-2.0
#include "planning.h"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "numbers.h"
#include "option_values.h"
#include "zellige/env.h"
#include "zellige/text.h"

namespace zellige::app {
void PlanningArguments::add_to(CLI::App& command) {
  command.add_option("BATCH", batch, "Batch to plan (JSON)")->required();
  command
      .add_option("--profile", profile,
                  fmt::format("Prices: a file, or built in: {}", fmt::join(built_in_profile_names(), ", ")))
      ->required();
  command.add_option("--menu", menu, "Configurations to choose from: degrees that are powers of two, or all up to 16")
      ->check(CLI::IsMember({"powers-of-two", "all"}))
      ->capture_default_str();
  command.add_option("--time-limit", options.time_limit_s, "Seconds after which the best plan so far is taken")
      ->check(number_above(0, kMostSeconds))
      ->capture_default_str();
  command
      .add_option("--work-limit", options.work_limit, "Deterministic limit of a CP-SAT solve, in its own unit; 0: none")
      ->check(number_between(0, 1e9));
  command.add_option("--workers", options.workers, "Threads of CP-SAT; with more than one, plans depend on timing")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Seed of CP-SAT")->check(whole_number(0, kMostInt));
  command
      .add_option(
          "--engine", options.exec.engine,
          "Exchanges of all split sequences together, or as in the paper one set for each configuration and rank "
          "set")
      ->check(CLI::IsMember({"coalesced", "paper"}))
      ->capture_default_str();
  command.add_option("--waves", options.exec.waves, "Parts into which exchanges are cut along the heads")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  command.add_flag("--overlap", options.exec.overlap, "Run exchanges beside other work");
  command
      .add_option(
          "--load-model", load_model,
          "A rank's load: additive, the sum of prices (the paper's), or overlapped: exchanges run beside other work")
      ->check(CLI::IsMember({"additive", "overlapped"}))
      ->capture_default_str();
  command
      .add_option("--hidden-per-mille", hidden_per_mille,
                  fmt::format("Overlapped loads: thousandths of an exchange that other work can hide ({})",
                              LoadModel{}.hidden_per_mille))
      ->check(whole_number(0, 1000));
  command.add_flag("--refetch-kv", refetch_kv, "Fetch K and V again in the backward pass instead of keeping them");
}

PlanOptions PlanningArguments::resolved() const {
  PlanOptions result = options;
  result.menu = menu == "all" ? Menu::all : Menu::powers_of_two;
  result.exec.keep_kv = !refetch_kv;
  if (load_model == "overlapped") {
    result.load_model.kind = LoadModel::Kind::overlapped;
    if (hidden_per_mille) result.load_model.hidden_per_mille = *hidden_per_mille;
  } else if (hidden_per_mille) {
    throw Error(
        Code::input, "--hidden-per-mille",
        fmt::format("{} is given, and additive loads hide nothing; add --load-model overlapped", *hidden_per_mille));
  }
  result.ortools = Env::from_process().ortools.value_or("");
  return result;
}

Profile load_profile(const std::string& name_or_file, const Batch& batch, bool checkpointing) {
  const auto built_in = built_in_profile_names();
  if (std::find(built_in.begin(), built_in.end(), name_or_file) != built_in.end()) {
    return built_in_profile(name_or_file, batch.catalog, checkpointing, batch.ranks);
  }
  std::error_code status;
  if (!std::filesystem::exists(name_or_file, status)) {
    throw Error(Code::input, "profile",
                fmt::format("{} is neither a file nor a built-in profile ({})", in_quotes(name_or_file),
                            fmt::join(built_in, ", ")));
  }
  return read_profile(name_or_file);
}

Code code_of(const Plan& plan) {
  if (plan.has_placement()) return Code::ok;
  return plan.status == PlanStatus::timeout ? Code::timeout : Code::infeasible;
}

double over_floor(const Plan& plan) {
  return plan.floor.value > 0 ? static_cast<double>(plan.makespan.value) / static_cast<double>(plan.floor.value) - 1
                              : 0;
}

std::string headline(const Plan& plan) {
  const std::string method = printable(plan.method);
  if (!plan.has_placement()) {
    return fmt::format("{}: {}, no plan: {}", method, name(plan.status), printable(plan.reason));
  }
  const std::string loads =
      plan.load_model.is_overlapped()
          ? fmt::format(" of overlapped loads ({:.1f}% of an exchange hidden)", plan.load_model.hidden_per_mille / 10.0)
          : "";
  return fmt::format("{} ({}): {}{}, makespan {}{} ({} over the floor {}), {}, planned in {}", method,
                     printable(plan.solver), name(plan.status), plan.certified ? ", certified" : "",
                     seconds(plan.makespan), loads, percent(over_floor(plan)), seconds(plan.floor),
                     plural(plan.split_count, "split"), seconds(plan.solve_time));
}

nlohmann::ordered_json to_json(const Score& score) {
  nlohmann::ordered_json json;
  const auto values = [](const auto& quantities) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& quantity : quantities) list.push_back(quantity.value);
    return list;
  };
  json["makespan_us"] = score.makespan.value;
  json["floor_us"] = score.floor.value;
  json["step_us"] = score.step.value;
  json["over_floor"] = score.over_floor;
  json["imbalance"] = score.imbalance;
  json["split_count"] = score.split_count;
  json["peak_bytes"] = score.peak.value;
  json["moved_bytes"] = {{"all_gather", score.moved.all_gather.value},
                         {"ulysses", score.moved.ulysses.value},
                         {"ring", score.moved.ring.value}};
  json["load_us"] = values(score.load);
  json["exchange_us"] = values(score.exchange);
  json["memory_bytes"] = values(score.memory);
  json["tokens"] = values(score.tokens);
  return json;
}

void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace zellige::app
