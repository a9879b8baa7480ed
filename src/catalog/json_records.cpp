// SPDX-License-Identifier: Apache-2.0
// JSON lists, {"data": [...]} and JSON lines, entry by entry: a manifest of a million entries is never held as a tree.
#include <algorithm>
#include <optional>

#include "base/json.h"
#include "catalog/record.h"

namespace zellige {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kEntriesLookedAt = 1000;  // for the names of fields
constexpr const char* kListField = "data";       // FastVideo wraps its list in an object

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(Code::input, "catalog.read_manifest", in_quotes(path) + " " + what);
}

/// Takes the entries of a text, field by field; a member that returns false ends the parsing.
class EntrySink {
 public:
  virtual ~EntrySink() = default;
  virtual bool field(const std::string& name, const Cell& value) = 0;  ///< nested ones as "outer.inner"
  virtual bool field_twice(const std::string& name) = 0;
  virtual bool entry_ends() = 0;
  virtual bool no_object(std::string_view kind) = 0;  ///< where an entry should be
};

/// Follows the parser's events with a stack of what is open.
class EntryParser final : public nlohmann::json_sax<Json> {
 public:
  /// @param one_entry  the text is an entry (a line); else a list of entries, bare or as the field "data" of an object
  EntryParser(EntrySink& sink, bool one_entry) : sink_(sink), one_entry_(one_entry) {}

  bool found_list() const { return found_list_; }
  const std::string& fault() const { return fault_; }
  std::size_t fault_byte() const { return fault_byte_; }

  bool null() override { return scalar(std::monostate{}, "null"); }
  bool boolean(bool value) override { return scalar(value, value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return scalar(std::int64_t{value}, "a number"); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) return scalar(static_cast<double>(value), "a number");
    return scalar(static_cast<std::int64_t>(value), "a number");
  }
  bool number_float(number_float_t value, const string_t&) override { return scalar(value, "a number"); }
  bool string(string_t& value) override { return scalar(std::string_view(value), "a string"); }
  bool binary(binary_t&) override { return true; }  // no such thing in JSON text

  bool start_object(std::size_t) override {
    if (open_.empty()) return push(one_entry_ ? Open::entry : Open::document);
    if (open_.back() == Open::list) return push(Open::entry);
    if (open_.back() == Open::entry) {
      outer_ = field_;
      return push(Open::inner) && sink_.field(outer_, OtherValue{"an object"});
    }
    return push(Open::skipped);
  }

  bool start_array(std::size_t) override {
    const bool is_list = open_.empty() ? !one_entry_ : open_.back() == Open::document && list_next_;
    if (is_list) {
      found_list_ = true;
      return push(Open::list);
    }
    const bool go_on = scalar(OtherValue{"a list"}, "a list");
    return push(Open::skipped) && go_on;
  }

  bool key(string_t& key) override {
    switch (open_.back()) {
      case Open::document: list_next_ = key == kListField; return true;
      case Open::entry: field_ = key; break;
      case Open::inner: field_ = outer_ + "." + key; break;
      default: return true;
    }
    if (std::find(fields_.begin(), fields_.end(), field_) != fields_.end()) return sink_.field_twice(field_);
    fields_.push_back(field_);
    return true;
  }

  bool end_object() override { return pop(); }
  bool end_array() override { return pop(); }

  bool parse_error(std::size_t byte, const std::string&, const Json::exception& error) override {
    fault_ = error.what();
    fault_byte_ = byte;
    return false;
  }

 private:
  enum class Open { document, list, entry, inner, skipped };

  bool push(Open open) {
    open_.push_back(open);
    if (open == Open::entry) fields_.clear();
    return true;
  }

  bool pop() {
    const Open closed = open_.back();
    open_.pop_back();
    return closed != Open::entry || sink_.entry_ends();
  }

  bool scalar(const Cell& value, std::string_view kind) {
    if (open_.empty()) return one_entry_ ? sink_.no_object(kind) : true;
    switch (open_.back()) {
      case Open::entry:
      case Open::inner: return sink_.field(field_, value);
      case Open::list: return sink_.no_object(kind);
      default: return true;
    }
  }

  EntrySink& sink_;
  bool one_entry_;
  std::vector<Open> open_;
  bool list_next_ = false;
  bool found_list_ = false;
  std::string field_, outer_;
  std::vector<std::string> fields_;  // of the entry so far
  std::string fault_;
  std::size_t fault_byte_ = 0;
};

