// SPDX-License-Identifier: Apache-2.0
#include "zellige/check.h"

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "placement/worked_case.h"
#include "testing/findings.h"
#include "zellige/error.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using testing::shown;

/// A plan of the worked case with one thing broken, and all that may be said of it.
struct Mutant {
  const char* fragment;
  std::function<void(Plan&)> breaks;
};

void expect_only(const Plan& plan, Violation what, const char* fragment, const Batch& batch, const Profile& profile) {
  SCOPED_TRACE(fragment);
  const auto findings = check(plan, batch, profile);
  EXPECT_FALSE(findings.empty());
  for (const Finding& finding : findings) EXPECT_EQ(finding.what, what) << shown(findings);
  EXPECT_THAT(shown(findings), HasSubstr(fragment));
}

class Check : public ::testing::Test {
 protected:
  void expect_each_only(Violation what, const std::vector<Mutant>& mutants, const Plan& base) {
    ASSERT_EQ(shown(check(base, batch, profile)), "");
    for (const Mutant& mutant : mutants) {
      Plan plan = base;
      mutant.breaks(plan);
      expect_only(plan, what, mutant.fragment, batch, profile);
    }
  }
  void expect_each_only(Violation what, const std::vector<Mutant>& mutants) { expect_each_only(what, mutants, good); }

  static PlacedSequence& clip(Plan& plan) { return plan.placement.sequences[0]; }
  static PlacedSequence& image(Plan& plan, std::size_t i) { return plan.placement.sequences[i]; }

  /// A plan that proves nothing about anchors, as a baseline returns it.
  Plan unproved() const {
    Plan plan = good;
    plan.method = plan.solver = "usp";
    plan.certified = false;
    plan.certificate = {.makespan_bound = plan.certificate.makespan_bound};
    return plan;
  }
  Plan without_placement() const {
    Plan plan = good;
    plan.status = PlanStatus::unknown;
    plan.certified = false;
    plan.reason = "rank 0 is over the cap by 5 bytes";
    plan.placement.sequences.clear();
    plan.load.clear();
    plan.memory.clear();
    plan.makespan = {};
    plan.split_count = 0;
    plan.certificate = {};
    return plan;
  }

  const Batch batch = worked_case::batch();
  const Profile profile = worked_case::profile();
  const Plan good = worked_case::plan();
};

TEST_F(Check, GoodPlansHaveNoFinding) {
  EXPECT_EQ(shown(check(good, batch, profile)), "");
  EXPECT_EQ(shown(check(unproved(), batch, profile)), "");
  EXPECT_EQ(shown(check(without_placement(), batch, profile)), "");
  EXPECT_FALSE(is_only_over_memory_cap({}));
}

TEST_F(Check, CoordinateOrderIsFree) {
  Plan plan = good;
  clip(plan).ranks = {1, 0};
  EXPECT_EQ(shown(check(plan, batch, profile)), "");
}

TEST_F(Check, WrongBatch) {
  expect_each_only(
      Violation::wrong_batch,
      {
          {"ranks is 3; the batch is for 2", [](Plan& p) { p.placement.ranks = 3; }},
          {"ranks is -2147483648", [](Plan& p) { p.placement.ranks = INT32_MIN; }},
          {"model 'wan2.1-t2v-1.3b' differs", [](Plan& p) { p.placement.model.layers = 40; }},
          {"'img-1' comes after 'img-2'",
           [](Plan& p) { std::swap(p.placement.sequences[1], p.placement.sequences[2]); }},
          {"'clip-8' is not in the batch", [](Plan& p) { clip(p).id = "clip-8"; }},
          {"'clip-7' of the batch is not in the plan", [](Plan& p) { clip(p).id = "clip-8"; }},
          {"'img-4' of the batch is not in the plan",
           [](Plan& p) {
             p.placement.sequences.pop_back();
             p.load[1].value -= 75'524;
             p.memory[1].value -= 381'542'400;
           }},
          {"'img-1' comes twice",
           [](Plan& p) {
             image(p, 2).id = "img-1";  // as heavy as img-2, which is then missing
           }},
          {"'img-1' is in bucket '720p'; in the batch, in '1080p'", [](Plan& p) { image(p, 1).bucket = "720p"; }},
          {"'img-1' is in bucket 'none'", [](Plan& p) { image(p, 1).bucket = "none"; }},
          {"'img-1' is of kind video; in the batch, image", [](Plan& p) { image(p, 1).kind = MediaKind::video; }},
          {"'img-1' is of kind kind number 7", [](Plan& p) { image(p, 1).kind = static_cast<MediaKind>(7); }},
          {"'img-1' has 8161 tokens; in the batch, 8160", [](Plan& p) { image(p, 1).tokens.value += 1; }},
          {"'img-1' has -1 tokens", [](Plan& p) { image(p, 1).tokens.value = -1; }},
          {"'stranger' is not in the batch",
           [](Plan& p) {
             p.placement.sequences.push_back({"stranger", "nowhere", MediaKind::image, {1}, {1, 1, 1}, {0}, {1}, {1}});
           }},
      });
}

