// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "catalog/record.h"

namespace zellige {
namespace {

[[noreturn]] void refuse(const std::string& path, const char* container) {
  throw Error(Code::input, "catalog.read_manifest",
              in_quotes(path) + " is " + container +
                  ", which needs Arrow, and this build is without (ZELLIGE_ARROW=OFF); JSON and JSON lines are read");
}

}  // namespace

std::vector<std::string> csv_field_names(const std::string& path) { refuse(path, "CSV"); }
void read_csv(const std::string& path, const std::vector<std::string>&, RecordSink&) { refuse(path, "CSV"); }
std::vector<std::string> parquet_field_names(const std::string& path) { refuse(path, "Parquet"); }
void read_parquet(const std::string& path, const std::vector<std::string>&, RecordSink&) { refuse(path, "Parquet"); }

}  // namespace zellige
