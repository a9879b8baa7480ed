// SPDX-License-Identifier: Apache-2.0
#include "zellige/env.h"

#include <charconv>
#include <cstdlib>

#include "zellige/error.h"

namespace zellige {
namespace {

std::optional<std::string> text_variable(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<int> number_variable(const char* variable) {
  const auto value = text_variable(variable);
  if (!value) return std::nullopt;
  int number = 0;
  const char* end = value->data() + value->size();
  const auto [rest, error] = std::from_chars(value->data(), end, number);
  if (error != std::errc() || rest != end || number < 0) {
    throw Error(
        Code::input, "base.env",
        std::string("environment variable ") + variable + " is '" + *value + "'; it must be a whole number, 0 or more");
  }
  return number;
}

}  // namespace

Env Env::from_process() {
  Env env;
  env.ortools = text_variable("ZELLIGE_ORTOOLS");
  env.flash_attention_3 = text_variable("ZELLIGE_FLASH_ATTENTION_3");
  env.rank = number_variable("RANK");
  env.world_size = number_variable("WORLD_SIZE");
  env.local_rank = number_variable("LOCAL_RANK");
  env.master_address = text_variable("MASTER_ADDR");
  env.master_port = number_variable("MASTER_PORT");
  env.agent_store = text_variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  env.restart_count = number_variable("TORCHELASTIC_RESTART_COUNT").value_or(0);
  return env;
}

}  // namespace zellige
