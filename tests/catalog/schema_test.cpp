// SPDX-License-Identifier: Apache-2.0
// docs/schema/{catalog,batch}.schema.json say of the files what the readers do.
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "catalog/refusal.h"
#include "catalog/scratch.h"
#include "testing/json_schema.h"
#include "zellige/batch.h"

namespace zellige {
namespace {

using Json = nlohmann::json;
using zellige::testing::refusal;
using zellige::testing::Scratch;
using zellige::testing::why_not_schema;
using zellige::testing::worked_case;

constexpr const char* kCatalog = "catalog.schema.json";
constexpr const char* kBatch = "batch.schema.json";

TEST(CatalogSchema, TakesWhatWeWrite) {
  const Scratch scratch;
  for (const std::string& suite : workload_suites()) {
    Batch batch = make_workload(suite + ":V50");
    batch.sequences[0].source = "clips/1.mp4";
    write_batch(batch, scratch.path("b.json"));
    write_catalog(batch.catalog, scratch.path("c.json"));
    EXPECT_EQ(why_not_schema(Json::parse(read_text_file(scratch.path("b.json"))), kBatch), "") << suite;
    EXPECT_EQ(why_not_schema(Json::parse(read_text_file(scratch.path("c.json"))), kCatalog), "") << suite;
  }
}

TEST(CatalogSchema, RefusesTheFaultsThatTheReadersRefuse) {
  const Json good = Json::parse(read_text_file(worked_case("batch.json")));
  EXPECT_EQ(why_not_schema(good, kBatch), "");
  const std::vector<std::pair<std::function<void(Json&)>, std::string>> faults = {
      {[](Json& j) { j["version"] = 2; }, "/version: not 1"},
      {[](Json& j) { j["ranks"] = 0; }, "/ranks: too small"},
      {[](Json& j) { j["ranks"] = 2.5; }, "/ranks: no \"integer\""},
      {[](Json& j) { j["seed"] = 1; }, "/seed: not a field"},
      {[](Json& j) { j.erase("sequences"); }, "/sequences: missing"},
      {[](Json& j) { j["sequences"][0]["id"] = ""; }, "/sequences/0/id: too short"},
      {[](Json& j) { j["sequences"][0]["source"] = 3; }, "/sequences/0/source: no \"string\""},
      {[](Json& j) { j["sequences"][0].erase("bucket"); }, "/sequences/0/bucket: missing"},
      {[](Json& j) { j["catalog"]["format"] = "x"; }, "/catalog/format: not"},
      {[](Json& j) { j["catalog"]["model"]["text"] = "x"; }, "/catalog/model/text: none of"},
      {[](Json& j) { j["catalog"]["model"]["heads"] = 0; }, "/catalog/model/heads: too small"},
      {[](Json& j) { j["catalog"]["model"].erase("patch"); }, "/catalog/model/patch: missing"},
      {[](Json& j) {
         j["catalog"]["model"]["vae_stride"] = {4, 8};
       },
       "/catalog/model/vae_stride: too few"},
      {[](Json& j) { j["catalog"]["buckets"][1]["kind"] = "clip"; }, "/catalog/buckets/1/kind: none of"},
      {[](Json& j) { j["catalog"]["buckets"][1]["tokens"] = 0; }, "/catalog/buckets/1/tokens: too small"},
      {[](Json& j) { j["catalog"]["buckets"][1]["size"] = 1; }, "/catalog/buckets/1/size: not a field"},
  };
  const Scratch scratch;
  for (const auto& [change, reason] : faults) {
    Json bad = good;
    change(bad);
    EXPECT_EQ(why_not_schema(bad, kBatch).substr(0, reason.size()), reason);
    const std::string path = scratch.file("bad.json", bad.dump());
    EXPECT_NE(refusal([&] { read_batch(path); }), "nothing was refused") << reason;
  }
}

}  // namespace
}  // namespace zellige
