// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <thread>

namespace zellige::app {

/// While it lives, Ctrl-C asks for a stop through `token` instead of ending the process, so that the best plan so far
/// is kept. A second Ctrl-C ends the process as usual. At most one at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread watcher_;
};

}  // namespace zellige::app
