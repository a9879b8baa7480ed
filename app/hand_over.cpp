// SPDX-License-Identifier: Apache-2.0
#include "hand_over.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include <fmt/core.h>

#include "command_line.h"
#include "torch_subcommands.h"

namespace zellige::app {
namespace {

constexpr const char* kTorchProgram = "zellige-torch";

}  // namespace

void hand_over_torch_subcommand(int argc, char** argv) {
  const char* word = subcommand_word(argc, argv);
  if (word == nullptr) return;
  const bool needs_torch = std::any_of(kTorchSubcommands.begin(), kTorchSubcommands.end(),
                                       [&](const TorchSubcommand& entry) { return entry.name == word; });
  if (!needs_torch) return;
  std::error_code status;
  // The link's target is the program itself, also where it was started through a link of another folder.
  const auto self = std::filesystem::read_symlink("/proc/self/exe", status);
  const auto program = self.parent_path() / kTorchProgram;
  if (status || !std::filesystem::exists(program, status)) {
    throw Error(Code::input, word,
                fmt::format("'{}' is missing: this build plans only (it was configured with ZELLIGE_TORCH=OFF); "
                            "configure with -DZELLIGE_TORCH=ON for {}",
                            program.string(), word));
  }
  execv(program.c_str(), argv);
  throw Error(Code::input, word, fmt::format("'{}' can't be started: {}", program.string(), std::strerror(errno)));
}

void list_torch_subcommands(CLI::App& root) {
  for (const auto& entry : kTorchSubcommands) {
    root.add_subcommand(std::string(entry.name), std::string(entry.description));
  }
}

}  // namespace zellige::app
