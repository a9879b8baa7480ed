// SPDX-License-Identifier: Apache-2.0
// zellige: the subcommands that need no libtorch; the others are handed over to zellige-torch.
#include "command_line.h"
#include "hand_over.h"
#include "subcommands.h"

int main(int argc, char** argv) {
  using namespace zellige::app;
  return run_command_line(
      argc, argv, [&] { hand_over_torch_subcommand(argc, argv); },
      [](CLI::App& root, Run& chosen) {
        add_catalog(root, chosen);
        add_batch(root, chosen);
        add_plan(root, chosen);
        add_check(root, chosen);
        add_compare(root, chosen);
        add_explain(root, chosen);
        add_dry_run(root, chosen);
        list_torch_subcommands(root);
      });
}
