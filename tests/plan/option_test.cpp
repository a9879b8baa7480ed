// SPDX-License-Identifier: Apache-2.0
#include "plan/option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "instance.h"
#include "zellige/error.h"

namespace zellige {
namespace {

using testing::counted_batch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::whole_profile;

Problem problem_of(const Batch& batch, const Profile& profile, Menu menu = Menu::powers_of_two) {
  return make_problem(batch, profile, match_buckets(batch, profile),
                      std::vector<bool>(profile.catalog.buckets.size(), true), menu);
}

Option option(int degree, std::int64_t time_us, std::int64_t memory_bytes, Configuration config = {}) {
  if (config == Configuration{}) config = {1, degree, 1};
  return {config, degree, time_us, memory_bytes};
}

TEST(Problem, GroupsABatchByBucketDearestFirstMembersInBatchOrder) {
  const Profile profile = whole_profile({5, 90, 5}, {1, 1, 1}, 10);
  Batch batch = counted_batch(profile, {2, 1, 1}, 4);
  std::swap(batch.sequences[0], batch.sequences[3]);
  const Problem problem = problem_of(batch, profile);
  EXPECT_EQ(problem.ranks, 4);
  EXPECT_EQ(problem.memory_cap_bytes, 10);
  ASSERT_EQ(problem.groups.size(), 3u);
  EXPECT_EQ(problem.groups[0].bucket, 1);
  EXPECT_EQ(problem.groups[1].bucket, 0);  // same price as bucket 2: by name
  EXPECT_THAT(problem.groups[1].members, ElementsAre(1, 3));
  EXPECT_THAT(problem.groups[2].members, ElementsAre(0));
  EXPECT_EQ(problem.num_sequences(), 4);
}

TEST(Problem, TakesWantedBucketsAndTheMenusPricedConfigurationsOnly) {
  Profile profile = whole_profile({50, 90}, {1, 1}, 10);
  Price whole;
  whole.time = {90};
  Price two = whole, three = whole, eight = whole;
  two.config = {2, 1, 1};
  three.config = {1, 3, 1};
  eight.config = {2, 2, 2};
  profile.set_prices(1, {whole, two, three, eight});
  const Batch batch = counted_batch(profile, {1, 1}, 4);
  const auto configs = [&](Menu menu) {
    const Problem problem = make_problem(batch, profile, match_buckets(batch, profile), {false, true}, menu);
    EXPECT_EQ(problem.groups.size(), 1u);
    std::vector<int> degrees;
    for (const Option& each : problem.groups.at(0).options) degrees.push_back(each.degree);
    return degrees;
  };
  EXPECT_THAT(configs(Menu::powers_of_two), ElementsAre(1, 2));  // 8 needs more ranks than there are
  EXPECT_THAT(configs(Menu::all), ElementsAre(1, 2, 3));
}

TEST(Problem, RefusesABatchWhoseSumsLeave62Bits) {
  const Profile profile = whole_profile({std::int64_t{1} << 52}, {1}, 10);
  EXPECT_NO_THROW(problem_of(counted_batch(profile, {1023}, 2), profile));
  try {
    problem_of(counted_batch(profile, {1024}, 2), profile);
    FAIL() << "2^62 us were taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::input);
    EXPECT_THAT(error.what(), HasSubstr("'b0'"));
    EXPECT_THAT(error.what(), HasSubstr("time_us"));
  }
}

TEST(ReducedProblem, DropsWhatExceedsTheCapAndWhatIsDominated) {
  Problem problem{4, 100, {{0, {0}, {}}}};
  problem.groups[0].options = {
      option(1, 50, 101),            // over the cap
      option(2, 30, 60),             // stays: cheapest of degree 2
      option(2, 31, 60, {2, 1, 1}),  // dominated at its degree
      option(2, 40, 50, {1, 1, 2}),  // stays: less memory
      option(4, 30, 60),             // dominated by degree 2: a subset of its ranks does as well
      option(4, 20, 90, {2, 2, 1}),  // stays
      option(4, 20, 90, {1, 1, 4}),  // equal to the one before
  };
  const Problem result = reduced(problem);
  std::vector<Configuration> kept;
  for (const Option& each : result.groups[0].options) kept.push_back(each.config);
  EXPECT_THAT(kept, ElementsAre(Configuration{1, 2, 1}, Configuration{1, 1, 2}, Configuration{2, 2, 1}));
}

TEST(ReducedProblem, NamesAGroupThatFitsNowhere) {
  const Profile profile = whole_profile({5, 90}, {7, 25}, 20);
  const Batch batch = counted_batch(profile, {1, 2}, 4);
  const std::string reason = why_never_fits(problem_of(batch, profile), batch, profile);
  EXPECT_THAT(reason, HasSubstr("'1-0'"));
  EXPECT_THAT(reason, HasSubstr("'b1'"));
  EXPECT_THAT(reason, HasSubstr("25 bytes"));
  EXPECT_THAT(reason, HasSubstr("5 over the memory cap of 20"));
  const Batch fitting = counted_batch(profile, {3, 0}, 4);
  EXPECT_EQ(why_never_fits(problem_of(fitting, profile), fitting, profile), "");
}

}  // namespace
}  // namespace zellige
