// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace zellige {

/// A value whose kind describes no sample (a list, an object, a blob), by the name of that kind.
struct OtherValue {
  std::string_view kind;
};

/// One value of a record as its file holds it; views are valid during the call that hands them over.
/// monostate: the record has no such field, or null. CSV cells are always text.
using Cell = std::variant<std::monostate, std::string_view, std::int64_t, double, bool, OtherValue>;

/// Takes records one by one, so that a reader never holds more than a piece of its file.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  /// @param row    from 1, header and blank lines not counted
  /// @param cells  [wanted columns], in their order
  virtual void record(std::int64_t row, std::span<const Cell> cells) = 0;
  /// A record that can't be read as one. `reason` names the column where there is one.
  virtual void broken(std::int64_t row, std::string reason) = 0;
};

/// How a file holds records.
enum class Container { csv, parquet, json, json_lines };

/// Tells the container by the first bytes; the name only decides where both JSON forms are possible.
/// Errors: Code::input for a file that is missing, a directory, empty, or UTF-16.
Container container_of(const std::string& path);

/// Names of the fields that records of the file have: all columns, or the fields of the first JSON entries (those of
/// nested objects as "outer.inner"). Errors: Code::input, naming the file and what is wrong.
std::vector<std::string> field_names(const std::string& path, Container container);

/// Reads all records, `wanted` fields only. Errors: as above, for faults that are no single record's.
void read_records(const std::string& path, Container container, const std::vector<std::string>& wanted,
                  RecordSink& sink);

// The readers behind these two. CSV and Parquet need Arrow: arrow_records.cpp, or no_arrow.cpp, which refuses.
std::vector<std::string> csv_field_names(const std::string& path);
void read_csv(const std::string& path, const std::vector<std::string>& wanted, RecordSink& sink);
std::vector<std::string> parquet_field_names(const std::string& path);
void read_parquet(const std::string& path, const std::vector<std::string>& wanted, RecordSink& sink);
std::vector<std::string> json_field_names(const std::string& path, bool lines);
void read_json(const std::string& path, bool lines, const std::vector<std::string>& wanted, RecordSink& sink);

}  // namespace zellige
