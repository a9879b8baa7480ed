// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "testing/worked_case_file.h"

namespace zellige::testing {

/// A folder of this test alone, removed afterwards.
class Scratch {
 public:
  Scratch() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name =
        std::string("zellige_") + test->test_suite_name() + "_" + test->name() + "_" + std::to_string(::getpid());
    for (char& c : name) c = c == '/' ? '_' : c;
    folder_ = std::filesystem::temp_directory_path() / name;
    std::filesystem::create_directories(folder_);
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string path(std::string_view name) const { return folder_ / name; }
  /// Writes a file and returns its path.
  std::string file(std::string_view name, std::string_view text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

 private:
  std::filesystem::path folder_;
};

inline std::string data_file(std::string_view name) {
  return std::string(ZELLIGE_TEST_DATA) + "/data/" + std::string(name);
}

}  // namespace zellige::testing