TEST_F(Check, WrongBatchWhenAllSequencesAreMissing) {
  Plan plan = good;
  plan.status = PlanStatus::feasible;
  plan.placement.sequences.clear();
  plan.load.assign(2, {});
  plan.memory.assign(2, {});
  plan.makespan = {};
  plan.split_count = 0;
  plan.certified = false;
  plan.certificate = {};
  expect_only(plan, Violation::wrong_batch, "'clip-7' of the batch is not in the plan", batch, profile);
}

TEST_F(Check, IllegalConfig) {
  constexpr int kHuge = INT32_MAX;
  expect_each_only(Violation::illegal_config, {
                                                  {"q1h5k1 needs more ranks than the 2",
                                                   [](Plan& p) {
                                                     clip(p).config = {1, 5, 1};
                                                   }},
                                                  {"[0, 2, 1] has a factor below 1",
                                                   [](Plan& p) {
                                                     clip(p).config = {0, 2, 1};
                                                   }},
                                                  {"[-1, -2, 1] has a factor below 1",
                                                   [](Plan& p) {
                                                     clip(p).config = {-1, -2, 1};
                                                   }},
                                                  {"needs more ranks than the 2",
                                                   [](Plan& p) {
                                                     clip(p).config = {kHuge, kHuge, kHuge};
                                                   }},
                                              });
}

TEST_F(Check, IllegalConfigByTheHeads) {
  Batch wide = batch;
  wide.ranks = 5;
  Plan plan = good;
  plan.placement.ranks = 5;
  plan.floor = {7'021'503 / 5};
  plan.load = {{3'564'339}, {3'564'339}, {}, {}, {}};
  plan.memory = {{4'783'104'000}, {4'783'104'000}, {}, {}, {}};
  plan.status = PlanStatus::feasible;
  plan.certificate.makespan_bound.reset();
  ASSERT_EQ(shown(check(plan, wide, profile)), "");
  clip(plan).config = {1, 5, 1};
  clip(plan).ranks = {0, 1, 2, 3, 4};
  expect_only(plan, Violation::illegal_config, "head split 5 does not divide 12 heads", wide, profile);
}

TEST_F(Check, UnpricedConfig) {
  expect_each_only(Violation::unpriced_config, {{"'clip-7': the profile has no price for q2h1k1",
                                                 [](Plan& p) {
                                                   clip(p).config = {2, 1, 1};
                                                 }},
                                                {"'clip-7': the profile has no price for q1h1k2", [](Plan& p) {
                                                   clip(p).config = {1, 1, 2};
                                                 }}});
}

TEST_F(Check, WrongRankSet) {
  expect_each_only(Violation::wrong_rank_set,
                   {
                       {"'clip-7' has 1 ranks; q1h2k1 needs 2", [](Plan& p) { clip(p).ranks = {0}; }},
                       {"'clip-7' is on rank 0 twice",
                        [](Plan& p) {
                          clip(p).ranks = {0, 0};
                        }},
                       {"'clip-7' is on rank 2; ranks go from 0 to 1",
                        [](Plan& p) {
                          clip(p).ranks = {0, 2};
                        }},
                       {"'clip-7' is on rank -1",
                        [](Plan& p) {
                          clip(p).ranks = {-1, 0};
                        }},
                       {"'clip-7' is on rank 2147483647",
                        [](Plan& p) {
                          clip(p).ranks = {1, INT32_MAX};
                        }},
                       {"'img-1' has 2 ranks; q1h1k1 needs 1",
                        [](Plan& p) {
                          image(p, 1).ranks = {0, 1};
                        }},
                       {"'img-1' has 0 ranks", [](Plan& p) { image(p, 1).ranks.clear(); }},
                   });
}

TEST_F(Check, WrongClaim) {
  expect_each_only(
      Violation::wrong_claim,
      {
          {"'clip-7': time_us is 3269555; the profile says 3269554", [](Plan& p) { clip(p).time.value += 1; }},
          {"'img-4': time_us is -75524; the profile says 75524", [](Plan& p) { image(p, 4).time.value *= -1; }},
          {"'clip-7': memory_bytes is 0; the profile says 3536732160", [](Plan& p) { clip(p).memory = {}; }},
          {"memory_bytes is 9223372036854775807", [](Plan& p) { clip(p).memory = {INT64_MAX}; }},
      });
}

