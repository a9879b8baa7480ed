// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "catalog/record.h"

namespace zellige {
namespace {

constexpr const char* kWanted = "; a manifest has a record for each image or clip (CSV, JSON, JSON lines or Parquet)";
constexpr std::size_t kLookAt = 1 << 20;  // a first line longer than this is no line of a JSON lines file

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(Code::input, "catalog.read_manifest", in_quotes(path) + " " + what);
}

bool has_extension(const std::string& path, std::initializer_list<std::string_view> extensions) {
  std::string extension = std::filesystem::path(path).extension();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

std::string_view without_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

// A file that begins with '{': one entry a line, or one document over many lines.
bool is_json_lines(const std::string& path, std::string_view text) {
  if (has_extension(path, {".jsonl", ".ndjson", ".jsonlines"})) return true;
  const auto newline = text.find('\n');
  const std::string_view first_line = text.substr(0, newline);
  const std::string_view rest = newline == std::string_view::npos ? "" : without_blanks(text.substr(newline));
  return rest.starts_with('{') && nlohmann::json::accept(first_line);
}

}  // namespace

Container container_of(const std::string& path) {
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) refuse(path, "is a directory; a manifest file is needed");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, std::string("can't be opened: ") + std::strerror(errno));
  std::string head(kLookAt, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad()) refuse(path, std::string("can't be read: ") + std::strerror(errno));
  if (head.empty()) refuse(path, std::string("is empty") + kWanted);

  if (head.starts_with("PAR1")) return Container::parquet;
  if (has_extension(path, {".parquet"})) refuse(path, "is named Parquet but does not begin as a Parquet file does");
  if (head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF")) refuse(path, "is UTF-16; save it as UTF-8");
  const std::string_view text = without_blanks(std::string_view(head).substr(head.starts_with("\xEF\xBB\xBF") ? 3 : 0));
  if (text.empty()) refuse(path, std::string("holds nothing but blanks") + kWanted);
  if (has_extension(path, {".json"}) && text[0] != '{' && text[0] != '[') {
    refuse(path, "is named JSON but begins with neither '[' nor '{'");
  }
  if (text[0] == '[') return Container::json;
  if (text[0] == '{') return is_json_lines(path, text) ? Container::json_lines : Container::json;
  if (has_extension(path, {".jsonl", ".ndjson", ".jsonlines"})) return Container::json_lines;
  if (text.find('\0') != std::string_view::npos) refuse(path, std::string("is binary, and no Parquet file") + kWanted);
  return Container::csv;
}

std::vector<std::string> field_names(const std::string& path, Container container) {
  switch (container) {
    case Container::csv: return csv_field_names(path);
    case Container::parquet: return parquet_field_names(path);
    case Container::json: return json_field_names(path, false);
    case Container::json_lines: return json_field_names(path, true);
  }
  return {};
}

void read_records(const std::string& path, Container container, const std::vector<std::string>& wanted,
                  RecordSink& sink) {
  switch (container) {
    case Container::csv: return read_csv(path, wanted, sink);
    case Container::parquet: return read_parquet(path, wanted, sink);
    case Container::json: return read_json(path, false, wanted, sink);
    case Container::json_lines: return read_json(path, true, wanted, sink);
  }
}

}  // namespace zellige
