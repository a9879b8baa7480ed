// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "zellige/batch.h"
#include "zellige/error.h"
#include "zellige/placement.h"
#include "zellige/planner.h"
#include "zellige/profile.h"
#include "zellige/score.h"

namespace zellige::app {

/// Options that plan, compare and train's plans share.
struct PlanningArguments {
  std::string batch;
  std::string profile;
  std::string menu = "powers-of-two";
  std::string load_model = "additive";
  std::optional<int> hidden_per_mille;
  bool refetch_kv = false;
  PlanOptions options;

  /// Adds BATCH, --profile and the options of planning.
  void add_to(CLI::App& command);
  /// The options with what was parsed as text filled in, and OR-Tools from the environment.
  PlanOptions resolved() const;
};

/// A built-in profile by name, priced for the batch's catalog and ranks, or a file.
/// @param checkpointing  of a built-in profile; a file says itself what it was made with
/// Errors: Code::input when it is neither, listing the built-in ones.
Profile load_profile(const std::string& name_or_file, const Batch& batch, bool checkpointing = true);

/// Exit code of a plan: 0 with a placement, 3 infeasible or none found, 4 timeout.
Code code_of(const Plan& plan);

/// Makespan over the floor that the plan states, less one; 0 for a batch of nothing, which has no floor to be over.
double over_floor(const Plan& plan);

/// One line: method, status, makespan, floor, splits, solve time; or why there is no plan.
std::string headline(const Plan& plan);

/// The scores as one JSON object, units in the names.
nlohmann::ordered_json to_json(const Score& score);

/// Prints JSON to stdout.
void print_json(const nlohmann::ordered_json& json);

}  // namespace zellige::app