TEST_F(Check, WrongLoad) {
  expect_each_only(
      Violation::wrong_load,
      {
          {"load_us[1] is 3564338; the sequences there add up to 3564339", [](Plan& p) { p.load[1].value -= 1; }},
          {"load_us[0] is -9223372036854775808", [](Plan& p) { p.load[0] = {INT64_MIN}; }},
          {"load_us has 1 entries; there are 2 ranks", [](Plan& p) { p.load.pop_back(); }},
          {"load_us has 3 entries", [](Plan& p) { p.load.push_back({}); }},
          {"load_us has 0 entries", [](Plan& p) { p.load.clear(); }},
      });
  expect_each_only(Violation::wrong_load,
                   {{"load_us has 2 entries; without a plan it is empty", [](Plan& p) { p.load.resize(2); }}},
                   without_placement());
}

TEST_F(Check, WrongMemory) {
  expect_each_only(Violation::wrong_memory,
                   {
                       {"memory_bytes[1] is 4783104001; the sequences there add up to 4783104000",
                        [](Plan& p) { p.memory[1].value += 1; }},
                       {"memory_bytes[0] is -1", [](Plan& p) { p.memory[0] = {-1}; }},
                       {"memory_bytes has 3 entries; there are 2 ranks", [](Plan& p) { p.memory.push_back({}); }},
                   });
  expect_each_only(Violation::wrong_memory,
                   {{"memory_bytes has 1 entries; without a plan it is empty", [](Plan& p) { p.memory.resize(1); }}},
                   without_placement());
}

