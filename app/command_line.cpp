// SPDX-License-Identifier: Apache-2.0
#include "command_line.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "zellige/error.h"
#include "zellige/log.h"
#include "zellige/text.h"
#include "zellige/version.h"

namespace zellige::app {
namespace {

// Logs and progress go to stderr, in colour only where that is a terminal (spdlog finds out).
void send_log_to_stderr(bool verbose) {
  auto logger = spdlog::stderr_color_mt("zellige");
  logger->set_pattern("%^%l%$: %v");
  logger->set_level(verbose ? spdlog::level::debug : spdlog::level::warn);
  set_log_sink([logger](LogLevel level, std::string_view line) {
    const auto mapped = level == LogLevel::debug  ? spdlog::level::debug
                        : level == LogLevel::info ? spdlog::level::info
                                                  : spdlog::level::warn;
    logger->log(mapped, "{}", line);
  });
}

// Runs `action` and turns what it throws into a message and a code.
int reported(bool json, const std::function<int()>& action) {
  try {
    return action();
  } catch (const Error& error) {
    return fail(error.code(), error.what(), json);
  } catch (const std::bad_alloc&) {
    return fail(Code::internal, "out of host memory", json);
  } catch (const std::exception& error) {
    return fail(Code::internal, std::string("this is a bug of ours, please report it: ") + error.what(), json);
  }
}

// A word that is no subcommand: CLI11 would only say that one is required.
void refuse_unknown_subcommand(const CLI::App& root, const char* word) {
  if (word == nullptr) return;
  std::vector<std::string> names;
  for (const CLI::App* subcommand : root.get_subcommands({})) names.push_back(subcommand->get_name());
  if (std::find(names.begin(), names.end(), word) != names.end()) return;
  const std::string near = nearest(word, names);
  throw Error(Code::input, "zellige",
              fmt::format("no subcommand {}; {}there are {}\nSee: zellige --help", in_quotes(word),
                          near.empty() ? "" : fmt::format("did you mean {}? ", in_quotes(near)), joined(names)));
}

}  // namespace

int fail(Code code, const std::string& message, bool json) {
  fmt::print(stderr, "zellige: {}\n", printable_lines(message));
  if (json) {
    nlohmann::ordered_json body = {{"code", static_cast<int>(code)}, {"error", printable_lines(message)}};
    fmt::print("{}\n", body.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    std::fflush(stdout);  // whoever calls may end the process without its farewells
  }
  return static_cast<int>(code);
}

const char* subcommand_word(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "-h" || word == "--help" || word == "--version") return nullptr;
    if (!word.starts_with('-')) return argv[i];
  }
  return nullptr;
}

int run_command_line(int argc, char** argv, const std::function<void()>& before,
                     const std::function<void(CLI::App&, Run&)>& add) {
  CLI::App root("Zellige: decides for every sequence of a step how it is split and which ranks share it.", "zellige");
  root.set_version_flag("--version", std::string("zellige ") + std::string(version()));
  root.require_subcommand(1);
  root.fallthrough();
  bool verbose = false;
  root.add_flag("-v,--verbose", verbose, "Say on stderr what is being done");
  Run chosen;
  add(root, chosen);

  // Looked up by hand, so that an error of the command line itself is answered in JSON too.
  const bool json =
      std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
  return reported(json, [&] {
    before();
    refuse_unknown_subcommand(root, subcommand_word(argc, argv));
    try {
      root.parse(argc, argv);
    } catch (const CLI::Success& asked) {  // --help, --version
      return root.exit(asked);
    } catch (const CLI::ParseError& error) {
      const CLI::App* at = &root;
      if (!root.get_subcommands().empty()) at = root.get_subcommands().front();
      return fail(
          Code::input,
          fmt::format("{}\nSee: {} --help", error.what(), at == &root ? "zellige" : "zellige " + at->get_name()), json);
    }
    send_log_to_stderr(verbose);
    const Code code = chosen();
    // A full disk behind stdout shows only when the last of it is written.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return fail(Code::input, "stdout can't be written", false);
    return static_cast<int>(code);
  });
}

}  // namespace zellige::app