/// Collects the names of the first entries' fields.
class NameSink final : public EntrySink {
 public:
  bool field(const std::string& name, const Cell&) override {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    return true;
  }
  bool field_twice(const std::string&) override { return true; }  // noticed again, with its row, when records are read
  bool entry_ends() override { return ++entries < kEntriesLookedAt; }
  bool no_object(std::string_view) override { return ++entries < kEntriesLookedAt; }

  std::vector<std::string> names;
  std::int64_t entries = 0;
};

/// Puts the wanted fields of each entry in their places and hands them on.
class RecordMaker final : public EntrySink {
 public:
  RecordMaker(const std::vector<std::string>& wanted, RecordSink& sink, bool lines)
      : wanted_(wanted), sink_(sink), cells_(wanted.size()), texts_(wanted.size()), lines_(lines) {}

  bool field(const std::string& name, const Cell& value) override {
    const auto found = std::find(wanted_.begin(), wanted_.end(), name);
    if (found == wanted_.end()) return true;
    const auto slot = static_cast<std::size_t>(found - wanted_.begin());
    cells_[slot] = value;
    if (const auto* text = std::get_if<std::string_view>(&value)) {
      texts_[slot] = *text;  // the parser reuses its buffer
      cells_[slot] = std::string_view(texts_[slot]);
    }
    return true;
  }
  bool field_twice(const std::string& name) override {
    fault_ = "the entry has field " + in_quotes(name) + " twice";
    return true;
  }
  bool entry_ends() override { return lines_ || hand_on(); }
  bool no_object(std::string_view kind) override {
    fault_ = std::string("the entry is ").append(kind) + ", not an object";
    return lines_ || hand_on();
  }

  /// Ends an entry. A line's end is known to its reader only: text may follow the entry.
  bool hand_on() {
    ++row_;
    if (fault_.empty()) {
      sink_.record(row_, cells_);
    } else {
      sink_.broken(row_, std::move(fault_));
    }
    std::fill(cells_.begin(), cells_.end(), Cell{});
    fault_.clear();
    return true;
  }
  void set_fault(std::string fault) { fault_ = std::move(fault); }

 private:
  const std::vector<std::string>& wanted_;
  RecordSink& sink_;
  std::int64_t row_ = 0;
  std::vector<Cell> cells_;
  std::vector<std::string> texts_;
  std::string fault_;
  bool lines_;
};

/// What the library says, without its prefix ("[json.exception.parse_error.101] ").
std::string fault_text(const EntryParser& parser) {
  const std::string& fault = parser.fault();
  const auto bracket = fault.find("] ");
  return bracket == std::string::npos ? fault : fault.substr(bracket + 2);
}

void parse_document(const std::string& path, const std::string& text, EntrySink& sink) {
  EntryParser parser(sink, false);
  Json::sax_parse(text, &parser);
  if (!parser.fault().empty()) refuse(path, "is not JSON: " + fault_text(parser));
  if (!parser.found_list())
    refuse(path, "holds no list of entries: neither a JSON list nor an object with a list 'data'");
}

/// Calls `take` with every line that holds something, until it returns false.
template <class Take>
void for_each_line(std::string_view text, Take take) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty()) {
    const auto newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos && !take(line)) return;
  }
}

}  // namespace

std::vector<std::string> json_field_names(const std::string& path, bool lines) {
  const std::string text = read_text_file(path);
  NameSink sink;
  if (!lines) {
    parse_document(path, text, sink);
  } else {
    for_each_line(text, [&](std::string_view line) {
      EntryParser parser(sink, true);
      Json::sax_parse(line, &parser);
      if (!parser.fault().empty()) ++sink.entries;
      return sink.entries < kEntriesLookedAt;
    });
  }
  return sink.names;
}

void read_json(const std::string& path, bool lines, const std::vector<std::string>& wanted, RecordSink& sink) {
  const std::string text = read_text_file(path);
  RecordMaker maker(wanted, sink, lines);
  if (!lines) return parse_document(path, text, maker);
  for_each_line(text, [&](std::string_view line) {
    EntryParser parser(maker, true);
    Json::sax_parse(line, &parser);
    if (!parser.fault().empty()) maker.set_fault("the line is not JSON: " + fault_text(parser));
    return maker.hand_on();
  });
}

}  // namespace zellige
