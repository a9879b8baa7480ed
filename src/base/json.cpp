// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace zellige {
namespace {

constexpr std::size_t kLongestQuote = 80;
constexpr std::size_t kDeepestNesting = 64;  // our files nest 5 deep; hostile ones must not exhaust the stack

std::string shown(const nlohmann::json& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {  // TOML has these, JSON writes them as null
    const double number = value.get<double>();
    return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  }
  std::string text = printable(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  if (text.size() > kLongestQuote) text = printable(text.substr(0, kLongestQuote)) + "...";
  return text;
}

// What the parser's own message adds to the place that is named already: what it met, and what it wanted instead.
std::string without_prefix(std::string_view message) {
  const std::string_view place = "column ";
  if (const auto column = message.find(place); column != std::string_view::npos) {
    if (const auto colon = message.find(": ", column); colon != std::string_view::npos) {
      return printable(message.substr(colon + 2));
    }
  }
  const auto bracket = message.find("] ");
  return printable(bracket == std::string_view::npos ? message : message.substr(bracket + 2));
}

std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto newline = before.rfind('\n');
  const auto column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

}  // namespace

void JsonValue::refuse(std::string_view expected) const {
  std::string message =
      printable(source_->name) + ": " + (path_.empty() ? "the document" : path_) + " is " + shown(*value_) + "; ";
  throw Error(Code::input, source_->format, message.append(expected));
}

std::int64_t JsonValue::integer(std::int64_t least, std::int64_t most) const {
  if (!value_->is_number_integer()) refuse("it must be a whole number (no fraction, no quotes)");
  // Unsigned values above 2^63 would wrap: compare before converting.
  const bool too_big =
      value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  const std::int64_t value = too_big ? INT64_MAX : value_->get<std::int64_t>();
  if (too_big || value < least || value > most) {
    refuse("it must be between " + std::to_string(least) + " and " + std::to_string(most));
  }
  return value;
}

double JsonValue::number() const {
  if (!value_->is_number()) refuse("it must be a number");
  const double value = value_->get<double>();
  if (!std::isfinite(value)) refuse("it must be a finite number");
  return value;
}

bool JsonValue::boolean() const {
  if (!value_->is_boolean()) refuse("it must be true or false");
  return value_->get<bool>();
}

const std::string& JsonValue::string() const {
  if (!value_->is_string()) refuse("it must be a string");
  const auto& text = value_->get_ref<const std::string&>();
  if (const std::string why = why_not_printable(text); !why.empty()) {
    refuse("it must be one line of printable text, without " + why);
  }
  return text;
}

std::vector<JsonValue> JsonValue::array() const {
  if (!value_->is_array()) refuse("it must be an array");
  std::vector<JsonValue> items;
  items.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) {
    items.emplace_back(&(*value_)[i], source_, path_ + "[" + std::to_string(i) + "]");
  }
  return items;
}

JsonObject::JsonObject(const JsonValue& value) : value_(value) {
  if (!value.value_->is_object()) value.refuse("it must be an object");
}

bool JsonObject::has(std::string_view field) {
  if (std::find(known_.begin(), known_.end(), field) == known_.end()) known_.emplace_back(field);
  return value_.value_->contains(field);
}

std::string JsonObject::path_of(std::string_view field) const {
  return (value_.path_.empty() ? "" : value_.path_ + ".") + printable(field);
}

JsonValue JsonObject::at(std::string_view field) {
  const auto found = value_.value_->find(field);
  const std::string path = path_of(field);
  if (found == value_.value_->end()) {
    std::vector<std::string> there;
    for (const auto& item : value_.value_->items()) {
      if (std::find(taken_.begin(), taken_.end(), item.key()) == taken_.end()) there.push_back(item.key());
    }
    const std::string near = nearest(field, there);
    throw Error(Code::input, value_.source_->format,
                printable(value_.source_->name) + ": " + path + " is missing" +
                    (near.empty() ? "" : "; is " + in_quotes(near) + " misspelt?"));
  }
  taken_.emplace_back(field);
  if (std::find(known_.begin(), known_.end(), field) == known_.end()) known_.emplace_back(field);
  return JsonValue(&*found, value_.source_, path);
}

