// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "report/example_plans.h"
#include "report/figures.h"
#include "report/page_reading.h"
#include "zellige/report.h"
#include "zellige/score.h"

namespace zellige {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using namespace zellige::testing;

TEST(PageReading, NoticesWhatIsWrong) {
  const std::string head = "<!DOCTYPE html>\n<html><head><title>t</title></head><body><h1>h</h1>";
  const std::string tail = "</body></html>";
  EXPECT_EQ(read_page(head + tail)["title"], "t");
  EXPECT_NONFATAL_FAILURE(read_page(head + "<p>open" + tail), "</body> closes ['p']");
  EXPECT_NONFATAL_FAILURE(read_page(head + "<p>a & b</p>" + tail), "not well-formed");
  EXPECT_NONFATAL_FAILURE(read_page(head + "<img src=\"x.png\"/>" + tail), "refers to x.png");
  EXPECT_NONFATAL_FAILURE(read_page(head + "<script>1</script>" + tail), "script");
  EXPECT_NONFATAL_FAILURE(read_page(head + "<p>http://elsewhere</p>" + tail), "outside");
  EXPECT_NONFATAL_FAILURE(read_page(head + "<p onclick=\"x\">a</p>" + tail), "handler onclick");
}

/// The three charts' drawn bars, read off their own axes, against the plan's totals.
void expect_bars(const Json& charts, const Score& score) {
  ASSERT_EQ(charts.size(), 3u);
  EXPECT_EQ(charts[0]["name"].get<std::string>().substr(0, 6), "Tokens");
  EXPECT_EQ(charts[1]["name"].get<std::string>().substr(0, 4), "Load");
  EXPECT_EQ(charts[2]["name"].get<std::string>().substr(0, 6), "Memory");
  const auto unit = [&](std::size_t chart) {
    const std::string name = charts[chart]["name"];
    const std::string text = name.find(", ") == std::string::npos ? "" : name.substr(name.find(", ") + 2);
    const std::map<std::string, double> sizes = {{"s", 1e6},
                                                 {"ms", 1e3},
                                                 {"us", 1},
                                                 {"", 1},
                                                 {"K", 1e3},
                                                 {"M", 1e6},
                                                 {"B", 1},
                                                 {"KiB", 1024.0},
                                                 {"MiB", 1024.0 * 1024},
                                                 {"GiB", 1024.0 * 1024 * 1024}};
    return sizes.at(text);
  };
  for (std::size_t rank = 0; rank < score.load.size(); ++rank) {
    const auto drawn = [&](std::size_t chart) { return charts[chart]["bars"][rank].get<double>() * unit(chart); };
    const auto near = [](double actual, double expected) { EXPECT_NEAR(actual, expected, 0.005 * expected + 1); };
    near(drawn(0), static_cast<double>(score.tokens[rank].value));
    near(drawn(1), static_cast<double>(score.load[rank].value));
    near(drawn(2), static_cast<double>(score.memory[rank].value));
  }
}

void expect_rank_table(const Json& table, const Score& score) {
  ASSERT_EQ(table.size(), score.load.size() + 1);
  for (std::size_t rank = 0; rank < score.load.size(); ++rank) {
    const Json& row = table[rank + 1];
    EXPECT_EQ(row[0], std::to_string(rank));
    EXPECT_EQ(row[3], grouped(score.tokens[rank].value));
    EXPECT_EQ(row[4], grouped(score.load[rank].value));
    EXPECT_EQ(row[5], grouped(score.exchange[rank].value));
    EXPECT_EQ(row[6], grouped(score.memory[rank].value));
  }
}

TEST(HtmlPage, ShowsTheWorkedPlan) {
  const Plan plan = worked_plan();
  const Profile profile = worked_profile();
  const Json page = read_page(html_page({"A worked case", {plan}, {}, "with a note"}, profile));
  EXPECT_EQ(page["title"], "A worked case");
  EXPECT_EQ(page["heading"], "A worked case");
  EXPECT_THAT(page["text"].get<std::string>(), HasSubstr("with a note"));
  EXPECT_THAT(page["text"].get<std::string>(),
              HasSubstr("2 ranks, 5 sequences (1 video, 4 images), 87,480 tokens; model wan2.1-t2v-1.3b; prices for "
                        "NVIDIA H200, estimated; activation checkpointing"));

  // Moved: (2 forward runs x 2 + 2 backward) x 63,960 x 1,536 elements x 2 bytes x 30 layers.
  const Json& row = page["tables"]["methods"][0][1];
  EXPECT_EQ(row, (Json{"zellige", "optimal, certified (own)", "3.564 s", "1.53%", "1.000", "1", "0 B", "32.94 GiB",
                       "0 B", "32.94 GiB", "25.88 GiB (20%)", "900 us"}));
  const Score score = zellige::score(plan.placement, profile);
  expect_rank_table(page["tables"]["ranks"][0], score);
  EXPECT_EQ(page["tables"]["splits"][0][1],
            (Json{"clip-7", "480p10s", "63,960", "q1h2k1", "0, 1", "3.270 s", "3.29 GiB"}));

  ASSERT_EQ(page["sections"].size(), 1u);
  const Json& charts = page["sections"][0]["charts"];
  expect_bars(charts, score);
  EXPECT_EQ(charts[0]["hatched"], 2);
  EXPECT_EQ(charts[0]["parts"], 6);
  EXPECT_THAT(charts[1]["hovers"],
              Contains("clip-7 (480p10s video, 63,960 tokens), shard of q1h2k1 on ranks 0, 1: 3.270 s"));
  EXPECT_THAT(charts[0]["hovers"], Contains("img-3 (720p image, 3,600 tokens), whole: 3,600 tokens"));
  EXPECT_EQ(charts[1]["limit"], Json{"floor 3.511 s"});
  EXPECT_EQ(charts[1]["limit_drawn"], true);
  // The cap is 24 times what is used: named, but not drawn, or the bars would be flat.
  EXPECT_EQ(charts[2]["limit"], Json{"cap 108.96 GiB, above the axis"});
  EXPECT_EQ(charts[2]["limit_drawn"], false);
  EXPECT_THAT(page["text"].get<std::string>(), HasSubstr("weights, optimizer states and context (21.42 GiB)"));
}

TEST(HtmlPage, ComparesMethodsOnSharedAxes) {
  const Batch batch = many_images(4, 40);
  const Profile profile = built_in_profile("h200", batch.catalog);
  const Plan whole = dealt_out(batch, profile, "whole"), split = split_over_all(batch, profile, "split");
  const Json page =
      read_page(html_page({"Two ways", {whole, failed("third", "rank 2 is 5 bytes over"), split}, {}, ""}, profile));
  const Json& rows = page["tables"]["methods"][0];
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1][0], "whole");
  EXPECT_EQ(rows[2], (Json{"third", "infeasible", "rank 2 is 5 bytes over"}));
  EXPECT_EQ(rows[3][0], "split");
  ASSERT_EQ(page["sections"].size(), 2u) << "a method without a plan has no charts";
  expect_bars(page["sections"][0]["charts"], score(whole.placement, profile));
  expect_bars(page["sections"][1]["charts"], score(split.placement, profile));
  EXPECT_EQ(page["sections"][0]["charts"][0]["hatched"], 0);
  EXPECT_GT(page["sections"][1]["charts"][0]["hatched"], 0);
  expect_rank_table(page["tables"]["ranks"][0], score(whole.placement, profile));
  expect_rank_table(page["tables"]["ranks"][1], score(split.placement, profile));
}

