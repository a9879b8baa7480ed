// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "zellige/error.h"
#include "zellige/text.h"

namespace zellige {

/// JSON to write: keys keep the order in which they were set.
using OrderedJson = nlohmann::ordered_json;

/// What a document was read from, for messages.
struct JsonSource {
  std::string name;             ///< of the file
  std::string format = "json";  ///< "toml" for a TOML file read into the same form
};

/// A value of a document being read, and where it stands, so that every refusal names file, field and value.
/// Strict: an accessor throws Code::input on a wrong type; `finish` on fields that nobody asked for.
/// Cheap to copy; the document outlives it.
class JsonValue {
 public:
  JsonValue(const nlohmann::json* value, const JsonSource* source, std::string path)
      : value_(value), source_(source), path_(std::move(path)) {}

  /// @param least,most  inclusive range; the default is what a double holds exactly.
  std::int64_t integer(std::int64_t least = -(std::int64_t{1} << 53), std::int64_t most = std::int64_t{1} << 53) const;
  double number() const;  ///< integer or fraction, finite
  bool boolean() const;
  /// One line of printable text (why_not_printable): whatever a file says is shown to people sooner or later.
  const std::string& string() const;
  std::vector<JsonValue> array() const;
  bool is_null() const { return value_->is_null(); }

  /// Throws Code::input: "FILE: FIELD is VALUE; EXPECTED".
  [[noreturn]] void refuse(std::string_view expected) const;
  const std::string& path() const { return path_; }
  const nlohmann::json& raw() const { return *value_; }

 private:
  friend class JsonObject;
  const nlohmann::json* value_;
  const JsonSource* source_;
  std::string path_;
};

/// An object being read: each field is taken once, then `finish` refuses what is left (misspelt or unknown fields).
class JsonObject {
 public:
  explicit JsonObject(const JsonValue& value);  ///< refuses anything that is no object

  JsonValue at(std::string_view field);  ///< refuses a missing field, naming it and the nearest one there
  bool has(std::string_view field);      ///< for optional fields; take them with `at`
  void finish() const;

  /// Takes "format" and "version" and refuses any other than these.
  void expect_format(std::string_view format, int version);

 private:
  std::string path_of(std::string_view field) const;

  JsonValue value_;
  std::vector<std::string> taken_;
  std::vector<std::string> known_;  // taken, or asked for: what may be meant by a misspelt one
};

/// A parsed file or text. Refuses malformed JSON (with line and column), duplicate keys, and trailing text.
class JsonDocument {
 public:
  static JsonDocument from_file(const std::string& path);
  static JsonDocument from_text(std::string text, std::string source_name);
  /// What another format's parser made of a file. Numbers may be infinite or NaN; `number` refuses them.
  static JsonDocument from_value(nlohmann::json value, JsonSource source);

  JsonValue root() const { return JsonValue(&value_, &source_, ""); }
  const nlohmann::json& raw() const { return value_; }

 private:
  JsonDocument() = default;
  JsonSource source_;
  nlohmann::json value_;
};

/// A whole file as text. Errors: Code::input naming the path and the system's reason.
std::string read_text_file(const std::string& path);
/// Writes the text beside the path first, then renames, so that a reader never sees half a file.
void write_text_file(const std::string& path, std::string_view text);

/// Two spaces of indent and a newline at the end: how all our files are written.
std::string pretty(const OrderedJson& json);
/// Compact, keys sorted, ASCII (other characters as \uXXXX): what digests are taken over.
std::string canonical(const nlohmann::json& json);

}  // namespace zellige
