// SPDX-License-Identifier: Apache-2.0
// The four files of tests/golden/worked_case, read and judged together.
#include <gtest/gtest.h>

#include "base/json.h"
#include "placement/worked_case.h"
#include "zellige/batch.h"
#include "zellige/check.h"
#include "zellige/profile.h"
#include "zellige/score.h"

namespace zellige {
namespace {

TEST(WorkedCase, FilesAreWhatIsWrittenByHandHere) {
  EXPECT_EQ(read_catalog(worked_case::file("catalog")), worked_case::catalog());
  EXPECT_EQ(read_profile(worked_case::file("profile")), worked_case::profile());
  const Batch batch = read_batch(worked_case::file("batch"));
  EXPECT_EQ(batch.ranks, 2);
  EXPECT_EQ(batch.catalog, worked_case::catalog());
  ASSERT_EQ(batch.sequences.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(batch.sequences[i].id, worked_case::batch().sequences[i].id);
    EXPECT_EQ(batch.sequences[i].bucket, worked_case::batch().sequences[i].bucket);
  }
}

TEST(WorkedCase, IsCompletedCheckedAndScoredFromItsFiles) {
  const Batch batch = read_batch(worked_case::file("batch"));
  const Profile profile = read_profile(worked_case::file("profile"));
  const Plan plan = read_plan(worked_case::file("plan"), batch);
  EXPECT_TRUE(check(plan, batch, profile).empty());
  Plan again = plan;
  complete(again, batch, profile);
  EXPECT_EQ(plan_json(again), read_text_file(worked_case::file("plan")));
  EXPECT_EQ(score(plan.placement, profile).load, plan.load);
}

}  // namespace
}  // namespace zellige
