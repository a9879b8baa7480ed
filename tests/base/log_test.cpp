// SPDX-License-Identifier: Apache-2.0
#include "zellige/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace zellige {
namespace {

TEST(Log, PassesLinesToTheSinkOnly) {
  std::vector<std::string> lines;
  log(LogLevel::info, "nobody listens");
  set_log_sink([&](LogLevel level, std::string_view line) {
    lines.push_back(std::to_string(static_cast<int>(level)) + ":" + std::string(line));
  });
  log(LogLevel::warning, "drift");
  set_log_sink({});
  log(LogLevel::info, "nobody listens again");
  EXPECT_EQ(lines, std::vector<std::string>{"2:drift"});
}

}  // namespace
}  // namespace zellige
