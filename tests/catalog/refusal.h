// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "zellige/error.h"

namespace zellige::testing {

/// The message of the input error that `call` throws; says so when it throws none or another code.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == Code::input ? error.what() : std::string("wrong code: ") + error.what();
  }
  return "nothing was refused";
}

}  // namespace zellige::testing
