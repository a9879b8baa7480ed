// SPDX-License-Identifier: Apache-2.0
#include "outputs.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/core.h>

#include "zellige/error.h"
#include "zellige/text.h"

namespace zellige::app {
namespace {

namespace fs = std::filesystem;

bool is_stdout(const NamedFile& file) { return file.path == "-"; }

// Whether writing one writes the other. Devices and pipes may be named by as many as like.
bool same_file(const std::string& one, const std::string& other) {
  std::error_code status;
  if (fs::exists(one, status) && !fs::is_regular_file(one, status)) return false;
  if (fs::equivalent(one, other, status)) return true;
  return fs::weakly_canonical(one, status) == fs::weakly_canonical(other, status);
}

// Why a file can't be written at this path; empty when it can.
std::string why_not_writable(const std::string& path) {
  std::error_code status;
  if (fs::is_directory(path, status)) return "it is a directory";
  const bool exists = fs::exists(path, status);
  const fs::path parent = fs::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!exists && !fs::is_directory(folder, status)) return std::strerror(fs::exists(folder, status) ? ENOTDIR : ENOENT);
  if (exists && access(path.c_str(), W_OK) != 0) return std::strerror(errno);
  // A file is written beside its place first, and then put there.
  if ((!exists || fs::is_regular_file(path, status)) && access(folder.c_str(), W_OK | X_OK) != 0) {
    return fmt::format("its folder: {}", std::strerror(errno));
  }
  return "";
}

[[noreturn]] void fail_to_write(const std::string& path, std::string_view why) {
  throw Error(Code::input, "write", fmt::format("{} can't be written: {}", in_quotes(path), why));
}

}  // namespace

void check_outputs(std::string_view where, const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs,
                   bool json) {
  const auto refuse = [&](const std::string& message) { throw Error(Code::input, where, message); };
  std::string stdout_taken_by = json ? "--json" : "";
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    if (output.path.empty()) continue;
    if (is_stdout(output)) {
      if (!stdout_taken_by.empty()) {
        refuse(fmt::format("{} and {} - both write to stdout; give {} a file", stdout_taken_by, output.option,
                           output.option));
      }
      stdout_taken_by = output.option + " -";
      continue;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (outputs[j].path.empty() || is_stdout(outputs[j]) || !same_file(outputs[j].path, output.path)) continue;
      refuse(fmt::format("{} and {} both name {}; give them a file each", outputs[j].option, output.option,
                         in_quotes(output.path)));
    }
    for (const NamedFile& input : inputs) {
      std::error_code status;
      if (!fs::is_regular_file(input.path, status) || !same_file(input.path, output.path)) continue;
      refuse(fmt::format("{} would overwrite {}, which is read ({})", output.option, in_quotes(output.path),
                         input.option));
    }
    if (const std::string why = why_not_writable(output.path); !why.empty()) {
      refuse(fmt::format("{} {} can't be written: {}", output.option, in_quotes(output.path), why));
    }
  }
}

bool takes_stdout(const std::vector<NamedFile>& outputs) {
  for (const NamedFile& output : outputs) {
    if (is_stdout(output)) return true;
  }
  return false;
}

void write_output(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  std::error_code status;
  const bool replaces = !fs::exists(path, status) || fs::is_regular_file(path, status);
  const std::string target = replaces ? path + ".part" : path;
  std::ofstream file(target, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) fail_to_write(path, std::strerror(errno));
  if (replaces && std::rename(target.c_str(), path.c_str()) != 0) fail_to_write(path, std::strerror(errno));
}

}  // namespace zellige::app
