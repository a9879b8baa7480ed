// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "plan/cp_model.h"

namespace zellige::cp {

/// OR-Tools' CP-SAT behind its C interface, loaded at run time: nothing of ours is linked to it, and its protobuf stays
/// apart from everyone else's (RTLD_LOCAL | RTLD_DEEPBIND). A library that was once loaded stays for the life of the
/// process. Threads: const, any number of solves at a time.
class Solver {
 public:
  /// Loads the library, or takes it from an earlier call.
  /// @param path  libortools.so.9; empty: beside us (`.venv` under the working folder), where the build found it, or by
  ///              the loader's own search; "none": go without.
  /// Returns null when there is none, with the reason in `why_not`.
  static std::shared_ptr<const Solver> find(const std::string& path, std::string& why_not);

  /// Solves a model. `stop` makes it return early with what it has.
  /// Errors: Code::solver when CP-SAT calls the model invalid, or answers nonsense.
  Response solve(const Model& model, const Parameters& parameters, std::stop_token stop = {}) const;

  /// Where the library was found.
  const std::string& path() const { return path_; }

  struct Functions;
  Solver(std::string path, std::unique_ptr<const Functions> functions);
  ~Solver();

 private:
  std::string path_;
  std::unique_ptr<const Functions> functions_;
};

}  // namespace zellige::cp
