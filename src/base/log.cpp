// SPDX-License-Identifier: Apache-2.0
#include "zellige/log.h"

#include <mutex>
#include <utility>

namespace zellige {
namespace {

std::mutex& sink_mutex() {
  static std::mutex mutex;
  return mutex;
}

LogSink& sink() {
  static LogSink current;
  return current;
}

}  // namespace

void set_log_sink(LogSink new_sink) {
  std::lock_guard lock(sink_mutex());
  sink() = std::move(new_sink);
}

void log(LogLevel level, std::string_view line) {
  std::lock_guard lock(sink_mutex());
  if (sink()) sink()(level, line);
}

}  // namespace zellige
