// SPDX-License-Identifier: Apache-2.0
#include "testing/json_schema.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>

namespace zellige::testing {
namespace {

using Json = nlohmann::json;

const Json& schema_named(const std::string& file) {
  static std::map<std::string, Json> loaded;
  if (!loaded.contains(file)) {
    std::ifstream stream(std::string(ZELLIGE_SOURCE_DIR) + "/docs/schema/" + file);
    if (!stream) throw std::runtime_error("docs/schema/" + file + " is not there");
    loaded[file] = Json::parse(stream);
  }
  return loaded[file];
}

bool has_type(const Json& value, const Json& type) {
  if (type.is_array()) {
    return std::any_of(type.begin(), type.end(), [&](const Json& one) { return has_type(value, one); });
  }
  const std::string name = type;
  return (name == "object" && value.is_object()) || (name == "array" && value.is_array()) ||
         (name == "string" && value.is_string()) || (name == "integer" && value.is_number_integer()) ||
         (name == "number" && value.is_number()) || (name == "boolean" && value.is_boolean()) ||
         (name == "null" && value.is_null());
}

class Check {
 public:
  explicit Check(std::string file) : file_(std::move(file)) {}

  std::string why_not(const Json& value, const Json& schema, const std::string& path) const {
    if (schema.contains("$ref")) return follow(value, schema.at("$ref"), path);
    refuse_unknown_words(schema);
    if (schema.contains("type") && !has_type(value, schema["type"])) return path + ": no " + schema["type"].dump();
    if (schema.contains("const") && value != schema["const"]) return path + ": not " + schema["const"].dump();
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
      return path + ": none of " + schema["enum"].dump();
    }
    if (schema.contains("minimum") && value.is_number() && value < schema["minimum"]) return path + ": too small";
    if (schema.contains("maximum") && value.is_number() && value > schema["maximum"]) return path + ": too large";
    if (schema.contains("minLength") && value.get<std::string>().size() < schema["minLength"])
      return path + ": too short";
    if (value.is_object()) return why_not_object(value, schema, path);
    if (value.is_array()) return why_not_array(value, schema, path);
    return "";
  }

 private:
  static void refuse_unknown_words(const Json& schema) {
    static const std::set<std::string> known = {
        "type",  "const",    "enum",     "required", "properties", "additionalProperties",
        "items", "minItems", "maxItems", "minimum",  "maximum",    "minLength",
        "$defs", "$schema",  "$id",      "title",    "description"};
    for (const auto& item : schema.items()) {
      if (!known.contains(item.key())) throw std::runtime_error("schema word " + item.key() + " is not known here");
    }
  }

  std::string follow(const Json& value, const std::string& reference, const std::string& path) const {
    const auto hash = reference.find('#');
    const std::string file = hash == 0 ? file_ : reference.substr(0, hash);
    const Json& schema = schema_named(file);
    const Json::json_pointer pointer(hash == std::string::npos ? "" : reference.substr(hash + 1));
    return Check(file).why_not(value, schema.at(pointer), path);
  }

  std::string why_not_object(const Json& value, const Json& schema, const std::string& path) const {
    for (const Json& field : schema.value("required", Json::array())) {
      if (!value.contains(field.get<std::string>())) return path + "/" + field.get<std::string>() + ": missing";
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& item : value.items()) {
      const std::string below = path + "/" + item.key();
      if (properties.contains(item.key())) {
        if (std::string reason = why_not(item.value(), properties[item.key()], below); !reason.empty()) return reason;
      } else if (schema.value("additionalProperties", Json(true)) == Json(false)) {
        return below + ": not a field";
      }
    }
    return "";
  }

  std::string why_not_array(const Json& value, const Json& schema, const std::string& path) const {
    if (value.size() < schema.value("minItems", std::size_t{0})) return path + ": too few";
    if (value.size() > schema.value("maxItems", value.size())) return path + ": too many";
    for (std::size_t i = 0; schema.contains("items") && i < value.size(); ++i) {
      std::string reason = why_not(value[i], schema["items"], path + "/" + std::to_string(i));
      if (!reason.empty()) return reason;
    }
    return "";
  }

  std::string file_;
};

}  // namespace

std::string why_not_schema(const Json& document, const std::string& schema_file) {
  return Check(schema_file).why_not(document, schema_named(schema_file), "");
}

}  // namespace zellige::testing