void JsonObject::finish() const {
  for (const auto& item : value_.value_->items()) {
    if (std::find(taken_.begin(), taken_.end(), item.key()) != taken_.end()) continue;
    const std::string near = nearest(item.key(), known_);
    throw Error(Code::input, value_.source_->format,
                printable(value_.source_->name) + ": " + path_of(item.key()) + " = " + shown(item.value()) +
                    " is not a field here; " +
                    (near.empty() ? "fields: " + joined(known_) : "did you mean " + in_quotes(near) + "?"));
  }
}

void JsonObject::expect_format(std::string_view format, int version) {
  if (!has("format")) {
    throw Error(Code::input, value_.source_->format,
                printable(value_.source_->name) + ": format is missing; it must be \"" + std::string(format) + "\"");
  }
  const JsonValue format_value = at("format");
  if (format_value.string() != format) format_value.refuse("it must be \"" + std::string(format) + "\"");
  const JsonValue version_value = at("version");
  if (version_value.integer() != version) {
    version_value.refuse("this build reads version " + std::to_string(version));
  }
}

JsonDocument JsonDocument::from_file(const std::string& path) { return from_text(read_text_file(path), path); }

namespace {

/// Goes through a text without building it, and refuses a key that comes twice in one object and deep nesting. (The
/// library's own callback parser looks through an array's elements whenever one ends: quadratic in a batch's length.)
class StrictnessCheck final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit StrictnessCheck(const std::string& source) : source_(source) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second) {
      throw Error(Code::input, "json", source_ + ": field " + in_quotes(key) + " comes twice in one object");
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;  // the parser proper says it better
  }

 private:
  bool open() {
    if (keys_.size() >= kDeepestNesting) {
      throw Error(Code::input, "json", source_ + ": nested deeper than " + std::to_string(kDeepestNesting));
    }
    keys_.emplace_back();
    return true;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  const std::string& source_;
  std::vector<std::set<std::string>> keys_;  // of all that is open
};

}  // namespace

JsonDocument JsonDocument::from_text(std::string text, std::string source_name) {
  using Json = nlohmann::json;
  JsonDocument document;
  document.source_.name = std::move(source_name);
  const std::string source = printable(document.source_.name);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw Error(Code::input, "json", source + ": is empty; it must hold one JSON object");
  }
  StrictnessCheck check(source);
  try {
    Json::sax_parse(text, &check);
    document.value_ = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Error(Code::input, "json",
                source + ": not JSON at " + line_and_column(text, error.byte) + ": " + without_prefix(error.what()));
  } catch (const Json::out_of_range& error) {
    throw Error(Code::input, "json", source + ": a number is too large: " + without_prefix(error.what()));
  }
  return document;
}

JsonDocument JsonDocument::from_value(nlohmann::json value, JsonSource source) {
  JsonDocument document;
  document.value_ = std::move(value);
  document.source_ = std::move(source);
  return document;
}

std::string read_text_file(const std::string& path) {
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) {
    throw Error(Code::input, "base.read", in_quotes(path) + " is a directory; a file is needed");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(Code::input, "base.read", in_quotes(path) + " can't be opened: " + std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) throw Error(Code::input, "base.read", in_quotes(path) + " can't be read: " + std::strerror(errno));
  return std::move(text).str();
}

void write_text_file(const std::string& path, std::string_view text) {
  const auto fail = [&](const char* what) {
    throw Error(Code::input, "base.write", in_quotes(path) + " " + what + ": " + std::strerror(errno));
  };
  // A device or a pipe (such as /dev/stdout) can't be replaced by renaming.
  std::error_code status;
  const bool replace = !std::filesystem::exists(path, status) || std::filesystem::is_regular_file(path, status);
  const std::string target = replace ? path + ".part" : path;
  {
    std::ofstream file(target, std::ios::binary | std::ios::trunc);
    if (!file) fail("can't be written");
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.flush();
    if (!file) fail("can't be written in full");
  }
  if (replace && std::rename(target.c_str(), path.c_str()) != 0) fail("can't be put in place");
}

namespace {

// A string that is not UTF-8 (a file name, say) can't be written as JSON: refused rather than changed.
template <class Json>
std::string dump(const Json& json, int indent, bool ascii) {
  try {
    return json.dump(indent, ' ', ascii);
  } catch (const nlohmann::json::type_error& error) {
    throw Error(Code::input, "json", std::string("text that is not UTF-8 can't be written as JSON: ") + error.what());
  }
}

}  // namespace

std::string pretty(const OrderedJson& json) { return dump(json, 2, false) + "\n"; }

std::string canonical(const nlohmann::json& json) { return dump(json, -1, true); }

}  // namespace zellige
