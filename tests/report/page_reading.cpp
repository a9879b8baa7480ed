// SPDX-License-Identifier: Apache-2.0
#include "report/page_reading.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/json.h"
#include "catalog/scratch.h"

namespace zellige::testing {

nlohmann::json read_page(const std::string& html) {
  const Scratch scratch;
  const std::string page = scratch.file("page.html", html);
  const std::string out = scratch.path("out.json"), errors = scratch.path("errors");
  const std::string command =
      std::string(ZELLIGE_PYTHON) + " " + ZELLIGE_TEST_DATA + "/read_page.py " + page + " > " + out + " 2> " + errors;
  if (std::system(command.c_str()) != 0) {
    ADD_FAILURE() << read_text_file(errors);
    return nullptr;
  }
  return nlohmann::json::parse(read_text_file(out));
}

}  // namespace zellige::testing
