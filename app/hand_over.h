// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include "subcommands.h"

namespace zellige::app {

/// Becomes `zellige-torch`, the program beside this one, when the command line's subcommand is one of
/// kTorchSubcommands: the process stays the same, so that signals, exit code, stdin, stdout and stderr are that
/// program's. Returns when the subcommand is another one, or none. Errors: Code::input when the program is not there (a
/// build with ZELLIGE_TORCH=OFF) or can't be started.
void hand_over_torch_subcommand(int argc, char** argv);

/// Lists kTorchSubcommands in `root`'s help. None of them is ever run from there.
void list_torch_subcommands(CLI::App& root);

}  // namespace zellige::app
