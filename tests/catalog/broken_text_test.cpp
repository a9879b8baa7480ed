// SPDX-License-Identifier: Apache-2.0
// Files with random bytes changed: a reader takes them or refuses them as input, nothing else.
#include <gtest/gtest.h>

#include "catalog/broken_file.h"
#include "zellige/batch.h"
#include "zellige/manifest.h"

namespace zellige {
namespace {

using zellige::testing::data_file;
using zellige::testing::read_broken;
using zellige::testing::worked_case;

TEST(BrokenText, BatchesAndCatalogs) {
  EXPECT_GT(read_broken(worked_case("batch.json"), 500, [](const std::string& path) { read_batch(path); }).refused,
            100);
  EXPECT_GT(read_broken(worked_case("catalog.json"), 500, [](const std::string& path) { read_catalog(path); }).refused,
            100);
}

TEST(BrokenText, Rules) {
  EXPECT_GT(
      read_broken(data_file("musubi_dataset.toml"), 500, [](const std::string& path) { read_rules(path); }).refused,
      50);
}

TEST(BrokenText, JsonManifests) {
  for (const char* name : {"fastvideo_videos2caption.json", "videoxfun_metadata.json"}) {
    EXPECT_GT(read_broken(data_file(name), 300, [](const std::string& path) { read_manifest(path); }).refused, 50)
        << name;
  }
}

}  // namespace
}  // namespace zellige
