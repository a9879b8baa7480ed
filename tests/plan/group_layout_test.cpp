// SPDX-License-Identifier: Apache-2.0
#include "plan/group_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "baseline_cases.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using testing::input_error_of;

TEST(GroupLayout, NotationIsReadInAnyOrderAndWrittenLargestFirst) {
  const GroupLayout layout = parse_group_layout("g3n1+g1n2+g12n4", 100, "test");
  EXPECT_EQ(layout.groups, (std::vector<GroupCount>{{1, 2}, {3, 1}, {12, 4}}));
  EXPECT_EQ(layout.num_ranks(), 53);
  EXPECT_EQ(layout.num_groups(), 7);
  EXPECT_EQ(text(layout), "g12n4+g3n1+g1n2");
  EXPECT_EQ(parse_group_layout("g1n2+g3n1+g12n4", 100, "test"), layout);
}

TEST(GroupLayout, RanksAreConsecutiveAndTheSmallestGroupsComeFirst) {
  const std::vector<RankGroup> groups = rank_groups(parse_group_layout("g3n1+g2n2+g1n1", 8, "test"), 10);
  ASSERT_EQ(groups.size(), 4u);
  const std::vector<std::pair<int, Rank>> expected = {{1, 10}, {2, 11}, {2, 13}, {3, 15}};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    EXPECT_EQ(std::pair(groups[i].size, groups[i].first_rank), expected[i]) << i;
  }
}

TEST(GroupLayout, WrongNotationIsRefusedByWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "'g' is expected at character 1"},
      {"3n1", "'g' is expected at character 1"},
      {"gn1", "a number (group size) is expected at character 2"},
      {"g3", "'n' is expected at character 3"},
      {"g3x1", "'n' is expected at character 3"},
      {"g3n", "a number (number of groups) is expected at character 4"},
      {"g3n1+", "'g' is expected at character 6"},
      {"g3n1g1n1", "'+' is expected at character 5"},
      {"g3n1+g1n1 ", "'+' is expected at character 10"},
      {" g3n1", "'g' is expected at character 1"},
      {"g+3n1", "a number (group size) is expected at character 2"},
      {"g0n1", "group size 0 is not in 1..8"},
      {"g-1n1", "group size -1 is not in 1..8"},
      {"g2n0", "number of groups 0 is not in 1..8"},
      {"g9n1", "group size 9 is not in 1..8"},
      {"g99999999999999999999n1", "group size 99999999999999999999 is not in 1..8"},
      {"g2n1+g2n2", "group size 2 comes twice"},
      {"g4n2+g1n1", "it takes 9 ranks or more, and there are 8"},
      {"g4n3", "it takes 12 ranks or more, and there are 8"},
  };
  for (const auto& [notation, expected] : cases) {
    const std::string error = input_error_of([&] { parse_group_layout(notation, 8, "plan.test"); });
    EXPECT_THAT(error, HasSubstr(expected)) << notation;
    EXPECT_THAT(error, HasSubstr("[plan.test] layout '" + std::string(notation) + "'"));
    EXPECT_THAT(error, HasSubstr("such as g3n1+g1n1"));
  }
}

/// Number of partitions of n into the given parts, by the textbook's table.
std::int64_t num_partitions(int n, const std::vector<int>& parts) {
  std::vector<std::int64_t> ways(n + 1, 0);
  ways[0] = 1;
  for (const int part : parts) {
    for (int i = part; i <= n; ++i) ways[i] += ways[i - part];
  }
  return ways[n];
}

TEST(GroupLayout, EveryPartitionIsListedOnceAndSinglesFirst) {
  for (const std::vector<int>& sizes : {std::vector{1}, {1, 2}, {1, 2, 3, 4, 6, 12}, {1, 3, 5}}) {
    for (int ranks = 1; ranks <= 24; ++ranks) {
      const LayoutList list = group_layouts(ranks, sizes, 100'000);
      EXPECT_TRUE(list.complete);
      EXPECT_EQ(static_cast<std::int64_t>(list.layouts.size()), num_partitions(ranks, sizes));
      std::set<std::string> seen;
      for (const GroupLayout& layout : list.layouts) {
        EXPECT_EQ(layout.num_ranks(), ranks);
        EXPECT_EQ(parse_group_layout(text(layout), ranks, "test"), layout);
        seen.insert(text(layout));
      }
      EXPECT_EQ(seen.size(), list.layouts.size());
      EXPECT_EQ(text(list.layouts.front()), "g1n" + std::to_string(ranks));
    }
  }
}

TEST(GroupLayout, TooManyLayoutsAreCutToThoseThatMixFewerSizes) {
  const std::vector<int> sizes = {1, 2, 3, 4, 6, 12};
  const LayoutList all = group_layouts(32, sizes, 100'000);
  const auto mixes_at_most = [&](std::size_t kinds) {
    return std::count_if(all.layouts.begin(), all.layouts.end(),
                         [&](const GroupLayout& layout) { return layout.groups.size() <= kinds; });
  };
  const auto limit = static_cast<std::size_t>(mixes_at_most(3));
  const LayoutList cut = group_layouts(32, sizes, limit);
  EXPECT_FALSE(cut.complete);
  EXPECT_EQ(cut.layouts.size(), limit);
  const LayoutList cut_more = group_layouts(32, sizes, limit - 1);
  EXPECT_EQ(static_cast<std::int64_t>(cut_more.layouts.size()), mixes_at_most(2));
  EXPECT_LE(group_layouts(1024, sizes, 20'000).layouts.size(), 20'000u);
}

}  // namespace
}  // namespace zellige
