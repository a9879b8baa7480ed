// SPDX-License-Identifier: Apache-2.0
#include "catalog/toml_document.h"

#include <algorithm>
#include <sstream>

#include <toml++/toml.h>

namespace zellige {
namespace {

nlohmann::json to_json(const toml::node& node) {
  if (const toml::table* table = node.as_table()) {
    auto json = nlohmann::json::object();
    for (const auto& [key, value] : *table) json[std::string(key.str())] = to_json(value);
    return json;
  }
  if (const toml::array* array = node.as_array()) {
    auto json = nlohmann::json::array();
    for (const toml::node& item : *array) json.push_back(to_json(item));
    return json;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* truth = node.as_boolean()) return truth->get();
  std::ostringstream date_or_time;
  if (const auto* date = node.as_date()) date_or_time << date->get();
  if (const auto* time = node.as_time()) date_or_time << time->get();
  if (const auto* both = node.as_date_time()) date_or_time << both->get();
  return std::move(date_or_time).str();
}

}  // namespace

JsonDocument toml_document(const std::string& path) {
  const std::string text = read_text_file(path);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw Error(Code::input, "toml", printable(path) + ": is empty; it must hold TOML tables");
  }
  try {
    return JsonDocument::from_value(to_json(toml::parse(text, path)), {path, "toml"});
  } catch (const toml::parse_error& error) {
    const auto begin = error.source().begin;
    throw Error(Code::input, "toml",
                printable(path) + ": not TOML at line " + std::to_string(begin.line) + ", column " +
                    std::to_string(begin.column) + ": " + printable(error.description()));
  }
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
