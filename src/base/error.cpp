// SPDX-License-Identifier: Apache-2.0
#include "zellige/error.h"

namespace zellige {

std::string_view name(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::internal: return "internal";
    case Code::input: return "input";
    case Code::infeasible: return "infeasible";
    case Code::timeout: return "timeout";
    case Code::solver: return "solver";
    case Code::device: return "device";
    case Code::communication: return "communication";
  }
  return "internal";
}

namespace {

std::string compose(std::string_view where, std::string_view message) {
  std::string text = "[";
  text.append(where).append("] ").append(message);
  return text;
}

}  // namespace

Error::Error(Code code, std::string_view where, std::string_view message)
    : std::runtime_error(compose(where, message)), code_(code) {}

}  // namespace zellige
