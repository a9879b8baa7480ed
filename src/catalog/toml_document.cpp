// SPDX-License-Identifier: Apache-2.0
#include "catalog/toml_document.h"

#include <algorithm>
#include <sstream>

#include <toml++/toml.h>

namespace zellige {

JsonDocument toml_document(const std::string& path) {
  const std::string text = read_text_file(path);
  std::ostringstream json;
  try {
    json << toml::json_formatter{toml::parse(text, path)};
  } catch (const toml::parse_error& error) {
    const auto begin = error.source().begin;
    throw Error(Code::input, "toml",
                path + ": not TOML at line " + std::to_string(begin.line) + ", column " + std::to_string(begin.column) +
                    ": " + std::string(error.description()));
  }
  return JsonDocument::from_text(std::move(json).str(), path);
}

void expect_keys(const JsonValue& table, const std::vector<std::string>& known) {
  JsonObject object(table);
  for (const auto& item : table.raw().items()) {
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    const std::string near = nearest(item.key(), known);
    object.at(item.key())
        .refuse("no such key is known here; " +
                (near.empty() ? "known: " + joined(known) : "did you mean " + in_quotes(near) + "?"));
  }
}

}  // namespace zellige
