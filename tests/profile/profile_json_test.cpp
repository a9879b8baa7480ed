// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "catalog/refusal.h"
#include "catalog/scratch.h"
#include "testing/worked_case_file.h"
#include "zellige/profile.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using zellige::testing::refusal;
using zellige::testing::Scratch;
using zellige::testing::worked_case;

TEST(ProfileJson, WorkedCaseReadsAndComesBackByteForByte) {
  const std::string path = worked_case("profile.json");
  const Profile profile = read_profile(path);
  EXPECT_EQ(profile.key, (ProfileKey{"NVIDIA H200", "580.159", 1, true}));
  EXPECT_EQ(profile.step_base.value, 210000);
  EXPECT_EQ(profile.memory_cap().value, 117'000'000'000);
  ASSERT_EQ(profile.menu(2).size(), 2u);
  EXPECT_EQ(profile.menu(2)[1], (Price{{1, 2, 1}, {3269554}, {53587}, {3536732160}, PriceSource::estimated, {}}));
  EXPECT_EQ(profile.whole(0).time.value, 75524);
  EXPECT_EQ(profile.links, (std::vector<Link>{{"node", 40, 330000}}));
  EXPECT_TRUE(profile.kernels.empty());
  EXPECT_EQ(profile_json(profile), read_text_file(path));
  const Scratch scratch;
  write_profile(profile, scratch.path("again.json"));
  EXPECT_EQ(read_text_file(scratch.path("again.json")), read_text_file(path));
}

TEST(ProfileJson, DigestIsThatOfTheWorkedPlan) {
  const std::string plan = read_text_file(worked_case("plan.json"));
  EXPECT_EQ(digest(read_profile(worked_case("profile.json"))), Json::parse(plan).at("profile_digest"));
}

Profile with_every_field() {
  Profile profile = read_profile(worked_case("profile.json"));
  profile.set_prices(
      1, {{.config = {1, 1, 1},
           .time = {5},
           .exchange = {0},
           .memory = {6},
           .source = PriceSource::measured,
           .spread = 0.0125},
          {.config = {2, 1, 1}, .time = {4}, .exchange = {1}, .memory = {3}, .source = PriceSource::interpolated},
          {.config = {1, 2, 1}, .time = {3}, .exchange = {1}, .memory = {3}, .source = PriceSource::extrapolated}});
  profile.links.push_back({"cluster", 60, 40000});
  profile.kernels.push_back({"flash-attention-3", "NVIDIA H200", "forward", {256}, 128, 12, 360'000'000});
  profile.key.driver = "";
  return profile;
}

TEST(ProfileJson, EveryFieldSurvives) {
  const Profile profile = with_every_field();
  const Scratch scratch;
  write_profile(profile, scratch.path("p.json"));
  EXPECT_EQ(read_profile(scratch.path("p.json")), profile);
}

TEST(ProfileJson, DigestEqualsPythons) {
  const Profile profile = with_every_field();
  const Scratch scratch;
  write_profile(profile, scratch.path("p.json"));
  const std::string script =
      scratch.file("digest.py",
                   "import hashlib, json, sys\n"
                   "text = json.dumps(json.load(open(sys.argv[1])), sort_keys=True, separators=(',', ':'))\n"
                   "print('sha256:' + hashlib.sha256(text.encode()).hexdigest())\n");
  const std::string command =
      std::string(ZELLIGE_PYTHON) + " " + script + " " + scratch.path("p.json") + " > " + scratch.path("out");
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(digest(profile) + "\n", read_text_file(scratch.path("out")));
}

TEST(ProfileJson, DigestChangesWithEveryPart) {
  const Profile profile = with_every_field();
  const auto changed = [&](auto change) {
    Profile other = profile;
    change(other);
    return digest(other);
  };
  EXPECT_EQ(digest(profile), changed([](Profile&) {}));
  EXPECT_NE(digest(profile), changed([](Profile& p) { p.step_base.value += 1; }));
  EXPECT_NE(digest(profile), changed([](Profile& p) { p.memory_base.value += 1; }));
  EXPECT_NE(digest(profile), changed([](Profile& p) { p.key.driver = "x"; }));
  EXPECT_NE(digest(profile), changed([](Profile& p) { p.links[0].latency_us += 1; }));
  EXPECT_NE(digest(profile), changed([](Profile& p) { p.kernels[0].flops_per_us += 1; }));
  EXPECT_NE(digest(profile), changed([](Profile& p) {
              p.set_prices(0, {{.config = {1, 1, 1}, .time = {75525}, .exchange = {0}, .memory = {381542400}}});
            }));
}

TEST(ProfileJson, DigestsAskedForInTurnsAreTheProfilesOwn) {
  std::vector<Profile> profiles(9, with_every_field());  // more than are remembered
  std::vector<std::string> digests;
  std::set<std::string> different;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    profiles[i].step_base.value += static_cast<std::int64_t>(i);
    digests.push_back(digest(profiles[i]));
    different.insert(digests.back());
  }
  EXPECT_EQ(different.size(), profiles.size());
  const auto ask = [&](std::size_t step) {
    for (std::size_t i = 0; i < 20 * step; i += step) {
      EXPECT_EQ(digest(profiles[i % profiles.size()]), digests[i % profiles.size()]);
    }
  };
  std::vector<std::jthread> threads;
  for (const std::size_t step : {1, 2, 4, 5}) threads.emplace_back(ask, step);
}

