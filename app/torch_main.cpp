// SPDX-License-Identifier: Apache-2.0
// zellige-torch: the subcommands that need libtorch (torch_subcommands.h). `zellige` becomes this program for them.
#include "command_line.h"
#include "subcommands.h"

int main(int argc, char** argv) {
  using namespace zellige::app;
  return run_command_line(
      argc, argv, [] {},
      [](CLI::App& root, Run& chosen) {
        add_train(root, chosen);
        add_profile(root, chosen);
      });
}
