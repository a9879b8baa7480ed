// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <unistd.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "placement/worked_case.h"
#include "zellige/error.h"
#include "zellige/placement.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

class PlanJson : public ::testing::Test {
 protected:
  PlanJson()
      : path_((std::filesystem::temp_directory_path() / ("zellige_plan_" + std::to_string(getpid()) + ".json"))
                  .string()) {}
  ~PlanJson() override { std::filesystem::remove(path_); }

  Json golden() const { return Json::parse(read_text_file(worked_case::file("plan"))); }

  std::string refusal(const std::string& text) const {
    write_text_file(path_, text);
    try {
      read_plan(path_, worked_case::batch());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::input);
      EXPECT_THAT(error.what(), HasSubstr(path_));
      return error.what();
    }
    return "";
  }
  std::string refusal_after(const std::function<void(Json&)>& change) const {
    Json json = golden();
    change(json);
    return refusal(json.dump(2));
  }

  std::string path_;
};

TEST_F(PlanJson, WorkedCaseReadsAsWrittenByHand) {
  const Plan read = read_plan(worked_case::file("plan"), worked_case::batch());
  const Plan right = worked_case::plan();
  EXPECT_EQ(read.method, right.method);
  EXPECT_EQ(read.solver, right.solver);
  EXPECT_EQ(read.status, right.status);
  EXPECT_EQ(read.certified, right.certified);
  EXPECT_EQ(read.reason, right.reason);
  EXPECT_EQ(read.placement, right.placement);
  EXPECT_EQ(read.load, right.load);
  EXPECT_EQ(read.memory, right.memory);
  EXPECT_EQ(read.makespan, right.makespan);
  EXPECT_EQ(read.floor, right.floor);
  EXPECT_EQ(read.split_count, right.split_count);
  EXPECT_EQ(read.certificate, right.certificate);
  EXPECT_EQ(read.solve_time, right.solve_time);
  EXPECT_EQ(read.profile_digest, right.profile_digest);
}

TEST_F(PlanJson, WorkedCaseIsWrittenByteForByte) {
  const std::string golden_text = read_text_file(worked_case::file("plan"));
  EXPECT_EQ(plan_json(worked_case::plan()), golden_text);
  write_plan(read_plan(worked_case::file("plan"), worked_case::batch()), path_);
  EXPECT_EQ(read_text_file(path_), golden_text);
}

TEST_F(PlanJson, WithoutAPlanAndWithoutProofsComesBackTheSame) {
  Plan plan;
  plan.method = "naive";
  plan.solver = "naive";
  plan.status = PlanStatus::infeasible;
  plan.reason = "rank 1: \"1080p15s\" needs 3 bytes of 2";
  plan.placement = {.ranks = 2, .model = worked_case::catalog().model};
  plan.floor = {17};
  plan.profile_digest = worked_case::kProfileDigest;
  write_plan(plan, path_);
  const Json json = Json::parse(read_text_file(path_));
  EXPECT_EQ(json.at("sequences"), Json::array());
  EXPECT_EQ(json.at("load_us"), Json::array());
  EXPECT_EQ(json.at("memory_bytes"), Json::array());
  ASSERT_EQ(json.at("certificate").size(), 7u);
  for (const auto& [field, value] : json.at("certificate").items()) EXPECT_TRUE(value.is_null()) << field;

  const Plan read = read_plan(path_, worked_case::batch());
  EXPECT_EQ(read.status, PlanStatus::infeasible);
  EXPECT_FALSE(read.has_placement());
  EXPECT_EQ(read.reason, plan.reason);
  EXPECT_EQ(read.placement, plan.placement);
  EXPECT_TRUE(read.load.empty());
  EXPECT_EQ(read.certificate, Certificate());
  EXPECT_EQ(plan_json(read), plan_json(plan));
}

TEST_F(PlanJson, AnotherDigestIsRefusedOrLeftToTheChecker) {
  Json json = golden();
  json["exec"]["waves"] = 3;
  EXPECT_THAT(refusal(json.dump()), HasSubstr("digest is \"sha256:106b3c61"));
  const Plan read = read_plan_to_check(path_, worked_case::batch());
  EXPECT_EQ(read.placement.exec.waves, 3);
  EXPECT_EQ(read.stated_digest, worked_case::kDigest);
  EXPECT_THAT(Json::parse(plan_json(read)).at("digest"), digest(read.placement));
}

TEST_F(PlanJson, AnchorPlacementComesBackTheSame) {
  Plan plan = worked_case::plan();
  plan.certificate.anchor_placement = {{1, {{"480p10s", {1, 2, 1}, 1}, {"1080p", {1, 1, 1}, 2}}}, {1, {}}};
  write_plan(plan, path_);
  EXPECT_EQ(read_plan(path_, worked_case::batch()).certificate, plan.certificate);
  Json json = Json::parse(read_text_file(path_));
  json["certificate"]["anchor_placement"][0]["holds"][1]["pieces"] = 0;
  EXPECT_THAT(refusal(json.dump()), HasSubstr("pieces"));
}

