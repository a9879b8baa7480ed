// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <deque>

#include <c10/core/Event.h>

#include "engine/torch.h"
#include "zellige/engine.h"
#include "zellige/schedule.h"

namespace zellige {

/// Adds up the time in which a rank's computing stands still for exchanges. On a GPU by events around each wait on the
/// current stream, read when asked; elsewhere by the clock.
/// Threads: one caller at a time.
class ExposedTime {
 public:
  void reset();
  /// Waits until the device has passed the last wait that was seen.
  ExposedExchange seconds();

  /// A wait, from construction to destruction.
  class Span {
   public:
    Span(ExposedTime& times, Phase phase, at::Device device);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    ExposedTime& times_;
    const Phase phase_;
    const at::Device device_;
    std::chrono::steady_clock::time_point begin_;
  };

 private:
  struct Pair {
    c10::Event begin, end;
    Phase phase = Phase::a;
    bool complete = false;
  };
  double& of(Phase phase);

  ExposedExchange sum_;
  std::deque<Pair> events_;  ///< reused by the next step
  std::size_t used_ = 0;
};

}  // namespace zellige
