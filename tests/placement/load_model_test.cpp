// SPDX-License-Identifier: Apache-2.0
#include "zellige/load_model.h"

#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "placement/worked_case.h"
#include "testing/json_schema.h"
#include "zellige/check.h"
#include "zellige/error.h"
#include "zellige/score.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr LoadModel kOverlapped = {LoadModel::Kind::overlapped, 800};

TEST(LoadModel, ChargesByHand) {
  const Price price = {.config = {1, 2, 1}, .time = {1000}, .exchange = {333}, .memory = {1}};
  EXPECT_EQ(charge(price, {}).time, Microseconds{1000});
  EXPECT_EQ(charge(price, {}).exchange, Microseconds{0});
  EXPECT_EQ(charge(price, kOverlapped).time, Microseconds{1000 - 266});  // 266.4 is hidden, rounded down
  EXPECT_EQ(charge(price, kOverlapped).exchange, Microseconds{333});
  EXPECT_EQ(charge(price, {LoadModel::Kind::overlapped, 0}).time, Microseconds{1000});
  EXPECT_EQ(charge(price, {LoadModel::Kind::overlapped, 1000}).time, Microseconds{667});
  // Nothing but exchange, all of it hidden: a price is never below 1.
  EXPECT_EQ(charge({5}, {5}, {LoadModel::Kind::overlapped, 1000}).time, Microseconds{1});
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(charge({kMost}, {kMost}, {LoadModel::Kind::overlapped, 1000}).time, Microseconds{1});
  EXPECT_EQ(charge({kMost}, {kMost}, {LoadModel::Kind::overlapped, 500}).time, Microseconds{kMost - kMost / 2});
  EXPECT_EQ(name(LoadModel::Kind::overlapped), "overlapped");
}

