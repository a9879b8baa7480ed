// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace zellige {

enum class LogLevel { debug, info, warning };

/// Receives one line (no newline). Threads: may be called from any thread, one call at a time.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Sets where the library's remarks go; none by default: a library never prints. An empty sink silences it again.
/// Threads: may be called at any time.
void set_log_sink(LogSink sink);

/// Passes one line to the sink, if there is one. Does not throw unless the sink does.
void log(LogLevel level, std::string_view line);

}  // namespace zellige