TEST(HtmlPage, MergesWhatIsTooLowToTellApart) {
  const Batch batch = many_images(4, 6000);
  const Profile profile = built_in_profile("h200", batch.catalog);
  const Plan whole = dealt_out(batch, profile, "whole"), split = split_over_all(batch, profile, "split");
  const std::string html = html_page({"Many", {whole, split}, {}, ""}, profile);
  EXPECT_LT(html.size(), 120'000u);
  const Json page = read_page(html);
  for (const Json& section : page["sections"]) {
    for (const Json& chart : section["charts"]) EXPECT_LE(chart["parts"], 12);
  }
  EXPECT_THAT(page["sections"][0]["charts"][0]["hovers"],
              Contains(HasSubstr("1,500 x 256p image, 256 tokens each, whole: 384,000 tokens\ni0, i4, i8, i12, ...")));
  expect_bars(page["sections"][0]["charts"], score(whole.placement, profile));
  expect_bars(page["sections"][1]["charts"], score(split.placement, profile));
  EXPECT_EQ(page["tables"]["splits"][0].size(), 201u);
  EXPECT_THAT(page["text"].get<std::string>(), HasSubstr("and 5,801 more split sequences"));
}

TEST(HtmlPage, DrawsTheFullestOfEveryFewRanksWhereThereAreMany) {
  const Batch batch = many_images(1024, 4000);
  const Profile profile = built_in_profile("h200", batch.catalog);
  const Plan plan = dealt_out(batch, profile, "whole");
  const Json page = read_page(html_page({"Wide", {plan}, {}, ""}, profile));
  const Json& bars = page["sections"][0]["charts"][1]["bars"];
  EXPECT_GT(bars.size(), 100u);
  EXPECT_LT(bars.size(), 150u);
  const double most = *std::max_element(bars.begin(), bars.end());
  EXPECT_NEAR(most, static_cast<double>(plan.makespan.value) / 1e6, 0.01 * most) << "the slowest rank is among them";
  EXPECT_THAT(page["text"].get<std::string>(), HasSubstr("the fullest of every"));
  EXPECT_EQ(page["tables"]["ranks"][0].size(), 1025u);
}

TEST(HtmlPage, NamesOfTheOutsideWorldStayText) {
  const std::string evil = "</title><script>alert('x' & \"y\")</script>\x01";
  const std::string shown = "</title><script>alert('x' & \"y\")</script>\\u0001";
  Plan plan = worked_plan();
  plan.placement.sequences[0].id = evil;
  plan.method = evil;
  const Json page = read_page(
      html_page({evil, {plan, failed(evil, evil)}, {{evil, evil, evil, {1, 2}, {3, 4}}}, evil}, worked_profile()));
  EXPECT_EQ(page["title"], shown);
  EXPECT_EQ(page["tables"]["methods"][0][1][0], shown);
  EXPECT_EQ(page["tables"]["methods"][0][2][2], shown);
  EXPECT_EQ(page["tables"]["splits"][0][1][0], shown);
  EXPECT_THAT(page["sections"][0]["charts"][0]["hovers"], Contains(HasSubstr(shown)));
}

TEST(HtmlPage, StandsWithNothingToShow) {
  const Json empty = read_page(html_page({"Nothing", {}, {}, ""}, worked_profile()));
  EXPECT_TRUE(empty["sections"].empty());
  EXPECT_TRUE(empty["tables"].empty());

  const Json no_plan = read_page(html_page({"No plan", {failed("zellige", "too large")}, {}, ""}, worked_profile()));
  EXPECT_THAT(no_plan["text"].get<std::string>(), HasSubstr("too large"));

  Plan no_sequences;
  no_sequences.method = "idle";
  no_sequences.status = PlanStatus::optimal;
  no_sequences.placement.ranks = 3;
  no_sequences.placement.model = worked_profile().catalog.model;
  const Json idle = read_page(html_page({"Idle", {no_sequences}, {}, ""}, worked_profile()));
  EXPECT_EQ(idle["tables"]["methods"][0][1][2], "0 us");
  EXPECT_EQ(idle["sections"][0]["charts"][0]["parts"], 0);
}

}  // namespace
}  // namespace zellige
