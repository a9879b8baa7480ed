// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "report/example_plans.h"
#include "zellige/report.h"

namespace zellige {
namespace {

using Json = nlohmann::json;
using namespace zellige::testing;

TEST(ChromeTrace, LaysEachRanksPricesEndToEnd) {
  const Batch batch = many_images(3, 50);
  const Profile profile = built_in_profile("h200", batch.catalog);
  for (const Plan& plan :
       {worked_plan(), dealt_out(batch, profile, "whole"), split_over_all(batch, profile, "split")}) {
    const Json trace = Json::parse(chrome_trace(plan));
    std::map<int, std::int64_t> end;
    std::map<std::string, std::size_t> seen;
    for (const Json& event : trace["traceEvents"]) {
      if (event["ph"] != "X") continue;
      EXPECT_EQ(event["ts"], end[event["tid"]]);
      end[event["tid"]] += event["dur"].get<std::int64_t>();
      ++seen[event["name"]];
    }
    for (std::size_t rank = 0; rank < plan.load.size(); ++rank) {
      EXPECT_EQ(end[static_cast<int>(rank)], plan.load[rank].value);
    }
    for (const PlacedSequence& sequence : plan.placement.sequences) {
      EXPECT_EQ(seen[sequence.id], sequence.ranks.size());
    }
  }
}

TEST(ChromeTrace, RunsWholeSequencesFirstLongestFirstThenShards) {
  const Json trace = Json::parse(chrome_trace(worked_plan()));
  std::vector<std::string> rank_0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["tid"] == 0) rank_0.push_back(event["name"]);
  }
  EXPECT_EQ(rank_0, (std::vector<std::string>{"img-1", "img-3", "clip-7"}));
  const auto clip = std::find_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                                 [](const Json& event) { return event["name"] == "clip-7"; });
  ASSERT_NE(clip, trace["traceEvents"].end());
  EXPECT_EQ((*clip)["args"], (Json{{"bucket", "480p10s"},
                                   {"tokens", 63960},
                                   {"tokens_here", 31980},
                                   {"config", "q1h2k1"},
                                   {"ranks", {0, 1}},
                                   {"memory_bytes", 3536732160}}));
}

TEST(ChromeTrace, SaysWhyThereIsNoPlan) {
  const Json trace = Json::parse(chrome_trace(failed("zellige", "too large \"for\" <us>")));
  ASSERT_EQ(trace["traceEvents"].size(), 1u);
  EXPECT_EQ(trace["traceEvents"][0]["args"]["name"], "zellige: too large \"for\" <us>");
}

}  // namespace
}  // namespace zellige
