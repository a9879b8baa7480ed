// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <utility>

namespace zellige {

/// When a planner has to come to an end: a point in time, or someone's wish.
class Deadline {
 public:
  /// @param limit_s  seconds from now
  Deadline(double limit_s, std::stop_token stop) : limit_s_(limit_s), stop_(std::move(stop)) {}

  double elapsed_s() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  double remaining_s() const { return std::max(0.0, limit_s_ - elapsed_s()); }
  bool cancelled() const { return stop_.stop_requested(); }
  bool is_over() const { return cancelled() || remaining_s() <= 0; }
  const std::stop_token& stop() const { return stop_; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double limit_s_;
  std::stop_token stop_;
};

}  // namespace zellige
