// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

namespace zellige::bench {

/// First line that a shell command prints; "unknown" when it prints none.
inline std::string first_line_of(const char* command) {
  std::string line;
  if (std::FILE* pipe = popen(command, "r")) {
    char buffer[256];
    if (std::fgets(buffer, sizeof buffer, pipe) != nullptr) line = buffer;
    pclose(pipe);
  }
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line.empty() ? "unknown" : line;
}

/// The processor's name and number of cores.
inline std::string host_cpu() {
  std::ifstream file("/proc/cpuinfo");
  std::string model = "unknown processor";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      model = line.substr(line.find(": ") + 2);
      break;
    }
  }
  return model + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores";
}

/// Writes the raw numbers of a benchmark to `path` (bench/results/<name>.json): name, commit, date, device, command and
/// rows, one object a measured cell with units in its field names (docs/design/evaluation.md).
/// @param commit  of what ran, where that is known better than by git here; empty: git's
inline void write_results(const std::string& path, const std::string& name, const std::string& device,
                          const std::string& command, const nlohmann::ordered_json& rows,
                          const std::string& commit = {}) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
  const nlohmann::ordered_json document = {
      {"name", name},       {"commit", commit.empty() ? first_line_of("git rev-parse HEAD 2>/dev/null") : commit},
      {"date", date},       {"device", device},
      {"command", command}, {"rows", rows}};
  std::ofstream file(path);
  file << document.dump(2) << '\n';
  file.close();
  if (!file) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace zellige::bench
