// SPDX-License-Identifier: Apache-2.0
// CSV and Parquet through Arrow C++.
#include <algorithm>
#include <deque>
#include <memory>

#include <arrow/api.h>
#include <arrow/csv/api.h>
#include <arrow/io/file.h>
#include <arrow/type_traits.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include "base/json.h"
#include "catalog/csv_quotes.h"
#include "catalog/record.h"

namespace zellige {
namespace {

constexpr int kBlockBytes = 1 << 22;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(Code::input, "catalog.read_manifest", in_quotes(path) + " " + what);
}

void check(const arrow::Status& status, const std::string& path, const char* container) {
  if (!status.ok()) refuse(path, std::string("can't be read as ") + container + ": " + status.message());
}

template <class T>
T value_or_refuse(arrow::Result<T> result, const std::string& path, const char* container) {
  check(result.status(), path, container);
  return std::move(result).ValueUnsafe();
}

/// Rows that Arrow left out because they have too few or too many cells, known before the rows after them arrive.
struct LeftOutRow {
  std::int64_t row;
  std::string reason;
};

std::shared_ptr<arrow::csv::StreamingReader> open_csv(const std::string& path, arrow::csv::ConvertOptions convert,
                                                      std::deque<LeftOutRow>* left_out, std::string* fatal) {
  const auto file = value_or_refuse(arrow::io::ReadableFile::Open(path), path, "CSV");
  auto read = arrow::csv::ReadOptions::Defaults();
  read.use_threads = false;  // in order, so that the numbers of left-out rows are known
  read.block_size = kBlockBytes;
  auto parse = arrow::csv::ParseOptions::Defaults();
  parse.newlines_in_values = true;
  parse.invalid_row_handler = [left_out, fatal](const arrow::csv::InvalidRow& invalid) {
    const std::int64_t row = invalid.number - 1;  // Arrow counts the header
    std::string reason = "the row has ";
    reason.append(std::to_string(invalid.actual_columns)).append(" cells, the header ");
    reason.append(std::to_string(invalid.expected_columns));
    if (invalid.text.find('\n') != std::string_view::npos && fatal->empty()) {
      // An open quote swallows the rows after it: listing them as one skipped row would drop the others.
      *fatal = "row " + std::to_string(row) + ": " + reason + ", and spans several lines; is a quote left open?";
    }
    left_out->push_back({row, std::move(reason)});
    return arrow::csv::InvalidRowResult::Skip;
  };
  return value_or_refuse(
      arrow::csv::StreamingReader::Make(arrow::io::IOContext(arrow::system_memory_pool()), file, read, parse, convert),
      path, "CSV");
}

/// Reads one column's cells, whatever the type.
class Column {
 public:
  explicit Column(const arrow::Array& array) : array_(array), type_(array.type_id()) {}

  Cell at(std::int64_t i) const {
    if (array_.IsNull(i)) return std::monostate{};
    using Type = arrow::Type;
    switch (type_) {
      case Type::BINARY:
      case Type::STRING: return view<arrow::BinaryArray>(i);
      case Type::LARGE_BINARY:
      case Type::LARGE_STRING: return view<arrow::LargeBinaryArray>(i);
      case Type::BINARY_VIEW:
      case Type::STRING_VIEW: return view<arrow::BinaryViewArray>(i);
      case Type::INT8: return integer<arrow::Int8Array>(i);
      case Type::INT16: return integer<arrow::Int16Array>(i);
      case Type::INT32: return integer<arrow::Int32Array>(i);
      case Type::INT64: return integer<arrow::Int64Array>(i);
      case Type::UINT8: return integer<arrow::UInt8Array>(i);
      case Type::UINT16: return integer<arrow::UInt16Array>(i);
      case Type::UINT32: return integer<arrow::UInt32Array>(i);
      case Type::UINT64: return static_cast<double>(as<arrow::UInt64Array>().Value(i));
      case Type::FLOAT: return static_cast<double>(as<arrow::FloatArray>().Value(i));
      case Type::DOUBLE: return as<arrow::DoubleArray>().Value(i);
      case Type::BOOL: return as<arrow::BooleanArray>().Value(i);
      case Type::DICTIONARY: {
        const auto& dictionary = as<arrow::DictionaryArray>();
        return Column(*dictionary.dictionary()).at(dictionary.GetValueIndex(i));
      }
      default: return OtherValue{"a value of another type"};
    }
  }

 private:
  template <class Array>
  const Array& as() const {
    return static_cast<const Array&>(array_);
  }
  template <class Array>
  Cell view(std::int64_t i) const {
    return std::string_view(as<Array>().GetView(i));
  }
  template <class Array>
  Cell integer(std::int64_t i) const {
    return static_cast<std::int64_t>(as<Array>().Value(i));
  }

