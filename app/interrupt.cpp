// SPDX-License-Identifier: Apache-2.0
#include "interrupt.h"

#include <chrono>
#include <csignal>
#include <utility>

namespace zellige::app {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_signal(int number) {
  interrupted = 1;
  std::signal(number, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt(std::function<void()> abandon) {
  interrupted = 0;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  // A handler may do next to nothing, so a thread looks at its flag and passes the request on.
  watcher_ = std::jthread([this, abandon = std::move(abandon)](std::stop_token end) {
    while (!end.stop_requested() && interrupted == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (interrupted == 0) return;
    if (abandon && !keeps_) abandon();
    source_.request_stop();
  });
}

Interrupt::~Interrupt() {
  watcher_.request_stop();
  watcher_.join();
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace zellige::app
