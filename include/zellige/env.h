// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace zellige {

/// Every environment variable that Zellige reads. This is the only place that reads the environment, and it is read
/// when `from_process` is called, by the command or by a host program: the library's functions take what they need as
/// arguments.
struct Env {
  /// ZELLIGE_ORTOOLS: path of OR-Tools' shared library (libortools.so.9). Unset: looked for beside the program's
  /// Python environment (`.venv`) and in the loader's path. "none": go without it.
  std::optional<std::string> ortools;
  /// ZELLIGE_FLASH_ATTENTION_3: path of a library that registers flash_attn_3's operators. Unset: go without it.
  std::optional<std::string> flash_attention_3;

  /// RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT: the rendezvous that torchrun sets for each process.
  std::optional<int> rank;
  std::optional<int> world_size;
  std::optional<int> local_rank;
  std::optional<std::string> master_address;
  std::optional<int> master_port;
  /// TORCHELASTIC_USE_AGENT_STORE is "True": torchrun itself serves the rendezvous at MASTER_ADDR:MASTER_PORT. Else
  /// rank 0 does.
  bool agent_store = false;
  /// TORCHELASTIC_RESTART_COUNT: how often torchrun has started this group of processes again. Unset: 0.
  int restart_count = 0;

  /// Reads all of the above. Errors: Code::input when a number is none, naming the variable and its value.
  static Env from_process();
};

}  // namespace zellige
