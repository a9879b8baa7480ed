// SPDX-License-Identifier: Apache-2.0
#include "plan/relax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "instance.h"
#include "zellige/check.h"

namespace zellige {
namespace {

using testing::counted_batch;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::whole_profile;

std::string words(const Batch& batch, const Profile& profile) {
  return what_would_fit(batch, profile, PlanOptions{}, Deadline(std::numeric_limits<double>::infinity(), {}));
}

TEST(Relaxations, NameTheSmallestOfEachKind) {
  // Seven of 4 bytes and one of 9 on two ranks of 16.
  const Profile profile = whole_profile({5, 500}, {4, 9}, 16);
  const Batch batch = counted_batch(profile, {7, 1}, 2);
  const std::string text = words(batch, profile);
  // Rank 0: 9 + 4, rank 1: 4 x 4 leaves two fours of 100 tokens; without the nine (101 tokens) all seven fit. So the
  // nine is least.
  EXPECT_THAT(text, HasSubstr("without 1 of the 1 sequences of bucket 'b1', 101 tokens"));
  EXPECT_THAT(text, HasSubstr("on 3 ranks instead of 2"));
  EXPECT_THAT(text, HasSubstr("with 4 bytes more on every rank"));  // 9 + 2 x 4 = 17 and 5 x 4
  EXPECT_THAT(text, Not(HasSubstr("menu")));
  EXPECT_THAT(text, Not(HasSubstr("checkpointing")));
}

TEST(Relaxations, AreTakenAtTheirWord) {
  int tried = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    testing::InstanceShape shape;
    shape.sequences = 6;
    shape.memory_over_mean = 0.6;
    testing::Instance instance = testing::random_instance(engine, shape);
    PlanOptions options;
    options.ortools = "none";
    const auto plan = [&] { return make_planner("zellige")->plan(instance.batch, instance.profile, options); };
    const Plan none = plan();
    if (none.has_placement()) continue;
    ASSERT_THAT(none.reason, HasSubstr("It would fit")) << none.reason;
    EXPECT_TRUE(check(none, instance.batch, instance.profile).empty());
    const auto number_after = [&](const std::string& words_before) {
      const auto at = none.reason.find(words_before);
      return at == std::string::npos ? -1 : std::stoll(none.reason.substr(at + words_before.size()));
    };
    const Batch batch = instance.batch;
    if (const auto ranks = number_after("or on "); ranks > 0) {
      instance.batch.ranks = static_cast<int>(ranks);
      EXPECT_TRUE(plan().has_placement());
      instance.batch = batch;
      ++tried;
    }
    if (const auto bytes = number_after("or with "); bytes > 0) {
      instance.profile.memory_usable.value += bytes;
      EXPECT_TRUE(plan().has_placement());
      ++tried;
    }
  }
  EXPECT_GT(tried, 40);
}

TEST(Relaxations, KnowCheckpointing) {
  const Batch batch = make_workload("high:V50");
  const Profile profile = built_in_profile("h200", batch.catalog, false, batch.ranks);
  PlanOptions options;
  options.ortools = "none";
  const Plan plan = make_planner("zellige")->plan(batch, profile, options);
  ASSERT_FALSE(plan.has_placement());
  EXPECT_THAT(plan.reason, HasSubstr("with activation checkpointing (needs estimated)"));
  EXPECT_THAT(plan.reason, HasSubstr("over"));
}

TEST(Relaxations, KnowConfigurationsWithoutAPrice) {
  Profile profile = whole_profile({5, 500}, {1, 1}, 10);
  const Bytes need = memory_terms(profile.catalog.model, profile.catalog.buckets[1].tokens, {1, 1, 1}).total();
  Price price = profile.whole(1);
  price.memory = need;
  profile.set_prices(1, {price});
  profile.memory_usable = {need.value * 4 / 5};
  EXPECT_THAT(words(counted_batch(profile, {0, 1}, 2), profile),
              HasSubstr("with prices of the legal configurations that the profile lacks, up to degree 2"));
}

}  // namespace
}  // namespace zellige
