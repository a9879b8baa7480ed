// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "catalog/refusal.h"
#include "report/example_plans.h"
#include "report/page_reading.h"
#include "zellige/report.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using namespace zellige::testing;

Json drawn(Series series) {
  return read_page(html_page({"t", {}, {std::move(series)}, ""}, worked_profile()))["series"][0];
}

std::vector<std::pair<double, double>> points(const std::string& line) {
  std::vector<std::pair<double, double>> result;
  std::istringstream stream(line);
  double x, y;
  char comma;
  while (stream >> x >> comma >> y) result.emplace_back(x, y);
  return result;
}

TEST(LineChart, KeepsProportions) {
  const Json chart = drawn({"Loss", "step", "mean squared error", {0, 1, 2, 4}, {8, 4, 2, 0}});
  EXPECT_EQ(chart["name"], "Loss: mean squared error");
  ASSERT_EQ(chart["lines"].size(), 1u);
  const auto at = points(chart["lines"][0]);
  ASSERT_EQ(at.size(), 4u);
  EXPECT_NEAR((at[1].first - at[0].first) * 4, at[3].first - at[0].first, 0.1);
  EXPECT_NEAR((at[1].second - at[0].second) * 2, at[3].second - at[0].second, 0.1);
  EXPECT_GT(at[3].second, at[0].second) << "less is lower";
  EXPECT_EQ(chart["dots"], (Json{"step 0: 8", "step 1: 4", "step 2: 2", "step 4: 0"}));
}

TEST(LineChart, LeavesAGapWhereAValueIsNone) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const Json chart = drawn({"Loss", "", "", {0, 1, 2, 3, 4, 5}, {1, 2, nan, 3, inf, 4}});
  ASSERT_EQ(chart["lines"].size(), 1u) << "a value alone is a dot";
  EXPECT_EQ(points(chart["lines"][0]).size(), 2u);
  EXPECT_EQ(chart["dots"].size(), 4u);
}

TEST(LineChart, ThinsALongSeriesAndKeepsItsExtremes) {
  Series series{"Loss", "step", "", {}, {}};
  for (int i = 0; i < 200'000; ++i) {
    series.x.push_back(i);
    series.y.push_back(std::sin(i / 1e4));
  }
  series.y[77'777] = 5;  // one outlier up, one down
  series.y[155'555] = -5;
  const Json chart = drawn(series);
  const auto at = points(chart["lines"][0]);
  EXPECT_LT(at.size(), 1200u);
  const auto [top, bottom] =
      std::minmax_element(at.begin(), at.end(), [](auto& a, auto& b) { return a.second < b.second; });
  const auto first = at.front();  // sin(0) = 0, half way between the outliers
  EXPECT_NEAR(first.second, (top->second + bottom->second) / 2, 0.5);
  EXPECT_NEAR((top->first - at.front().first) / (at.back().first - at.front().first), 77'777 / 199'999.0, 0.002);
  EXPECT_TRUE(chart["dots"].empty());
}

TEST(LineChart, DrawsConstantsSinglesAndNothing) {
  EXPECT_EQ(drawn({"c", "", "", {1, 2}, {3, 3}})["lines"].size(), 1u);
  EXPECT_EQ(drawn({"z", "", "", {1, 2}, {0, 0}})["lines"].size(), 1u);
  const Json single = drawn({"one", "x", "", {7}, {3}});
  EXPECT_TRUE(single["lines"].empty());
  EXPECT_EQ(single["dots"], Json{"x 7: 3"});
  EXPECT_TRUE(drawn({"none", "", "", {}, {}})["dots"].empty());
  EXPECT_TRUE(drawn({"huge", "", "", {0, 1}, {-1e308, 1e308}})["lines"].empty()) << "beyond what can be drawn";
}

TEST(LineChart, RefusesUnequalCounts) {
  const Page page{"t", {}, {{"Loss", "", "", {1, 2, 3}, {1}}}, ""};
  EXPECT_THAT(refusal([&] { html_page(page, worked_profile()); }),
              HasSubstr("series 'Loss' has 3 x and 1 y; it needs as many of both"));
}

}  // namespace
}  // namespace zellige
