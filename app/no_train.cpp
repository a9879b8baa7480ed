// SPDX-License-Identifier: Apache-2.0
// zellige train in a build without torch: says so.
#include "subcommands.h"

namespace zellige::app {

void add_train(CLI::App& root, Run& chosen) {
  CLI::App* command =
      root.add_subcommand("train", "Train (not in this build: it was configured with ZELLIGE_TORCH=OFF)");
  command->allow_extras();
  command->callback([&chosen] {
    chosen = []() -> Code {
      throw Error(Code::input, "train",
                  "this build plans only: it was configured with ZELLIGE_TORCH=OFF; configure with -DZELLIGE_TORCH=ON "
                  "to train");
    };
  });
}

}  // namespace zellige::app
