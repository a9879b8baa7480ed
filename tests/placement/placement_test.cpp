// SPDX-License-Identifier: Apache-2.0
#include "zellige/placement.h"

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "placement/worked_case.h"
#include "zellige/error.h"

namespace zellige {
namespace {

TEST(Digest, OfTheWorkedCaseIsTheOneInItsFile) { EXPECT_EQ(digest(worked_case::placement()), worked_case::kDigest); }

// Python: "sha256:" + hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
TEST(Digest, OfAwkwardIdsIsPythons) {
  Placement placement;
  placement.ranks = 4;
  placement.model = worked_case::catalog().model;
  placement.model.name = "m\"\\\xC3\xA9";
  placement.sequences = {
      {"", "b", MediaKind::image, {1}, {1, 1, 1}, {3}, {}, {}},
      {"a \"quoted\" \\ back\tslash\x7f", "b", MediaKind::image, {7}, {2, 1, 2}, {3, 0, 2, 1}, {}, {}},
      {"\xE7\x8C\xAB/\xF0\x9F\x8E\xAC.mp4", "b", MediaKind::image, {497760}, {1, 2, 1}, {0, 3}, {}, {}}};
  placement.exec = {.engine = "paper", .waves = 3, .overlap = true, .keep_kv = false};
  EXPECT_EQ(digest(placement), "sha256:7a044a8de0ab49aba6ce5401c941843d4f73fd5c9fd49c1c958b73e591c5c2e3");
}

TEST(Digest, RefusesAnIdThatIsNotUtf8) {
  Placement placement = worked_case::placement();
  placement.sequences[0].id.assign(2, '\xFF');
  EXPECT_THROW(digest(placement), Error);
}

TEST(Digest, ChangesWithAllThatDecidesWhatRunsAndWithNothingElse) {
  const std::vector<std::function<void(Placement&)>> decisive = {
      [](Placement& p) { p.sequences[0].id = "clip-8"; },
      [](Placement& p) { p.sequences[0].tokens.value += 1; },
      [](Placement& p) {
        p.sequences[0].config = {2, 1, 1};
      },
      [](Placement& p) {
        p.sequences[0].config = {1, 1, 2};
      },
      [](Placement& p) { std::swap(p.sequences[0].ranks[0], p.sequences[0].ranks[1]); },
      [](Placement& p) { p.sequences[1].ranks = {1}; },
      [](Placement& p) { std::swap(p.sequences[1], p.sequences[2]); },
      [](Placement& p) { p.sequences.pop_back(); },
      [](Placement& p) { p.model.head_dim = 64; },
      [](Placement& p) { p.model.layers = 40; },
      [](Placement& p) { p.model.text = TextPlacement::joint_rear; },
      [](Placement& p) { p.exec.engine = "paper"; },
      [](Placement& p) { p.exec.waves = 2; },
      [](Placement& p) { p.exec.overlap = true; },
      [](Placement& p) { p.exec.keep_kv = false; },
  };
  std::set<std::string> seen = {worked_case::kDigest};
  for (std::size_t i = 0; i < decisive.size(); ++i) {
    Placement changed = worked_case::placement();
    decisive[i](changed);
    EXPECT_TRUE(seen.insert(digest(changed)).second) << "change " << i << " does not show";
  }
  Placement claims = worked_case::placement();
  claims.sequences[0].time = {1};
  claims.sequences[0].memory = {1};
  claims.sequences[0].bucket = "renamed";
  EXPECT_EQ(digest(claims), worked_case::kDigest);
}

TEST(Names, AreThoseOfTheFormat) {
  EXPECT_EQ(name(PlanStatus::optimal), "optimal");
  EXPECT_EQ(name(PlanStatus::feasible), "feasible");
  EXPECT_EQ(name(PlanStatus::infeasible), "infeasible");
  EXPECT_EQ(name(PlanStatus::timeout), "timeout");
  EXPECT_EQ(name(PlanStatus::unknown), "unknown");
  EXPECT_EQ(name(SolveStatus::optimal), "optimal");
  EXPECT_EQ(name(SolveStatus::feasible), "feasible");
  EXPECT_EQ(name(SolveStatus::infeasible), "infeasible");
  EXPECT_EQ(name(SolveStatus::timeout), "timeout");
}

}  // namespace
}  // namespace zellige
