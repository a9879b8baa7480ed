// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace zellige::app {

/// One line on stderr that says how far a long job is, overwritten in place and cleared at the end. Silent where stderr
/// is no terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Shows `done` of 1, `text`, and from a second on the time left at the rate so far. At most ten times a second.
  void show(double done, const std::string& text);
  void clear();

 private:
  bool is_terminal_;
  bool is_shown_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace zellige::app
