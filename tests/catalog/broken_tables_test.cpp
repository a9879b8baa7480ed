// SPDX-License-Identifier: Apache-2.0
// CSV and Parquet with random bytes changed: taken or refused as input, nothing else.
#include <gtest/gtest.h>

#include "catalog/broken_file.h"
#include "zellige/batch.h"
#include "zellige/manifest.h"

namespace zellige {
namespace {

using zellige::testing::data_file;
using zellige::testing::Outcome;
using zellige::testing::read_broken;

TEST(BrokenTables, CsvManifests) {
  for (const char* name : {"opensora_meta_mixed.csv", "miradata_v0_clips.csv"}) {
    const Outcome outcome = read_broken(data_file(name), 300, [](const std::string& path) {
      const Manifest manifest = read_manifest(path);
      EXPECT_GT(manifest.samples.size() + manifest.skipped.size(), 0u);
    });
    EXPECT_GT(outcome.taken, 50) << name;
  }
}

TEST(BrokenTables, ParquetManifests) {
  EXPECT_GT(read_broken(data_file("opensora_table.parquet"), 300, [](const std::string& path) { read_manifest(path); })
                .refused,
            30);
}

}  // namespace
}  // namespace zellige
