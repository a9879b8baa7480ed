// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "catalog/refusal.h"
#include "catalog/scratch.h"
#include "zellige/batch.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using zellige::testing::refusal;
using zellige::testing::Scratch;
using zellige::testing::worked_case;

TEST(BatchJson, WorkedCaseReadsAndComesBackByteForByte) {
  const Batch batch = read_batch(worked_case("batch.json"));
  EXPECT_EQ(batch.ranks, 2);
  EXPECT_EQ(batch.catalog, read_catalog(worked_case("catalog.json")));
  ASSERT_EQ(batch.sequences.size(), 5u);
  EXPECT_EQ(batch.sequences[0].id, "clip-7");
  EXPECT_EQ(batch.tokens_of(0).value, 63960);
  EXPECT_EQ(batch.bucket_of(4).name, "720p");
  const Scratch scratch;
  write_batch(batch, scratch.path("again.json"));
  EXPECT_EQ(read_text_file(scratch.path("again.json")), read_text_file(worked_case("batch.json")));
}

TEST(BatchJson, SourceIsKept) {
  Batch batch = read_batch(worked_case("batch.json"));
  batch.sequences[1].source =
      "clips/\xC3\x9Cn\xC3\xAF"
      "code \"quoted\", 7.mp4";
  const Scratch scratch;
  write_batch(batch, scratch.path("b.json"));
  const Batch again = read_batch(scratch.path("b.json"));
  EXPECT_EQ(again.sequences[1].source, batch.sequences[1].source);
  EXPECT_EQ(again.sequences[0].source, "");
}

TEST(BatchJson, EveryFaultNamesFileFieldAndValue) {
  using Json = nlohmann::json;
  const Scratch scratch;
  const auto after = [&](const std::function<void(Json&)>& change) {
    Json json = Json::parse(read_text_file(worked_case("batch.json")));
    change(json);
    const std::string path = scratch.file("b.json", json.dump());
    return refusal([&] { read_batch(path); });
  };
  EXPECT_EQ(after([](auto&) {}), "nothing was refused");  // positive control
  const std::vector<std::pair<std::function<void(Json&)>, std::string>> cases = {
      {[](Json& j) { j["ranks"] = 0; }, "b.json: ranks is 0; it must be between 1 and"},
      {[](Json& j) { j["ranks"] = 2.0; }, "ranks is 2.0; it must be a whole number"},
      {[](Json& j) { j["catalog"].erase("version"); }, "catalog.version is missing"},
      {[](Json& j) { j["catalog"]["buckets"][0]["tokens"] = 1; }, "catalog.buckets[0].tokens is 1"},
      {[](Json& j) { j["sequences"][1]["id"] = "clip-7"; },
       "sequences[1].id is \"clip-7\"; another sequence already has this id"},
      {[](Json& j) { j["sequences"][1]["id"] = ""; }, "sequences[1].id is \"\"; it must not be empty"},
      {[](Json& j) { j["sequences"][1]["id"] = 7; }, "sequences[1].id is 7; it must be a string"},
      {[](Json& j) { j["sequences"][1]["bucket"] = "4k"; },
       "sequences[1].bucket is \"4k\"; the batch's catalog has no such bucket; it has: 720p, 1080p, 480p10s"},
      {[](Json& j) { j["sequences"][1]["sorce"] = "x"; }, "sequences[1].sorce = \"x\" is not a field here"},
      {[](Json& j) { j["sequences"][1].erase("bucket"); }, "sequences[1].bucket is missing"},
      {[](Json& j) { j["seed"] = 1; }, "seed = 1 is not a field here"},
  };
  for (const auto& [change, expected] : cases) EXPECT_THAT(after(change), HasSubstr(expected));
  EXPECT_THAT(refusal([&] { read_batch(scratch.path("missing.json")); }), HasSubstr("missing.json"));
}

TEST(BatchJson, ALargeBatchComesBackInTime) {
  Batch batch = read_batch(worked_case("batch.json"));
  batch.sequences.clear();
  constexpr int kSequences = 200'000;
  for (int i = 0; i < kSequences; ++i) {
    const std::string number = std::to_string(i);
    batch.sequences.push_back({std::string("s").append(number), i % 3, std::string("row ").append(number)});
  }
  const Scratch scratch;
  const auto begin = std::chrono::steady_clock::now();
  write_batch(batch, scratch.path("big.json"));
  const Batch again = read_batch(scratch.path("big.json"));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ASSERT_EQ(again.sequences.size(), batch.sequences.size());
  EXPECT_EQ(again.sequences[kSequences - 1].id, "s199999");
  EXPECT_EQ(again.sequences[kSequences - 1].bucket, (kSequences - 1) % 3);
  EXPECT_LT(seconds, 10.0);  // a quadratic reader takes a minute; busy machines must pass
}

}  // namespace
}  // namespace zellige