std::string after(const std::function<void(Json&)>& change) {
  const Scratch scratch;
  write_profile(with_every_field(), scratch.path("base.json"));
  Json json = Json::parse(read_text_file(scratch.path("base.json")));
  change(json);
  const std::string path = scratch.file("p.json", json.dump());
  return refusal([&] { read_profile(path); });
}

TEST(ProfileJson, EveryFaultNamesFileFieldAndValue) {
  ASSERT_EQ(after([](Json&) {}), "nothing was refused");  // positive control
  const std::vector<std::pair<std::function<void(Json&)>, std::string>> cases = {
      {[](Json& j) { j["format"] = "zellige.plan"; }, "format is \"zellige.plan\""},
      {[](Json& j) { j["version"] = 2; }, "version is 2; this build reads version 1"},
      {[](Json& j) { j.erase("catalog"); }, "catalog is missing"},
      {[](Json& j) { j["catalog"]["model"]["heads"] = 0; }, "catalog.model.heads is 0"},
      {[](Json& j) { j["catalog"].erase("version"); }, "catalog.version is missing"},
      {[](Json& j) { j["key"].erase("device"); }, "key.device is missing"},
      {[](Json& j) { j["key"]["device"] = ""; }, "key.device is \"\"; it must not be empty"},
      {[](Json& j) { j["key"]["driver"] = 580; }, "key.driver is 580; it must be a string"},
      {[](Json& j) { j["key"]["executor"] = 1.5; }, "key.executor is 1.5; it must be a whole number"},
      {[](Json& j) { j["key"]["checkpointing"] = 1; }, "key.checkpointing is 1; it must be true or false"},
      {[](Json& j) { j["key"]["gpu"] = "x"; }, "key.gpu = \"x\" is not a field here"},
      {[](Json& j) { j["step_base_us"] = -1; }, "step_base_us is -1"},
      {[](Json& j) { j["step_base"] = 1; }, "did you mean 'step_base_us'?"},
      {[](Json& j) { j["memory"].erase("base_bytes"); }, "memory.base_bytes is missing"},
      {[](Json& j) { j["memory"]["usable_bytes"] = j["memory"]["base_bytes"]; },
       "memory.usable_bytes is 23000000000; it must exceed base_bytes 23000000000, so that the memory cap is positive"},
      {[](Json& j) { j["memory"]["base_bytes"] = -1; }, "memory.base_bytes is -1"},
      {[](Json& j) { j["memory"]["cap"] = 1; }, "memory.cap = 1 is not a field here"},
      {[](Json& j) { j["prices"] = 1; }, "prices is 1; it must be an array"},
      {[](Json& j) { j["prices"][0]["bucket"] = "8k"; },
       "prices[0].bucket is \"8k\"; the profile's catalog has no such bucket; it has: 720p, 1080p, 480p10s"},
      {[](Json& j) {
         j["prices"][0]["config"] = {1, 1};
       },
       "prices[0].config is [1,1]; it must have three factors"},
      {[](Json& j) {
         j["prices"][0]["config"] = {1, 0, 1};
       },
       "prices[0].config[1] is 0"},
      {[](Json& j) {
         j["prices"][2]["config"] = {1, 1, 9000};
       },
       "one would be empty"},
      {[](Json& j) {
         j["prices"][2]["config"] = {1, 5, 1};
       },
       "head split 5 does not divide 12 heads"},
      {[](Json& j) {
         j["prices"][2]["config"] = {1, 1, 1};
       },
       "bucket '1080p' already has a price for q1h1k1"},
      {[](Json& j) {
         j["prices"][0]["config"] = {2, 1, 1};
       },
       "bucket '720p' has no price for [1, 1, 1], which every bucket needs"},
      {[](Json& j) { j["prices"].erase(0); }, "bucket '720p' has no price for [1, 1, 1]"},
      {[](Json& j) { j["prices"][0]["time_us"] = 0; }, "prices[0].time_us is 0"},
      {[](Json& j) { j["prices"][0]["time_us"] = 7.0; }, "prices[0].time_us is 7.0; it must be a whole number"},
      {[](Json& j) { j["prices"][0]["exchange_us"] = 75525; }, "exchange_us 75525 must be between 0 and time_us 75524"},
      {[](Json& j) { j["prices"][0]["exchange_us"] = -1; }, "prices[0].exchange_us is -1"},
      {[](Json& j) { j["prices"][0]["memory_bytes"] = "1"; }, "prices[0].memory_bytes is \"1\""},
      {[](Json& j) { j["prices"][0]["source"] = "guessed"; },
       "prices[0].source is \"guessed\"; it must be one of: measured, interpolated, extrapolated, estimated"},
      {[](Json& j) { j["prices"][0]["spread"] = 0.1; }, "a spread belongs to measured prices"},
      {[](Json& j) { j["prices"][0]["source"] = "measured"; }, "prices[0].spread is missing"},
      {[](Json& j) { j["prices"][1]["spread"] = -0.1; }, "prices[1].spread is -0.1; it must not be negative"},
      {[](Json& j) { j["prices"][1]["spread"] = nullptr; }, "prices[1].spread is null; it must be a number"},
      {[](Json& j) { j["prices"][0]["cost"] = 1; }, "prices[0].cost = 1 is not a field here"},
      {[](Json& j) { j["links"][0]["scope"] = "rack"; },
       "links[0].scope is \"rack\"; it must be one of: node, cluster"},
      {[](Json& j) { j["links"][0]["bytes_per_us"] = 0; }, "links[0].bytes_per_us is 0"},
      {[](Json& j) { j["links"][0].erase("latency_us"); }, "links[0].latency_us is missing"},
      {[](Json& j) { j["kernels"][0]["direction"] = "up"; }, "kernels[0].direction is \"up\""},
      {[](Json& j) { j["kernels"][0]["count"] = 0; }, "kernels[0].count is 0"},
      {[](Json& j) { j["kernels"][0].erase("heads"); }, "kernels[0].heads is missing"},
      {[](Json& j) { j["kernels"][0]["flops_per_us"] = 0; }, "kernels[0].flops_per_us is 0"},
      {[](Json& j) { j.erase("links"); }, "links is missing"},
      {[](Json& j) { j.erase("kernels"); }, "kernels is missing"},
  };
  for (const auto& [change, message] : cases) {
    const std::string said = after(change);
    EXPECT_THAT(said, HasSubstr(message));
    EXPECT_THAT(said, HasSubstr("p.json: "));
  }
}

TEST(ProfileJson, AFileThatIsNotThereIsNamed) {
  EXPECT_THAT(refusal([] { read_profile("/nowhere/profile.json"); }), HasSubstr("'/nowhere/profile.json'"));
}

}  // namespace
}  // namespace zellige
