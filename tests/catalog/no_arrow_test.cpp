// SPDX-License-Identifier: Apache-2.0
// A build without Arrow: its two sources stand alone here, as the other tests need Arrow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/record.h"
#include "catalog/refusal.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using zellige::testing::refusal;

class NoSink final : public RecordSink {
  void record(std::int64_t, std::span<const Cell>) override {}
  void broken(std::int64_t, std::string) override {}
};

TEST(NoArrow, CsvAndParquetAreRefusedByName) {
  NoSink sink;
  EXPECT_THAT(refusal([] { csv_field_names("a.csv"); }), HasSubstr("'a.csv' is CSV, which needs Arrow"));
  EXPECT_THAT(refusal([&] { read_csv("a.csv", {}, sink); }), HasSubstr("ZELLIGE_ARROW=OFF"));
  EXPECT_THAT(refusal([] { parquet_field_names("a.parquet"); }), HasSubstr("'a.parquet' is Parquet"));
  EXPECT_THAT(refusal([&] { read_parquet("a.parquet", {}, sink); }), HasSubstr("JSON and JSON lines are read"));
}

}  // namespace
}  // namespace zellige
