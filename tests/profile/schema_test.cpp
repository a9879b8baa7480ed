// SPDX-License-Identifier: Apache-2.0
// docs/schema/profile.schema.json says of profiles what the reader does.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "testing/json_schema.h"
#include "testing/worked_case_file.h"
#include "zellige/profile.h"

namespace zellige {
namespace {

using Json = nlohmann::json;
using zellige::testing::why_not_schema;
using zellige::testing::worked_case;

constexpr const char* kSchema = "profile.schema.json";

TEST(ProfileSchema, TakesWhatWeWrite) {
  EXPECT_EQ(why_not_schema(Json::parse(read_text_file(worked_case("profile.json"))), kSchema), "");
  const Catalog catalog = read_catalog(worked_case("catalog.json"));
  for (const std::string& device : built_in_profile_names()) {
    Profile profile = built_in_profile(device, catalog);
    std::vector<Price> prices(profile.menu(0).begin(), profile.menu(0).end());
    prices[0].source = PriceSource::measured;
    prices[0].spread = 0.01;
    profile.set_prices(0, prices);
    EXPECT_EQ(why_not_schema(Json::parse(profile_json(profile)), kSchema), "") << device;
  }
}

TEST(ProfileSchema, RefusesEveryFault) {
  const Json good = Json::parse(read_text_file(worked_case("profile.json")));
  const std::vector<std::pair<std::function<void(Json&)>, std::string>> faults = {
      {[](Json& j) { j["version"] = 2; }, "/version: not 1"},
      {[](Json& j) { j.erase("links"); }, "/links: missing"},
      {[](Json& j) { j["price"] = 1; }, "/price: not a field"},
      {[](Json& j) { j["key"]["driver"] = 1; }, "/key/driver: no \"string\""},
      {[](Json& j) { j["key"]["device"] = ""; }, "/key/device: too short"},
      {[](Json& j) { j["prices"][1]["time_us"] = 0; }, "/prices/1/time_us: too small"},
      {[](Json& j) {
         j["prices"][1]["config"] = {1, 1};
       },
       "/prices/1/config: too few"},
      {[](Json& j) {
         j["prices"][1]["config"] = {1, 1, 1, 1};
       },
       "/prices/1/config: too many"},
      {[](Json& j) { j["prices"][1]["config"][2] = 1.5; }, "/prices/1/config/2: no \"integer\""},
      {[](Json& j) { j["prices"][1]["source"] = "guess"; }, "/prices/1/source: none of"},
      {[](Json& j) { j["links"][0]["scope"] = "rack"; }, "/links/0/scope: none of"},
      {[](Json& j) { j["catalog"]["model"].erase("heads"); }, "/catalog/model/heads: missing"},
  };
  for (const auto& [change, reason] : faults) {
    Json bad = good;
    change(bad);
    EXPECT_EQ(why_not_schema(bad, kSchema).substr(0, reason.size()), reason);
  }
}

}  // namespace
}  // namespace zellige
