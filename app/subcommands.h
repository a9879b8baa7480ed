// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "zellige/error.h"

namespace zellige::app {

/// What the chosen subcommand does; the code becomes the exit code.
using Run = std::function<Code()>;

/// Each adds one subcommand with its options to `root`; when that one is parsed, it sets `chosen`.
void add_catalog(CLI::App& root, Run& chosen);
void add_batch(CLI::App& root, Run& chosen);
void add_plan(CLI::App& root, Run& chosen);
void add_check(CLI::App& root, Run& chosen);
void add_compare(CLI::App& root, Run& chosen);
void add_dry_run(CLI::App& root, Run& chosen);
void add_explain(CLI::App& root, Run& chosen);
void add_profile(CLI::App& root, Run& chosen);
void add_train(CLI::App& root, Run& chosen);

}  // namespace zellige::app