TEST_F(PlanJson, EveryFieldIsNeededAndNoOtherTaken) {
  ASSERT_EQ(refusal(golden().dump()), "");  // what follows is refused for the change alone
  const std::vector<std::string> objects = {"", "/sequences/1", "/certificate", "/exec"};
  int fields = 0;
  for (const std::string& object : objects) {
    const Json::json_pointer pointer(object);
    const Json original = golden().at(pointer);
    for (const auto& item : original.items()) {
      const std::string field = item.key();
      ++fields;
      SCOPED_TRACE(object + "/" + field);
      EXPECT_THAT(refusal_after([&](Json& json) { json.at(pointer).erase(field); }),
                  HasSubstr((object.empty() || field == "format" ? "" : ".") + field + " is missing"));
      EXPECT_THAT(refusal_after([&](Json& json) { json.at(pointer)[field] = Json::array({Json::object()}); }),
                  HasSubstr(field));
    }
    EXPECT_THAT(refusal_after([&](Json& json) { json.at(pointer)["surplus"] = 1; }), HasSubstr("surplus = 1"));
  }
  EXPECT_EQ(fields, 19 + 8 + 7 + 4);
}

TEST_F(PlanJson, RefusesByFieldAndValue) {
  struct Case {
    const char* pointer;
    Json value;
    const char* message;
  };
  const std::vector<Case> cases = {
      {"/format", "zellige.profile", "format is \"zellige.profile\"; it must be \"zellige.plan\""},
      {"/version", 2, "version is 2; this build reads version 1"},
      {"/ranks", 0, "ranks is 0; it must be between 1"},
      {"/ranks", 2.0, "ranks is 2.0; it must be a whole number"},
      {"/status", "best", "status is \"best\"; it must be one of optimal, feasible, infeasible, timeout, unknown"},
      {"/certified", 1, "certified is 1; it must be true or false"},
      {"/sequences/2/id", "img-1", "sequences[2].id is \"img-1\"; this id comes twice"},
      {"/sequences/0/kind", "film", "sequences[0].kind is \"film\"; it must be one of image, video"},
      {"/sequences/0/tokens", 0, "sequences[0].tokens is 0"},
      {"/sequences/0/config", Json::array({1, 2}), "sequences[0].config is [1,2]; it must be [q, h, k]"},
      {"/sequences/0/config/1", 0, "sequences[0].config[1] is 0"},
      {"/sequences/0/config/1", 5000000000, "sequences[0].config[1] is 5000000000"},
      {"/sequences/0/ranks/1", -1, "sequences[0].ranks[1] is -1"},
      {"/sequences/0/time_us", "3269554", "sequences[0].time_us is \"3269554\"; it must be a whole number"},
      {"/sequences/0/memory_bytes", -5, "sequences[0].memory_bytes is -5"},
      {"/load_us/1", nullptr, "load_us[1] is null"},
      {"/makespan_us", -1, "makespan_us is -1"},
      {"/split_count", -1, "split_count is -1"},
      {"/certificate/anchor_status", "unknown", "certificate.anchor_status is \"unknown\"; it must be one of optimal"},
      {"/certificate/makespan_bound_us", 0.5, "certificate.makespan_bound_us is 0.5"},
      {"/certificate/duals", Json::array(), "certificate.duals is []; it must be an object"},
      {"/exec/engine", "fast", "exec.engine is \"fast\"; it must be coalesced or paper"},
      {"/exec/waves", 0, "exec.waves is 0"},
      {"/profile_digest", "sha256:12", "profile_digest is \"sha256:12\"; it must be \"sha256:\" and 64"},
      {"/digest", std::string("md5:") + std::string(67, 'a'), "it must be \"sha256:\" and 64"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.message);
    EXPECT_THAT(refusal_after([&](Json& json) { json[Json::json_pointer(test.pointer)] = test.value; }),
                HasSubstr(test.message));
  }
}

TEST_F(PlanJson, RefusesAFieldThatComesTwiceAndTextThatIsNoJson) {
  std::string text = golden().dump();
  text.insert(1, "\"status\":\"optimal\",");
  EXPECT_THAT(refusal(text), HasSubstr("'status' comes twice"));
  EXPECT_THAT(refusal("{"), HasSubstr("not JSON at line 1"));
  EXPECT_THAT(refusal(""), HasSubstr("is empty; it must hold one JSON object"));
}

TEST_F(PlanJson, DigestInTheFileIsVerified) {
  const std::string message =
      refusal_after([](Json& json) { json["sequences"][1]["ranks"][0] = 1; });  // moves img-1 and forgets the digest
  EXPECT_THAT(message, HasSubstr(worked_case::kDigest));
  EXPECT_THAT(message, HasSubstr("the plan was changed after it was written"));

  Batch other_model = worked_case::batch();
  other_model.catalog.model.layers = 40;
  EXPECT_THROW(read_plan(worked_case::file("plan"), other_model), Error);
  EXPECT_NO_THROW(read_plan(worked_case::file("plan"), worked_case::batch()));
}

TEST_F(PlanJson, ForDisplayNeedsNoBatchAndStaysStrict) {
  const Plan plan = read_plan_for_display(worked_case::file("plan"));
  EXPECT_EQ(plan.placement.sequences, worked_case::placement().sequences);
  EXPECT_EQ(plan.placement.model, ModelGeometry());
  Json json = golden();
  json["digest"] = "sha256:" + std::string(64, '0');  // can't be verified without the model
  write_text_file(path_, json.dump());
  EXPECT_EQ(read_plan_for_display(path_).placement.sequences, worked_case::placement().sequences);
  json["sequences"][1]["ranks"][0] = 1;  // what the sequences add up to can
  write_text_file(path_, json.dump());
  EXPECT_THROW(read_plan_for_display(path_), Error);
  json = golden();
  json.erase("digest");
  write_text_file(path_, json.dump());
  EXPECT_THROW(read_plan_for_display(path_), Error);
  EXPECT_THROW(read_plan_for_display(path_ + ".none"), Error);
}

}  // namespace
}  // namespace zellige
