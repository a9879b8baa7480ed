// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "catalog/catalog_json.h"
#include "catalog/refusal.h"
#include "catalog/scratch.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using zellige::testing::refusal;
using zellige::testing::Scratch;
using zellige::testing::worked_case;

TEST(CatalogJson, WorkedCaseReadsAndComesBackByteForByte) {
  const Catalog catalog = read_catalog(worked_case("catalog.json"));
  EXPECT_EQ(catalog.model, model_preset("wan2.1-t2v-1.3b"));
  ASSERT_EQ(catalog.buckets.size(), 3u);
  EXPECT_EQ(catalog.buckets[2], (Bucket{"480p10s", MediaKind::video, 161, 480, 832, Tokens{63960}}));
  EXPECT_EQ(catalog.find("1080p"), 1);
  EXPECT_EQ(catalog.find("1080P"), std::nullopt);
  const Scratch scratch;
  write_catalog(catalog, scratch.path("again.json"));
  EXPECT_EQ(read_text_file(scratch.path("again.json")), read_text_file(worked_case("catalog.json")));
}

TEST(CatalogJson, EveryPresetSurvives) {
  const Scratch scratch;
  for (const std::string& name : model_preset_names()) {
    Catalog catalog{model_preset(name), {}};
    catalog.buckets.push_back({"one", MediaKind::image, 1, 512, 512, sequence_tokens(catalog.model, 1, 512, 512)});
    write_catalog(catalog, scratch.path("c.json"));
    EXPECT_EQ(read_catalog(scratch.path("c.json")), catalog) << name;
  }
}

// Takes the worked case, changes one value, and returns what the reader says.
std::string after(const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json json = nlohmann::json::parse(read_text_file(worked_case("catalog.json")));
  change(json);
  const JsonDocument document = JsonDocument::from_text(json.dump(), "c.json");
  return refusal([&] { catalog_from(document.root()); });
}

TEST(CatalogJson, EveryFaultNamesFileFieldAndValue) {
  EXPECT_EQ(after([](auto&) {}), "nothing was refused");  // positive control
  using Json = nlohmann::json;
  const std::vector<std::pair<std::function<void(Json&)>, std::string>> cases = {
      {[](Json& j) { j["format"] = "zellige.batch"; }, "c.json: format is \"zellige.batch\""},
      {[](Json& j) { j["version"] = 2; }, "version is 2; this build reads version 1"},
      {[](Json& j) { j.erase("model"); }, "model is missing"},
      {[](Json& j) { j["modle"] = 1; }, "modle = 1 is not a field here; did you mean 'model'?"},
      {[](Json& j) { j["model"]["heads"] = 0; }, "model.heads is 0"},
      {[](Json& j) { j["model"]["heads"] = 12.5; }, "model.heads is 12.5; it must be a whole number"},
      {[](Json& j) { j["model"]["heads"] = "12"; }, "model.heads is \"12\""},
      {[](Json& j) { j["model"]["kv_heads"] = 5; }, "model.kv_heads is 5; it must divide the 12 heads"},
      {[](Json& j) { j["model"]["name"] = ""; }, "model.name is \"\""},
      {[](Json& j) {
         j["model"]["vae_stride"] = {4, 8};
       },
       "model.vae_stride is [4,8]; it must have three numbers"},
      {[](Json& j) {
         j["model"]["patch"] = {1, 0, 2};
       },
       "model.patch[1] is 0"},
      {[](Json& j) { j["model"]["text"] = "sideways"; }, "model.text is \"sideways\"; it must be \"cross\""},
      {[](Json& j) { j["model"]["layers"] = 1 << 30; }, "model.layers is 1073741824"},
      {[](Json& j) { j["buckets"] = Json::object(); }, "buckets is {}; it must be an array"},
      {[](Json& j) { j["buckets"][1]["name"] = "720p"; }, "another bucket is already named '720p'"},
      {[](Json& j) { j["buckets"][1]["kind"] = "movie"; }, "buckets[1].kind is \"movie\""},
      {[](Json& j) { j["buckets"][1]["frames"] = 5; }, "buckets[1].frames is 5; an image has 1 frame"},
      {[](Json& j) { j["buckets"][1]["height"] = 1080; }, "height 1080 is no positive multiple of 16"},
      {[](Json& j) { j["buckets"][1]["height"] = -16; }, "buckets[1].height is -16"},
      {[](Json& j) { j["buckets"][2]["frames"] = 160; }, "frames 160 is not 1 + a multiple of 4"},
      {[](Json& j) { j["buckets"][2]["tokens"] = 63961; }, "bucket '480p10s' of that size has 63960"},
      {[](Json& j) { j["buckets"][2]["color"] = "red"; }, "buckets[2].color = \"red\" is not a field here"},
      {[](Json& j) { j["buckets"][2].erase("tokens"); }, "buckets[2].tokens is missing"},
  };
  for (const auto& [change, expected] : cases) EXPECT_THAT(after(change), HasSubstr(expected));
}

}  // namespace
}  // namespace zellige