TEST_F(Check, OverMemoryCapIsRecognisedWhenAlone) {
  Profile tight = profile;
  Plan plan = good;
  tight.memory_usable = tight.memory_base + Bytes{4'783'104'000};
  plan.profile_digest = digest(tight);
  EXPECT_EQ(shown(check(plan, batch, tight)), "");  // just fits

  tight.memory_usable -= Bytes{1};
  plan.profile_digest = digest(tight);
  expect_only(plan, Violation::over_memory_cap,
              "rank 1 needs 4783104000 bytes besides the base; the cap is 4783103999, 1 less", batch, tight);
  EXPECT_EQ(check(plan, batch, tight).size(), 2u);
  EXPECT_TRUE(is_only_over_memory_cap(check(plan, batch, tight)));
  plan.makespan.value += 1;
  EXPECT_FALSE(is_only_over_memory_cap(check(plan, batch, tight)));
}

TEST_F(Check, WrongMakespan) {
  expect_each_only(Violation::wrong_makespan,
                   {
                       {"makespan_us is 3564338; the largest load is 3564339", [](Plan& p) { p.makespan.value -= 1; }},
                       {"makespan_us is 3564340", [](Plan& p) { p.makespan.value += 1; }},
                       {"makespan_us is -9223372036854775808", [](Plan& p) { p.makespan = {INT64_MIN}; }},
                   });
  expect_each_only(Violation::wrong_makespan,
                   {{"makespan_us is 1; without a plan it is 0", [](Plan& p) { p.makespan = {1}; }}},
                   without_placement());
}

TEST_F(Check, WrongFloor) {
  const std::vector<Mutant> mutants = {
      {"floor_us is 3510750; the whole prices of the batch over 2 ranks give 3510751",
       [](Plan& p) { p.floor.value -= 1; }},
      {"floor_us is 3510752", [](Plan& p) { p.floor.value += 1; }},
      {"floor_us is -1", [](Plan& p) { p.floor = {-1}; }},
  };
  expect_each_only(Violation::wrong_floor, mutants);
  expect_each_only(Violation::wrong_floor, mutants, without_placement());  // of all sequences, placed or not
}

TEST_F(Check, WrongSplitCount) {
  expect_each_only(Violation::wrong_split_count,
                   {
                       {"split_count is 0; the plan splits 1", [](Plan& p) { p.split_count = 0; }},
                       {"split_count is -1; the plan splits 1", [](Plan& p) { p.split_count = -1; }},
                       {"certificate.split_count is 2; the plan splits 1",
                        [](Plan& p) {
                          p.certificate.split_count = 2;
                          p.certificate.split_status = SolveStatus::feasible;
                          p.certified = false;
                        }},
                   });
  expect_each_only(Violation::wrong_split_count,
                   {{"split_count is 1; the plan splits 0", [](Plan& p) { p.split_count = 1; }}}, without_placement());
}

TEST_F(Check, FalseBoundOfTheAnchors) {
  expect_each_only(Violation::false_bound,
                   {
                       {"anchor_bound_us is 3269555, above anchor_load_us 3269554",
                        [](Plan& p) { p.certificate.anchor_bound->value += 1; }},
                       {"anchor_status is optimal; that needs anchor_bound_us 3269553 to equal anchor_load_us 3269554",
                        [](Plan& p) { p.certificate.anchor_bound->value -= 1; }},
                       {"that needs anchor_bound_us null",
                        [](Plan& p) {
                          p.certificate.anchor_bound.reset();
                          p.certificate.split_bound.reset();
                          p.certificate.split_status = SolveStatus::feasible;
                          p.certified = false;
                        }},
                       {"to equal anchor_load_us null", [](Plan& p) { p.certificate.anchor_load.reset(); }},
                       {"certificate.anchor_bound_us is -1; it can't be negative",
                        [](Plan& p) { p.certificate.anchor_bound = Microseconds{-1}; }},
                       {"anchor_bound_us is 3269555; the plan's anchors reach 3269554",
                        [](Plan& p) {
                          p.certificate.anchor_load.reset();
                          p.certificate.anchor_bound->value += 1;
                          p.certificate.anchor_status = SolveStatus::feasible;
                          p.certified = false;
                        }},
                   });
  Plan no_plan = without_placement();
  no_plan.certificate.anchor_load = Microseconds{5};
  expect_each_only(
      Violation::false_bound,
      {{"anchor_bound_us is 6, above anchor_load_us 5", [](Plan& p) { p.certificate.anchor_bound = Microseconds{6}; }}},
      no_plan);
}

TEST_F(Check, FalseBoundOfTheSplits) {
  expect_each_only(Violation::false_bound,
                   {
                       {"split_bound is 2; the plan splits only 1", [](Plan& p) { p.certificate.split_bound = 2; }},
                       {"split_status is optimal; that needs split_bound 0 to equal split_count 1",
                        [](Plan& p) { p.certificate.split_bound = 0; }},
                       {"that needs split_bound null", [](Plan& p) { p.certificate.split_bound.reset(); }},
                       {"to equal split_count null", [](Plan& p) { p.certificate.split_count.reset(); }},
                       {"certificate.split_bound is -1", [](Plan& p) { p.certificate.split_bound = -1; }},
                       {"certificate.split_count is -3", [](Plan& p) { p.certificate.split_count = -3; }},
                   });
  Plan no_plan = without_placement();
  no_plan.certificate.split_count = 1;
  expect_each_only(Violation::false_bound,
                   {{"split_bound is 2, above split_count 1", [](Plan& p) { p.certificate.split_bound = 2; }}},
                   no_plan);
}

TEST_F(Check, FalseBoundOfTheMakespan) {
  expect_each_only(
      Violation::false_bound,
      {
          {"makespan_bound_us is 3564340; the plan reaches 3564339",
           [](Plan& p) { p.certificate.makespan_bound->value += 1; }},
          {"status is optimal; that needs makespan_bound_us 3564338 to equal the makespan 3564339",
           [](Plan& p) { p.certificate.makespan_bound->value -= 1; }},
          {"status is optimal; that needs makespan_bound_us, which is null",
           [](Plan& p) { p.certificate.makespan_bound.reset(); }},
          {"certificate.makespan_bound_us is -1", [](Plan& p) { p.certificate.makespan_bound = Microseconds{-1}; }},
      });
  expect_each_only(
      Violation::false_bound,
      {{"status is optimal; that needs makespan_bound_us 3564338", [](Plan& p) { p.status = PlanStatus::optimal; }}},
      [&] {
        Plan plan = unproved();
        plan.status = PlanStatus::feasible;
        plan.certificate.makespan_bound->value -= 1;
        return plan;
      }());
}

TEST_F(Check, WrongStatus) {
  expect_each_only(Violation::wrong_status,
                   {
                       {"certified is true; that needs anchor_status and split_status to be optimal",
                        [](Plan& p) { p.certificate.anchor_status = SolveStatus::feasible; }},
                       {"certified is true", [](Plan& p) { p.certificate.split_status = SolveStatus::timeout; }},
                       {"certified is true", [](Plan& p) { p.certificate.split_status.reset(); }},
                       {"certified is false although", [](Plan& p) { p.certified = false; }},
                       {"a reason is given although there is a plan: too long", [](Plan& p) { p.reason = "too long"; }},
                       {"split_status is infeasible, yet the plan places all anchors",
                        [](Plan& p) {
                          p.certificate.split_status = SolveStatus::infeasible;
                          p.certified = false;
                        }},
                       {"anchor_status is number 9",
                        [](Plan& p) {
                          p.certificate.anchor_status = static_cast<SolveStatus>(9);
                          p.certified = false;
                        }},
                       {"solve_us is -1", [](Plan& p) { p.solve_time = {-1}; }},
                       {"status is feasible although makespan_us equals makespan_bound_us 3564339; that is optimal",
                        [](Plan& p) { p.status = PlanStatus::feasible; }},
                   });
  expect_each_only(Violation::wrong_status,
                   {
                       {"there are 5 sequences although the status says that there is no plan",
                        [this](Plan& p) { p.placement.sequences = good.placement.sequences; }},
                       {"reason is empty", [](Plan& p) { p.reason.clear(); }},
                       {"status is number -1", [](Plan& p) { p.status = static_cast<PlanStatus>(-1); }},
                       {"certified is true", [](Plan& p) { p.certified = true; }},
                   },
                   without_placement());
  expect_each_only(Violation::wrong_status, {{"certified is true", [](Plan& p) { p.certified = true; }}}, unproved());
}

TEST_F(Check, AnOptimalPlanCalledInfeasibleIsCaught) {
  Plan plan = good;
  plan.status = PlanStatus::infeasible;
  EXPECT_THAT(shown(check(plan, batch, profile)), HasSubstr("unproved-claim: status is infeasible"));
  std::set<Violation> kinds;
  for (const Finding& finding : check(plan, batch, profile)) kinds.insert(finding.what);
  EXPECT_THAT(kinds, ::testing::IsSupersetOf({Violation::wrong_status, Violation::wrong_load, Violation::wrong_memory,
                                              Violation::wrong_makespan, Violation::wrong_split_count}));
}

TEST_F(Check, WrongExec) {
  expect_each_only(
      Violation::wrong_exec,
      {
          {"exec.waves is 0; it must be 1 to 1024", [](Plan& p) { p.placement.exec.waves = 0; }},
          {"exec.waves is -2147483648", [](Plan& p) { p.placement.exec.waves = INT32_MIN; }},
          {"exec.waves is 1025", [](Plan& p) { p.placement.exec.waves = 1025; }},
          {"exec.engine is 'fast'; it must be coalesced or paper", [](Plan& p) { p.placement.exec.engine = "fast"; }},
      });
  Plan other = good;
  other.placement.exec = {.engine = "paper", .waves = 1024, .overlap = true, .keep_kv = false};
  EXPECT_EQ(shown(check(other, batch, profile)), "");
}

TEST_F(Check, WrongProfile) {
  expect_each_only(
      Violation::wrong_profile,
      {{"profile_digest is ''; this profile's is 'sha256:303facf0", [](Plan& p) { p.profile_digest = ""; }},
       {"profile_digest is 'sha256:106b3c61", [](Plan& p) { p.profile_digest = worked_case::kDigest; }}});
}

TEST_F(Check, AllThatIsWrongIsFoundAtOnce) {
  Plan plan = good;
  plan.floor.value += 1;
  plan.makespan.value += 1;
  plan.placement.exec.waves = 0;
  image(plan, 1).tokens.value += 1;
  image(plan, 2).time.value += 1;
  EXPECT_EQ(check(plan, batch, profile).size(), 5u);
}

TEST_F(Check, SumsBeyond64BitsAreCompared) {
  Profile dear = profile;
  constexpr std::int64_t kDear = std::int64_t{1} << 62;
  dear.set_prices(1, {{.config = {1, 1, 1}, .time = {kDear}, .memory = {kDear}}});
  Plan plan = unproved();
  plan.profile_digest = digest(dear);
  image(plan, 1).time = image(plan, 2).time = {kDear};
  image(plan, 1).memory = image(plan, 2).memory = {kDear};
  image(plan, 2).ranks = {0};
  EXPECT_THAT(shown(check(plan, batch, dear)), HasSubstr("add up to 9223372036858120886"));  // 2^63 + the rest
}

TEST_F(Check, ABatchThatIsNotTheProfilesIsRefusedAsInput) {
  Batch other = batch;
  other.catalog.model.heads = 24;
  EXPECT_THROW(check(good, other, profile), Error);
  Batch none = batch;
  none.ranks = 0;
  EXPECT_THROW(check(good, none, profile), Error);
}

TEST(ViolationNames, AreDifferent) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Violation::wrong_digest); ++i) {
    EXPECT_TRUE(names.insert(name(static_cast<Violation>(i))).second) << i;
  }
  EXPECT_EQ(name(Violation::over_memory_cap), "over-memory-cap");
}

}  // namespace
}  // namespace zellige
