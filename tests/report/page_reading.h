// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace zellige::testing {

/// What read_page.py finds in a page: it parses the text as HTML and as XML, apart from the code that made it. Fails
/// the test (and returns null) when the page is not well-formed or refers to anything outside itself.
nlohmann::json read_page(const std::string& html);

}  // namespace zellige::testing
