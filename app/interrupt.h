// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <stop_token>
#include <thread>

namespace zellige::app {

/// While it lives, Ctrl-C (SIGINT) and SIGTERM ask for a stop through `token` instead of ending the process, so that
/// the best so far is kept. A second one ends the process as usual. At most one at a time.
class Interrupt {
 public:
  /// @param abandon  called instead, from a thread of its own, as long as `keep` was not: while there is nothing to
  /// keep,
  ///                 whatever is being done must not hold up the end. It ends the process
  explicit Interrupt(std::function<void()> abandon = nullptr);
  ~Interrupt();
  std::stop_token token() const { return source_.get_token(); }
  /// From now on there is something to keep.
  void keep() { keeps_ = true; }

 private:
  std::stop_source source_;
  std::atomic<bool> keeps_ = false;
  std::jthread watcher_;
};

}  // namespace zellige::app
