// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "subcommands.h"

namespace zellige::app {

/// The first word of the command line that is no option: where its subcommand stands. nullptr when there is none, or
/// when --help or --version come before it. (No option before the subcommand takes a value.)
const char* subcommand_word(int argc, char** argv);

/// Says on stderr what went wrong, and with --json on stdout; returns the exit code.
int fail(Code code, const std::string& message, bool json);

/// What both programs are: parses the command line, runs the chosen subcommand, and turns errors into a message on
/// stderr (with --json, an object on stdout too) and an exit code (docs/cli.md).
/// @param before  called first; what it throws is reported like a subcommand's error
/// @param add     adds the subcommands to the root
int run_command_line(int argc, char** argv, const std::function<void()>& before,
                     const std::function<void(CLI::App&, Run&)>& add);

}  // namespace zellige::app
