// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zellige/catalog.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;

const ModelGeometry kWan = model_preset("wan2.1-t2v-1.3b");

TEST(Legality, EachRuleRefusesAlone) {
  EXPECT_EQ(why_illegal(kWan, Tokens{100}, {1, 1, 1}, 1), "");
  EXPECT_EQ(why_illegal(kWan, Tokens{100}, {2, 4, 1}, 8), "");
  EXPECT_THAT(why_illegal(kWan, Tokens{100}, {0, 1, 1}, 8), HasSubstr("factor below 1"));
  EXPECT_THAT(why_illegal(kWan, Tokens{100}, {1, -1, 1}, 8), HasSubstr("factor below 1"));
  EXPECT_THAT(why_illegal(kWan, Tokens{100}, {2, 4, 1}, 7), HasSubstr("q2h4k1 needs more ranks than the 7"));
  EXPECT_THAT(why_illegal(kWan, Tokens{7}, {2, 4, 1}, 8), HasSubstr("cuts 7 tokens into 8 chunks"));
  EXPECT_EQ(why_illegal(kWan, Tokens{8}, {2, 4, 1}, 8), "");
  EXPECT_EQ(why_illegal(kWan, Tokens{100}, {1, 8, 1}, 8), "head split 8 does not divide 12 heads");
  ModelGeometry grouped = kWan;
  grouped.kv_heads = 2;
  EXPECT_EQ(why_illegal(grouped, Tokens{100}, {1, 4, 1}, 8), "head split 4 does not divide 2 key/value heads");
  // A product that would overflow an int.
  EXPECT_THAT(why_illegal(kWan, Tokens{100}, {65536, 65536, 65536}, 1 << 20), HasSubstr("needs more ranks"));
}

TEST(Legality, HeadsOfTwelveAllowSixUlyssesDegrees) {
  std::set<int> degrees;
  for (int h = 1; h <= 12; ++h) {
    if (why_illegal(kWan, Tokens{100}, {1, h, 1}, 12).empty()) degrees.insert(h);
  }
  EXPECT_EQ(degrees, (std::set<int>{1, 2, 3, 4, 6, 12}));
}

TEST(Legality, PaperMenuHasEighteenSplitConfigurations) {  // 3 + 6 + 9 for degrees 2, 4, 8
  const auto menu8 = menu(kWan, Tokens{63960}, 8, Menu::powers_of_two);
  int of_degree[9] = {};
  for (const Configuration& c : menu8) ++of_degree[c.degree()];
  EXPECT_EQ(menu8.size(), 19u);
  EXPECT_EQ(of_degree[1], 1);
  EXPECT_EQ(of_degree[2], 3);
  EXPECT_EQ(of_degree[4], 6);
  EXPECT_EQ(of_degree[8], 9);  // all ten but (1, 8, 1): 8 does not divide 12
}

TEST(Legality, MenuIsAllLegalTriplesInOrder) {
  for (const Menu which : {Menu::powers_of_two, Menu::all}) {
    for (const int ranks : {1, 2, 3, 7, 8, 16, 64}) {
      for (const int length : {1, 5, 4096}) {
        std::set<std::tuple<int, int, int, int>> expected;  // degree, q, h, k: by enumeration of all triples
        for (int q = 1; q <= 16; ++q)
          for (int h = 1; h <= 16; ++h)
            for (int k = 1; k <= 16; ++k) {
              const int d = q * h * k;
              const bool power = (d & (d - 1)) == 0;
              if (d > 16 || d > ranks || d > length || 12 % h != 0 || (which == Menu::powers_of_two && !power))
                continue;
              expected.emplace(d, q, h, k);
            }
        std::vector<std::tuple<int, int, int, int>> got;
        for (const Configuration& c : menu(kWan, Tokens{length}, ranks, which))
          got.emplace_back(c.degree(), c.q, c.h, c.k);
        EXPECT_EQ(got, (std::vector<std::tuple<int, int, int, int>>(expected.begin(), expected.end())))
            << ranks << " ranks, length " << length;
      }
    }
  }
}

TEST(Legality, Text) { EXPECT_EQ(text(Configuration{2, 4, 1}), "q2h4k1"); }

}  // namespace
}  // namespace zellige