  const arrow::Array& array_;
  arrow::Type::type type_;
};

std::vector<Column> columns_of(const arrow::RecordBatch& batch) {
  std::vector<Column> columns;
  for (int i = 0; i < batch.num_columns(); ++i) columns.emplace_back(*batch.column(i));  // the batch keeps it alive
  return columns;
}

}  // namespace

std::vector<std::string> csv_field_names(const std::string& path) {
  if (const auto line = line_of_open_quote(path)) {
    refuse(path, "has a quote that opens on line " + std::to_string(*line) + " and is never closed");
  }
  std::deque<LeftOutRow> left_out;
  std::string fatal;
  return open_csv(path, arrow::csv::ConvertOptions::Defaults(), &left_out, &fatal)->schema()->field_names();
}

void read_csv(const std::string& path, const std::vector<std::string>& wanted, RecordSink& sink) {
  auto convert = arrow::csv::ConvertOptions::Defaults();
  convert.include_columns = wanted;
  for (const std::string& name : wanted) convert.column_types[name] = arrow::binary();  // as written, UTF-8 or not
  std::deque<LeftOutRow> left_out;
  std::string fatal;
  const auto reader = open_csv(path, convert, &left_out, &fatal);

  std::int64_t row = 0;
  const auto report_left_out = [&] {
    while (!left_out.empty() && left_out.front().row <= row + 1) {
      sink.broken(++row, std::move(left_out.front().reason));
      left_out.pop_front();
    }
  };
  std::vector<Cell> cells(wanted.size());
  while (true) {
    std::shared_ptr<arrow::RecordBatch> batch;
    const arrow::Status status = reader->ReadNext(&batch);
    if (!fatal.empty()) refuse(path, fatal);
    check(status, path, "CSV");
    if (!batch) break;
    const std::vector<Column> columns = columns_of(*batch);
    for (std::int64_t i = 0; i < batch->num_rows(); ++i) {
      report_left_out();
      for (std::size_t c = 0; c < columns.size(); ++c) cells[c] = columns[c].at(i);
      sink.record(++row, cells);
    }
  }
  report_left_out();
}

namespace {

std::unique_ptr<parquet::arrow::FileReader> open_parquet(const std::string& path) {
  const auto file = value_or_refuse(arrow::io::ReadableFile::Open(path), path, "Parquet");
  try {
    return value_or_refuse(parquet::arrow::OpenFile(file, arrow::system_memory_pool()), path, "Parquet");
  } catch (const parquet::ParquetException& error) {
    refuse(path, std::string("can't be read as Parquet: ") + error.what());
  }
}

}  // namespace

std::vector<std::string> parquet_field_names(const std::string& path) {
  const auto reader = open_parquet(path);
  const auto& schema = *reader->parquet_reader()->metadata()->schema();
  std::vector<std::string> names;
  for (int i = 0; i < schema.num_columns(); ++i) {
    if (schema.Column(i)->path()->ToDotVector().size() == 1) names.push_back(schema.Column(i)->name());
  }
  return names;
}

void read_parquet(const std::string& path, const std::vector<std::string>& wanted, RecordSink& sink) {
  try {
    const auto reader = open_parquet(path);
    const auto& schema = *reader->parquet_reader()->metadata()->schema();
    std::vector<int> indices;
    for (const std::string& name : wanted) indices.push_back(schema.ColumnIndex(name));
    std::vector<int> groups(static_cast<std::size_t>(reader->num_row_groups()));
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int>(i);
    const auto batches = value_or_refuse(reader->GetRecordBatchReader(groups, indices), path, "Parquet");

    // Parquet keeps the file's order of columns.
    std::vector<std::size_t> slot;
    for (const std::string& name : batches->schema()->field_names()) {
      slot.push_back(static_cast<std::size_t>(std::find(wanted.begin(), wanted.end(), name) - wanted.begin()));
    }
    std::int64_t row = 0;
    std::vector<Cell> cells(wanted.size());
    while (true) {
      const auto batch = value_or_refuse(batches->Next(), path, "Parquet");
      if (!batch) break;
      const std::vector<Column> columns = columns_of(*batch);
      for (std::int64_t i = 0; i < batch->num_rows(); ++i) {
        for (std::size_t c = 0; c < columns.size(); ++c) cells[slot[c]] = columns[c].at(i);
        sink.record(++row, cells);
      }
    }
  } catch (const parquet::ParquetException& error) {
    refuse(path, std::string("can't be read as Parquet: ") + error.what());
  }
}

}  // namespace zellige
