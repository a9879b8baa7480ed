// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/refusal.h"
#include "zellige/batch.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using zellige::testing::refusal;

// Literal counts of docs/design/evaluation.md: videos of 1080p, 720p, 480p at 35, 40, 45, 50, 55 and 60 %.
using Counts = std::array<std::array<int, 3>, 6>;
const std::map<std::string, Counts> kVideos = {
    {"high", {{{2, 1, 3}, {2, 2, 2}, {2, 3, 2}, {3, 2, 2}, {3, 2, 4}, {3, 3, 4}}}},
    {"low", {{{1, 0, 0}, {1, 0, 1}, {1, 0, 2}, {1, 1, 0}, {1, 1, 1}, {1, 1, 2}}}},
    {"a800x16", {{{2, 3, 3}, {3, 2, 3}, {3, 3, 4}, {3, 4, 5}, {4, 3, 5}, {4, 4, 5}}}},
    {"a6000x32", {{{2, 3, 3}, {3, 2, 3}, {3, 3, 4}, {3, 4, 5}, {4, 3, 5}, {4, 4, 5}}}},
};
const std::map<std::string, int> kRanks = {{"high", 8}, {"low", 8}, {"a800x16", 16}, {"a6000x32", 32}};
const std::map<std::string, std::int64_t> kTokensPerRank = {
    {"high", 350'000}, {"low", 125'000}, {"a800x16", 350'000}, {"a6000x32", 175'000}};

TEST(Workload, SuitesAreThePapers) {
  EXPECT_EQ(workload_suites(), (std::vector<std::string>{"high", "low", "a800x16", "a6000x32"}));
}

TEST(Workload, LiteralVideoCounts) {
  for (const auto& [suite, rows] : kVideos) {
    const std::string duration = kRanks.at(suite) == 8 ? "10s" : "15s";
    for (int i = 0; i < 6; ++i) {
      const std::string name = suite + ":V" + std::to_string(35 + 5 * i);
      const Batch batch = make_workload(name);
      EXPECT_EQ(batch.ranks, kRanks.at(suite)) << name;
      std::map<std::string, int> count;
      for (std::size_t s = 0; s < batch.sequences.size(); ++s) ++count[batch.bucket_of(static_cast<int>(s)).name];
      EXPECT_EQ(count["1080p" + duration], rows[i][0]) << name;
      EXPECT_EQ(count["720p" + duration], rows[i][1]) << name;
      EXPECT_EQ(count["480p" + duration], rows[i][2]) << name;
    }
  }
}

TEST(Workload, ImagesFillTheRestAQuarterEach) {
  const Batch batch = make_workload("high:V50");
  std::map<std::string, std::int64_t> count;
  std::int64_t tokens = 0;
  for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
    ++count[batch.bucket_of(static_cast<int>(s)).name];
    tokens += batch.tokens_of(static_cast<int>(s)).value;
  }
  // 2,800,000 - 3 x 334,560 - 2 x 147,600 - 2 x 63,960 = 1,373,200; a quarter is 343,300.
  EXPECT_EQ(count["1080p"], 42);       // 342,720
  EXPECT_EQ(count["720p"], 95);        // 342,000
  EXPECT_EQ(count["480p"], 220);       // 343,200
  EXPECT_EQ(count["256p"], 1341 + 7);  // 343,296, and of the 1,984 left 7 more
  EXPECT_EQ(tokens, 2'800'000 - (1984 - 7 * 256));
}

TEST(Workload, BudgetIsKeptAndLeavesLessThanOneSmallImage) {
  for (const auto& [suite, rows] : kVideos) {
    for (int share = 35; share <= 60; share += 5) {
      const Batch batch = make_workload(suite + ":V" + std::to_string(share));
      std::int64_t tokens = 0;
      for (std::size_t s = 0; s < batch.sequences.size(); ++s) tokens += batch.tokens_of(static_cast<int>(s)).value;
      const std::int64_t budget = kRanks.at(suite) * kTokensPerRank.at(suite);
      EXPECT_LE(tokens, budget);
      EXPECT_GT(tokens, budget - 256);
    }
  }
}

TEST(Workload, OrderIdsAndCatalog) {
  const Batch batch = make_workload("a800x16:V50");
  EXPECT_EQ(batch.sequences[0].id, "v0");
  EXPECT_EQ(batch.bucket_of(0).name, "1080p15s");
  EXPECT_EQ(batch.tokens_of(0).value, 497'760);
  std::set<std::string> ids;
  for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
    const int at = static_cast<int>(s);
    EXPECT_TRUE(ids.insert(batch.sequences[s].id).second);
    if (s == 0) continue;
    const bool new_kind = batch.bucket_of(at).kind != batch.bucket_of(at - 1).kind;
    if (new_kind) {
      EXPECT_EQ(batch.bucket_of(at).kind, MediaKind::image) << "videos come first";
      EXPECT_EQ(batch.sequences[s].id, "i0");
    } else {
      EXPECT_LE(batch.tokens_of(at), batch.tokens_of(at - 1));
    }
  }
  EXPECT_EQ(batch.bucket_of(static_cast<int>(batch.sequences.size()) - 1).name, "256p");
  std::string names;
  for (const Bucket& bucket : batch.catalog.buckets) names += bucket.name + " ";
  EXPECT_EQ(names, "256p 480p 720p 1080p 480p15s 720p15s 1080p15s ");
}

TEST(Workload, OtherRanksKeepTheBudgetARank) {
  const Batch batch = make_workload("high:V50", 64);
  EXPECT_EQ(batch.ranks, 64);
  std::int64_t tokens = 0;
  for (std::size_t s = 0; s < batch.sequences.size(); ++s) tokens += batch.tokens_of(static_cast<int>(s)).value;
  EXPECT_LE(tokens, 64 * 350'000);
  EXPECT_GT(tokens, 64 * 350'000 - 256);
}

TEST(Workload, WrongNamesAreRefused) {
  EXPECT_EQ(refusal([] { make_workload("high:V00"); }), "nothing was refused");  // positive control
  EXPECT_EQ(refusal([] { make_workload("high:V100"); }), "nothing was refused");
  for (const char* name : {"", "high", "high:", "high:V", "high:50", "high:V101", "high:V-5", "high:V5x", "hihg:V50",
                           "high:V50 ", ":V50", "high:V99999999999"}) {
    const std::string message = refusal([&] { make_workload(name); });
    EXPECT_THAT(message, HasSubstr("workload '" + std::string(name) + "' is not one")) << name;
    EXPECT_THAT(message, HasSubstr("high, low, a800x16, a6000x32"));
  }
  EXPECT_THAT(refusal([] { make_workload("high:V50", -1); }), HasSubstr("ranks -1"));
}

}  // namespace
}  // namespace zellige
