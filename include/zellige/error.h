// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace zellige {

/// Why a call or a command failed. The value is at once the command's exit code and the `code` of its JSON.
/// Results such as "infeasible" or "timed out" are values in C++ (see PlanStatus); only the command turns them into
/// codes.
enum class Code : int {
  ok = 0,             ///< Nothing is wrong.
  internal = 1,       ///< A bug of ours: please report it.
  input = 2,          ///< A file, an argument or a plan is malformed. Correct it and try again.
  infeasible = 3,     ///< No plan exists or was found, or one exceeds the memory cap.
  timeout = 4,        ///< Out of time or cancelled, with nothing to show.
  solver = 5,         ///< The solver is missing or failed. Retrying does not help.
  device = 6,         ///< A GPU is missing or failed.
  communication = 7,  ///< A collective failed, timed out, or ranks disagree about what to run.
};

/// Returns the name of `code` as it is written in JSON and messages, e.g. "input".
std::string_view name(Code code);

/// Thrown for wrong input, a broken environment, or a bug of ours; never for an expected outcome.
/// Text: "[where] the thing, its value, and what would be right", e.g.
/// "[engine.run] sequence 'v17': head split 3 does not divide 40 heads".
class Error : public std::runtime_error {
 public:
  /// @param where  room and call that noticed, e.g. "catalog.read_manifest"; written in brackets before `message`.
  Error(Code code, std::string_view where, std::string_view message);

  Code code() const noexcept { return code_; }

 private:
  Code code_;
};

}  // namespace zellige
