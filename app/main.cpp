// SPDX-License-Identifier: Apache-2.0
// The command: parses, calls one subcommand, and turns errors into exit codes (docs/cli.md).
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include <fmt/core.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "subcommands.h"
#include "zellige/error.h"
#include "zellige/log.h"
#include "zellige/version.h"

namespace {

using zellige::Code;

// Logs and progress go to stderr, in colour only where that is a terminal (spdlog finds out).
void send_log_to_stderr(bool verbose) {
  auto logger = spdlog::stderr_color_mt("zellige");
  logger->set_pattern("%^%l%$: %v");
  logger->set_level(verbose ? spdlog::level::debug : spdlog::level::warn);
  zellige::set_log_sink([logger](zellige::LogLevel level, std::string_view line) {
    const auto mapped = level == zellige::LogLevel::debug  ? spdlog::level::debug
                        : level == zellige::LogLevel::info ? spdlog::level::info
                                                           : spdlog::level::warn;
    logger->log(mapped, "{}", line);
  });
}

int fail(Code code, const std::string& message, bool json) {
  fmt::print(stderr, "zellige: {}\n", message);
  if (json) {
    nlohmann::ordered_json body = {{"code", static_cast<int>(code)}, {"error", message}};
    fmt::print("{}\n", body.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App root("Zellige: decides for every sequence of a step how it is split and which ranks share it.", "zellige");
  root.set_version_flag("--version", std::string("zellige ") + std::string(zellige::version()));
  root.require_subcommand(1);
  root.fallthrough();
  bool verbose = false;
  root.add_flag("-v,--verbose", verbose, "Say on stderr what is being done");

  zellige::app::Run chosen;
  zellige::app::add_catalog(root, chosen);
  zellige::app::add_batch(root, chosen);
  zellige::app::add_plan(root, chosen);
  zellige::app::add_check(root, chosen);
  zellige::app::add_compare(root, chosen);
  zellige::app::add_explain(root, chosen);
  zellige::app::add_train(root, chosen);

  // Looked up by hand, so that an error of the command line itself is answered in JSON too.
  const bool json =
      std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return root.exit(asked);
  } catch (const CLI::ParseError& error) {
    const CLI::App* at = &root;
    if (!root.get_subcommands().empty()) at = root.get_subcommands().front();
    return fail(Code::input,
                fmt::format("{}\nSee: {} --help", error.what(), at == &root ? "zellige" : "zellige " + at->get_name()),
                json);
  }
  try {
    send_log_to_stderr(verbose);
    const Code code = chosen();
    // A full disk behind stdout shows only when the last of it is written.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return fail(Code::input, "stdout can't be written", false);
    return static_cast<int>(code);
  } catch (const zellige::Error& error) {
    return fail(error.code(), error.what(), json);
  } catch (const std::bad_alloc&) {
    return fail(Code::internal, "out of host memory", json);
  } catch (const std::exception& error) {
    return fail(Code::internal, std::string("this is a bug of ours, please report it: ") + error.what(), json);
  }
}