/// The worked case by overlapped loads: of the clip's 53,587 us of exchange 42,869 are hidden.
Plan worked_plan() {
  Plan plan = worked_case::plan();
  plan.load_model = kOverlapped;
  plan.placement.sequences[0].exchange = {53'587};
  plan.load = {{3'521'470}, {3'521'470}};
  plan.makespan = {3'521'470};
  plan.certificate.anchor_load = plan.certificate.anchor_bound = Microseconds{3'226'685};
  plan.certificate.makespan_bound = Microseconds{3'521'470};
  return plan;
}

TEST(LoadModel, ScoresTheWorkedCaseByHand) {
  const Score score = zellige::score(worked_case::placement(), worked_case::profile(), kOverlapped);
  EXPECT_EQ(score.load, (std::vector<Microseconds>{{3'521'470}, {3'521'470}}));
  EXPECT_EQ(score.exchange, (std::vector<Microseconds>{{53'587}, {53'587}}));
  EXPECT_EQ(score.makespan, Microseconds{3'521'470});
  EXPECT_EQ(score.floor, Microseconds{3'510'751});
  // An exchange that outlasts everything beside it is the load.
  Profile profile = worked_case::profile();
  profile.set_prices(2, {profile.whole(2), {.config = {1, 2, 1}, .time = {5'000'000}, .exchange = {4'900'000}}});
  EXPECT_EQ(zellige::score(worked_case::placement(), profile, kOverlapped).makespan, Microseconds{4'900'000});
  EXPECT_EQ(zellige::score(worked_case::placement(), profile).makespan, Microseconds{5'294'785});
  EXPECT_THROW(zellige::score(worked_case::placement(), profile, {LoadModel::Kind::overlapped, 1001}), Error);
}

TEST(LoadModel, CompletesPlans) {
  Plan plan = worked_plan();
  plan.load.clear();
  plan.makespan = {};
  plan.placement.sequences[0].exchange = {};
  complete(plan, worked_case::batch(), worked_case::profile());
  EXPECT_EQ(plan.load, worked_plan().load);
  EXPECT_EQ(plan.makespan, worked_plan().makespan);
  EXPECT_EQ(plan.placement, worked_plan().placement);
  plan.load_model = {};
  complete(plan, worked_case::batch(), worked_case::profile());
  EXPECT_EQ(plan.load, worked_case::plan().load);
  EXPECT_EQ(plan.placement, worked_case::plan().placement);
}

std::string findings_of(const Plan& plan, const Profile& profile = worked_case::profile()) {
  std::string all;
  for (const Finding& finding : check(plan, worked_case::batch(), profile)) {
    all.append(name(finding.what)).append(": ").append(finding.message) += '\n';
  }
  return all;
}

TEST(LoadModel, CheckerTakesTheGoodAndRefusesEveryMutant) {
  ASSERT_EQ(findings_of(worked_plan()), "");
  struct Mutant {
    std::function<void(Plan&)> change;
    const char* finding;
  };
  const std::vector<Mutant> mutants = {
      {[](Plan& p) { p.load_model = {}; }, "wrong-load: load_us[0] is 3521470"},
      {[](Plan& p) { p.load_model.hidden_per_mille = 801; }, "wrong-load: load_us[0] is 3521470"},
      {[](Plan& p) { p.load_model.hidden_per_mille = 1001; }, "wrong-load-model: load_model.hidden_per_mille is 1001"},
      {[](Plan& p) { p.load_model.hidden_per_mille = -1; }, "wrong-load-model: load_model.hidden_per_mille is -1"},
      {[](Plan& p) { p.load_model.kind = static_cast<LoadModel::Kind>(7); },
       "wrong-load-model: load_model is number 7"},
      {[](Plan& p) { ++p.load[1].value; }, "wrong-load: load_us[1] is 3521471"},
      {[](Plan& p) { --p.makespan.value; }, "wrong-makespan"},
      {[](Plan& p) { ++p.placement.sequences[0].exchange.value; }, "wrong-claim: sequence 'clip-7': exchange_us"},
      {[](Plan& p) { p.certificate.makespan_bound->value = 3'521'471; }, "false-bound: makespan_bound_us"},
      {[](Plan& p) { p.certificate.anchor_bound->value = 3'226'686; }, "false-bound: anchor_bound_us"},
      {[](Plan& p) { p.certificate.anchor_load->value = 3'269'554; }, "wrong-anchors: anchor_load_us is 3269554"},
      {[](Plan& p) {
         p.certificate.anchor_placement = {{2, {{"480p10s", {1, 2, 1}, 1}}}},
         p.certificate.anchor_load->value = 3'226'684;
       },
       "wrong-anchors"},
  };
  for (const Mutant& mutant : mutants) {
    SCOPED_TRACE(mutant.finding);
    Plan plan = worked_plan();
    mutant.change(plan);
    EXPECT_THAT(findings_of(plan), HasSubstr(mutant.finding));
  }
  // And the additive plan is none of overlapped loads, though its certificate proves less.
  Plan plan = worked_case::plan();
  plan.load_model = kOverlapped;
  EXPECT_THAT(findings_of(plan), HasSubstr("wrong-load"));
}

TEST(LoadModel, ALoadThatIsAnExchangeIsChecked) {
  Profile profile = worked_case::profile();
  profile.set_prices(2,
                     {profile.whole(2),
                      {.config = {1, 2, 1}, .time = {5'000'000}, .exchange = {4'900'000}, .memory = {3'536'732'160}}});
  Plan plan = worked_plan();
  complete(plan, worked_case::batch(), profile);
  EXPECT_EQ(plan.makespan, Microseconds{4'900'000});
  // Nothing but the split keeps 4,900,000, so the exchange's size proves the bound.
  plan.certificate.anchor_load = plan.certificate.anchor_bound = plan.certificate.makespan_bound =
      Microseconds{4'900'000};
  EXPECT_EQ(findings_of(plan, profile), "");
  plan.certificate.makespan_bound->value = 4'900'001;
  EXPECT_THAT(findings_of(plan, profile), HasSubstr("false-bound"));
}

class LoadModelFile : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  std::string refusal(const Json& json) const {
    write_text_file(path_, json.dump());
    try {
      read_plan(path_, worked_case::batch());
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::input);
      return error.what();
    }
  }
  const std::string path_ = ::testing::TempDir() + "/load_model_test_plan.json";
};

TEST_F(LoadModelFile, ComesBackTheSameAndFitsTheSchema) {
  const Plan plan = worked_plan();
  write_plan(plan, path_);
  const Plan read = read_plan(path_, worked_case::batch());
  EXPECT_EQ(read.load_model, plan.load_model);
  EXPECT_EQ(read.placement, plan.placement);
  EXPECT_EQ(plan_json(read), plan_json(plan));
  EXPECT_NO_THROW(read_plan_for_display(path_));  // its loads follow from its own sequences
  const Json json = Json::parse(plan_json(plan));
  EXPECT_EQ(json["load_model"], Json({{"kind", "overlapped"}, {"hidden_per_mille", 800}}));
  EXPECT_EQ(json["sequences"][0]["exchange_us"], 53'587);
  EXPECT_EQ(testing::why_not_schema(json, "plan.schema.json"), "");
  // Additive is what a file says that says nothing: the paper's plans have no new fields.
  const Json additive = Json::parse(plan_json(worked_case::plan()));
  EXPECT_FALSE(additive.contains("load_model"));
  EXPECT_FALSE(additive["sequences"][0].contains("exchange_us"));
}

TEST_F(LoadModelFile, RefusesByFieldAndValue) {
  const Json good = Json::parse(plan_json(worked_plan()));
  ASSERT_EQ(refusal(good), "");
  const auto expect = [&](const std::function<void(Json&)>& change, const char* fragment) {
    SCOPED_TRACE(fragment);
    Json json = good;
    change(json);
    EXPECT_THAT(refusal(json), HasSubstr(fragment));
  };
  expect([](Json& j) { j["load_model"]["kind"] = "hidden"; }, "load_model.kind");
  expect([](Json& j) { j["load_model"]["hidden_per_mille"] = 1001; }, "load_model.hidden_per_mille");
  expect([](Json& j) { j["load_model"].erase("hidden_per_mille"); }, "hidden_per_mille is missing");
  expect([](Json& j) { j["load_model"]["more"] = 1; }, "more = 1");
  expect([](Json& j) { j["sequences"][1].erase("exchange_us"); }, "exchange_us is missing");
  expect([](Json& j) { j["sequences"][1]["exchange_us"] = 219'262; }, "it is a part of time_us");
  expect([](Json& j) { j.erase("load_model"); }, "exchange_us");
  Json json = good;
  json["load_us"][0] = 3'521'471;
  write_text_file(path_, json.dump());
  try {
    read_plan_for_display(path_);
    ADD_FAILURE() << "a wrong load is shown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("load_us[0] is 3521471; the plan's own sequences make it 3521470"));
  }
}

}  // namespace
}  // namespace zellige
