// SPDX-License-Identifier: Apache-2.0
// docs/schema/plan.schema.json says of plans what the reader does.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "placement/worked_case.h"
#include "testing/json_schema.h"
#include "zellige/placement.h"

namespace zellige {
namespace {

using Json = nlohmann::json;
using zellige::testing::why_not_schema;

constexpr const char* kSchema = "plan.schema.json";

TEST(PlanSchema, TakesWhatWeWrite) {
  EXPECT_EQ(why_not_schema(Json::parse(read_text_file(worked_case::file("plan"))), kSchema), "");
  Plan plan = worked_case::plan();
  plan.status = PlanStatus::unknown;
  plan.reason = "fillers do not fit";
  plan.placement.sequences.clear();
  plan.load.clear();
  plan.memory.clear();
  plan.certificate = {};
  EXPECT_EQ(why_not_schema(Json::parse(plan_json(plan)), kSchema), "");

  using Node = AnchorProof::Node;
  Node branch;
  branch.kind = Node::Kind::holders;
  Node leaf;
  leaf.sequence_values = {5};
  leaf.option_values = {{{0, {1, 2, 1}}, -7}};
  leaf.holder_values = {{{0, {2, 1, 1}}, 3, 8}};
  leaf.split_value = 9;
  plan.certificate.duals = AnchorProof{Menu::all, {"480p10s"}, {branch, leaf, leaf}, {10}, {leaf}};
  leaf.holder_values.clear();
  leaf.prices = {{3, 4}, {0, 5}};
  plan.certificate.makespan_duals = AnchorProof{Menu::powers_of_two, {"480p10s"}, {leaf}, {}, {}, 1};
  EXPECT_EQ(why_not_schema(Json::parse(plan_json(plan)), kSchema), "");
}

TEST(PlanSchema, RefusesEveryFault) {
  const Json good = Json::parse(read_text_file(worked_case::file("plan")));
  const std::vector<std::pair<std::function<void(Json&)>, std::string>> faults = {
      {[](Json& j) { j["version"] = 2; }, "/version: not 1"},
      {[](Json& j) { j.erase("reason"); }, "/reason: missing"},
      {[](Json& j) { j["makespan"] = 1; }, "/makespan: not a field"},
      {[](Json& j) { j["status"] = "best"; }, "/status: none of"},
      {[](Json& j) { j["certified"] = nullptr; }, "/certified: no \"boolean\""},
      {[](Json& j) { j["sequences"][0]["config"].push_back(1); }, "/sequences/0/config: too many"},
      {[](Json& j) { j["sequences"][0]["config"][0] = 0; }, "/sequences/0/config/0: too small"},
      {[](Json& j) { j["sequences"][0]["ranks"][1] = -1; }, "/sequences/0/ranks/1: too small"},
      {[](Json& j) { j["sequences"][0].erase("tokens"); }, "/sequences/0/tokens: missing"},
      {[](Json& j) { j["load_us"][0] = 0.5; }, "/load_us/0: no \"integer\""},
      {[](Json& j) { j["certificate"]["anchor_status"] = "unknown"; }, "/certificate/anchor_status: none of"},
      {[](Json& j) { j["certificate"]["split_bound"] = -1; }, "/certificate/split_bound: too small"},
      {[](Json& j) { j["certificate"]["duals"] = 1; }, "/certificate/duals: no [\"object"},
      {[](Json& j) { j["certificate"]["dual"] = 1; }, "/certificate/dual: not a field"},
      {[](Json& j) { j["exec"]["engine"] = "fast"; }, "/exec/engine: none of"},
      {[](Json& j) { j["exec"]["waves"] = 0; }, "/exec/waves: too small"},
      {[](Json& j) { j["digest"] = "sha256:12"; }, "/digest: too short"},
  };
  for (const auto& [change, reason] : faults) {
    Json bad = good;
    change(bad);
    EXPECT_EQ(why_not_schema(bad, kSchema).substr(0, reason.size()), reason);
  }
}

}  // namespace
}  // namespace zellige
