// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>
#include <unistd.h>

namespace zellige::app {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kWidth = 30;  // of the bar, in characters

double seconds_since(Clock::time_point time) { return std::chrono::duration<double>(Clock::now() - time).count(); }

}  // namespace

ProgressLine::ProgressLine() : is_terminal_(isatty(STDERR_FILENO) != 0), start_(Clock::now()), last_(start_) {}

void ProgressLine::show(double done, const std::string& text) {
  if (!is_terminal_ || (is_shown_ && seconds_since(last_) < 0.1)) return;
  done = std::clamp(done, 0.0, 1.0);
  const int filled = static_cast<int>(done * kWidth);
  std::string line =
      fmt::format("[{}{}] {:3.0f}%  {}", std::string(filled, '#'), std::string(kWidth - filled, '.'), 100 * done, text);
  const double elapsed = seconds_since(start_);
  if (elapsed > 1 && done > 0) line += fmt::format(", {:.0f} s left", elapsed * (1 - done) / done);
  fmt::print(stderr, "\r{}\033[K", line);
  std::fflush(stderr);
  is_shown_ = true;
  last_ = Clock::now();
}

void ProgressLine::clear() {
  if (!is_shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  is_shown_ = false;
}

}  // namespace zellige::app
