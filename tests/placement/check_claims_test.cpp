// SPDX-License-Identifier: Apache-2.0
// What a plan claims without showing it: bounds, `optimal`, `certified`, `infeasible`, and who is said to have proved
// it.
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "placement/worked_case.h"
#include "testing/findings.h"
#include "zellige/check.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using testing::shown;

class Claims : public ::testing::Test {
 protected:
  void expect_only(const Plan& plan, Violation what, const char* fragment) const {
    SCOPED_TRACE(fragment);
    const auto findings = check(plan, batch, profile);
    EXPECT_FALSE(findings.empty());
    for (const Finding& finding : findings) EXPECT_EQ(finding.what, what) << shown(findings);
    EXPECT_THAT(shown(findings), HasSubstr(fragment));
  }
  /// The clip whole on rank 0, the images on rank 1.
  Plan naive() const {
    Plan plan = worked_case::plan();
    plan.method = plan.solver = "naive";
    plan.status = PlanStatus::feasible;
    plan.certified = false;
    PlacedSequence& clip = plan.placement.sequences[0];
    clip.config = {};
    clip.ranks = {0};
    clip.time = {6'431'933};
    clip.memory = {6'778'736'640};
    for (std::size_t i = 1; i < 5; ++i) plan.placement.sequences[i].ranks = {1};
    plan.load = {{6'431'933}, {589'570}};
    plan.memory = {{6'778'736'640}, {2'492'743'680}};
    plan.makespan = {6'431'933};
    plan.split_count = 0;
    plan.certificate = {.makespan_bound = Microseconds{3'564'339}};
    return plan;
  }
  /// `naive` with everything claimed that can be.
  Plan boastful(const char* method, const char* solver) const {
    Plan plan = naive();
    plan.method = method;
    plan.solver = solver;
    plan.status = PlanStatus::optimal;
    plan.certified = true;
    plan.certificate = {.anchor_load = plan.makespan,
                        .anchor_bound = plan.makespan,
                        .anchor_status = SolveStatus::optimal,
                        .split_count = 0,
                        .split_bound = 0,
                        .split_status = SolveStatus::optimal,
                        .makespan_bound = plan.makespan};
    return plan;
  }
  /// A plan without a placement, in a batch that fits the ranks or does not.
  Plan without_placement(PlanStatus status) const {
    Plan plan = naive();
    plan.status = status;
    plan.reason = "nothing fits";
    plan.placement.sequences.clear();
    plan.load.clear();
    plan.memory.clear();
    plan.makespan = {};
    plan.certificate = {};
    return plan;
  }

  Batch batch = worked_case::batch();
  Profile profile = worked_case::profile();
};

TEST_F(Claims, WhatTheCheckerCanProveItselfIsBelieved) {
  EXPECT_EQ(shown(check(naive(), batch, profile)), "");
  EXPECT_TRUE(judge(naive(), batch, profile).unverified.empty());
  EXPECT_TRUE(judge(worked_case::plan(), batch, profile).unverified.empty());  // optimal and certified, without duals
}

TEST_F(Claims, ANaivePlanIsNotOptimalBecauseItSaysSo) {
  Plan plan = naive();
  plan.status = PlanStatus::optimal;
  plan.certificate.makespan_bound = plan.makespan;
  expect_only(plan, Violation::unproved_claim,
              "makespan_bound_us is 6431933, which nothing proves; the bounds that need no proof reach 3564339");
  plan = naive();
  plan.certificate.makespan_bound->value += 1;
  expect_only(plan, Violation::unproved_claim, "makespan_bound_us is 3564340, which nothing proves");
}

TEST_F(Claims, NoSolverButCpSatIsTakenAtItsWord) {
  for (const auto& [method, solver] :
       {std::pair{"zellige", "own"}, {"zellige", "greedy"}, {"naive", "naive"}, {"usp", "usp u2r1"}}) {
    SCOPED_TRACE(solver);
    expect_only(boastful(method, solver), Violation::unproved_claim,
                "anchor_bound_us is 6431933, which nothing proves");
    EXPECT_TRUE(judge(boastful(method, solver), batch, profile).unverified.empty());
  }
}

TEST_F(Claims, WhatCpSatStatesIsShownAsUnverified) {
  for (const char* method : {"joint", "zellige"}) {
    const Verdict verdict = judge(boastful(method, "cp-sat"), batch, profile);
    EXPECT_EQ(shown(verdict.findings), "");
    ASSERT_EQ(verdict.unverified.size(), 2u);
    EXPECT_EQ(verdict.unverified[0].field, "anchor_bound_us");
    EXPECT_THAT(verdict.unverified[0].message,
                HasSubstr("anchor_bound_us is 6431933, stated by solver cp-sat and not verified"));
    EXPECT_EQ(verdict.unverified[1].field, "makespan_bound_us");
  }
  // A baseline has no CP-SAT to speak for it, whatever it writes.
  Plan plan = naive();
  plan.solver = "cp-sat";
  plan.certificate.makespan_bound->value += 1;
  EXPECT_THAT(shown(check(plan, batch, profile)), HasSubstr("unproved-claim"));
}

TEST_F(Claims, WhatIsFalseIsAFindingWhoeverStatesIt) {
  Plan plan = boastful("joint", "cp-sat");
  plan.certificate.makespan_bound->value += 1;
  plan.status = PlanStatus::feasible;
  expect_only(plan, Violation::false_bound, "makespan_bound_us is 6431934; the plan reaches 6431933");
}

/// The whole clip costs so little more than a rank's share that round 2's limit lets it stay whole.
TEST_F(Claims, SplitsAreNotNeededBecauseThePlanSaysSo) {
  profile.set_prices(2, {{.config = {1, 1, 1}, .time = {3'270'000}, .memory = {6'778'736'640}},
                         {.config = {1, 2, 1}, .time = {3'269'554}, .memory = {3'536'732'160}}});
  Plan plan = worked_case::plan();
  plan.profile_digest = digest(profile);
  plan.floor = {(3'270'000 + 589'570) / 2};
  plan.status = PlanStatus::feasible;
  plan.certificate.makespan_bound = Microseconds{3'269'554};
  const auto [findings, unverified] = judge(plan, batch, profile);
  expect_only(plan, Violation::unproved_claim,
              "split_bound is 1, which nothing proves; the bounds that need no proof reach 0");
  plan.certificate.split_bound = 0;
  plan.certificate.split_status = SolveStatus::feasible;
  plan.certified = false;
  EXPECT_EQ(shown(check(plan, batch, profile)), "");
}

TEST_F(Claims, InfeasibleIsProvedOrAFinding) {
  EXPECT_EQ(shown(check(without_placement(PlanStatus::unknown), batch, profile)), "");
  expect_only(without_placement(PlanStatus::infeasible), Violation::unproved_claim,
              "status is infeasible, which nothing proves");
  Plan plan = without_placement(PlanStatus::unknown);
  plan.certificate.anchor_status = SolveStatus::infeasible;
  expect_only(plan, Violation::unproved_claim, "anchor_status is infeasible, which nothing proves");

  plan = without_placement(PlanStatus::infeasible);
  plan.method = "joint";
  plan.solver = "cp-sat";
  EXPECT_EQ(judge(plan, batch, profile).unverified.size(), 1u);

  profile.memory_usable = profile.memory_base + Bytes{864'829'439};  // a byte less than a 1080p image needs
  plan = without_placement(PlanStatus::infeasible);
  plan.profile_digest = digest(profile);
  EXPECT_EQ(shown(check(plan, batch, profile)), "");
}

TEST_F(Claims, WithoutAPlanNothingShowsWhatWasReached) {
  Plan plan = without_placement(PlanStatus::unknown);
  plan.certificate.anchor_load = Microseconds{3'269'554};
  plan.certificate.split_count = 1;
  plan.certificate.split_status = SolveStatus::feasible;
  const auto [findings, unverified] = judge(plan, batch, profile);
  EXPECT_EQ(shown(findings), "");
  ASSERT_EQ(unverified.size(), 2u);
  EXPECT_EQ(unverified[0].field, "anchor_load_us");
  EXPECT_EQ(unverified[1].field, "split_count");
}

TEST_F(Claims, WrongMethod) {
  for (const auto& [method, solver, fragment] : std::vector<std::tuple<const char*, const char*, const char*>>{
           {"", "mine", "method is empty"},
           {"mine", "", "solver is empty"},
           {"zellige", "naive", "solver is 'naive'; that of a plan by zellige is own or cp-sat or greedy"},
           {"joint", "own", "solver is 'own'; that of a plan by joint is cp-sat"},
           {"naive", "own", "solver is 'own'; that of a plan by naive is 'naive'"},
           {"knapformer", "knapformerg3n1", "that of a plan by knapformer"},
       }) {
    Plan plan = naive();
    plan.method = method;
    plan.solver = solver;
    expect_only(plan, Violation::wrong_method, fragment);
  }
  Plan plan = naive();
  plan.method = "knapformer";
  plan.solver = "knapformer g3n1+g1n1";
  EXPECT_EQ(shown(check(plan, batch, profile)), "");
}

/// A library user's planner: the plan is held to every rule, and what it claims beyond that is called unverified.
TEST_F(Claims, ForeignMethod) {
  Plan plan = naive();
  plan.method = "mine";
  plan.solver = "mine v2";
  auto verdict = judge(plan, batch, profile);
  EXPECT_EQ(shown(verdict.findings), "");
  EXPECT_TRUE(verdict.unverified.empty());
  plan.certificate.makespan_bound = plan.makespan;
  plan.status = PlanStatus::optimal;
  verdict = judge(plan, batch, profile);
  EXPECT_EQ(shown(verdict.findings), "");
  ASSERT_EQ(verdict.unverified.size(), 1u);
  EXPECT_EQ(verdict.unverified[0].field, "makespan_bound_us");
  EXPECT_NE(verdict.unverified[0].message.find("stated by method 'mine', which is none of ours"), std::string::npos);
  plan.certificate.makespan_bound->value += 1;
  expect_only(plan, Violation::false_bound, "makespan_bound_us is");
  plan = naive();
  plan.method = "mine";
  plan.load[0].value += 1;
  EXPECT_FALSE(check(plan, batch, profile).empty());
}

TEST_F(Claims, TheAnchorsLoadIsThePlans) {
  Plan plan = worked_case::plan();
  plan.certificate.anchor_load->value += 1;
  plan.certificate.anchor_status = SolveStatus::feasible;
  plan.certified = false;
  expect_only(plan, Violation::wrong_anchors,
              "anchor_load_us is 3269555; the least that the plan or certificate.anchor_placement shows is 3269554");
}

/// Two ranks; a plan whose round 2 gave up load for fewer splits, so that another placement has to show round 1's load.
class AnchorPlacement : public Claims {
 protected:
  AnchorPlacement() {
    profile.set_prices(2, {{.config = {1, 1, 1}, .time = {3'270'000}, .memory = {6'778'736'640}},
                           {.config = {1, 2, 1}, .time = {3'269'554}, .memory = {3'536'732'160}}});
    plan.method = "zellige";
    plan.solver = "own";
    plan.placement.sequences[0].time = {3'270'000};
    plan.profile_digest = digest(profile);
    plan.floor = {(3'270'000 + 589'570) / 2};
    plan.load[0] = plan.makespan = {3'270'000};
    plan.certified = true;
    plan.certificate = {.anchor_load = Microseconds{3'269'554},
                        .anchor_bound = Microseconds{3'269'554},
                        .anchor_status = SolveStatus::optimal,
                        .split_count = 0,
                        .split_bound = 0,
                        .split_status = SolveStatus::optimal,
                        .makespan_bound = Microseconds{3'269'554}};
    plan.certificate.anchor_placement = {{2, {{"480p10s", {1, 2, 1}, 1}}}};
  }
  Plan plan = naive();
};

TEST_F(AnchorPlacement, ShowsRound1sLoad) {
  EXPECT_EQ(shown(check(plan, batch, profile)), "");
  plan.certificate.anchor_placement.clear();
  expect_only(plan, Violation::wrong_anchors, "anchor_load_us is 3269554; the least that the plan");
}

TEST_F(AnchorPlacement, IsAPlacementOfTheAnchors) {
  using Contents = std::vector<RankContent>;
  for (const auto& [contents, fragment] : std::vector<std::pair<Contents, const char*>>{
           {{{1, {{"480p10s", {1, 2, 1}, 1}}}}, "it is for 1 ranks; there are 2"},
           {{{0, {{"480p10s", {1, 2, 1}, 1}}}}, "one of its entries is for 0 ranks"},
           {{{1, {{"480p10s", {1, 2, 1}, 2}}}, {1, {}}}, "a rank holds 2 pieces of q1h2k1"},
           {{{1, {{"480p10s", {1, 2, 1}, 1}}}, {1, {}}}, "1 pieces of q1h2k1 of bucket '480p10s' are no whole number"},
           {{{2, {{"480p10s", {1, 1, 1}, 1}}}}, "it places 2 sequences of bucket '480p10s'; the batch has 1"},
           {{{2, {}}}, "it places 0 sequences of bucket '480p10s'"},
           {{{2, {{"480p10s", {2, 1, 1}, 1}}}}, "q2h1k1 is no option of bucket '480p10s'"},
           {{{2, {{"480p10s", {1, 2, 1}, -1}}}}, "a rank holds -1 pieces"},
           {{{2, {{"none", {1, 2, 1}, 1}}}}, "the batch has no anchor in bucket 'none'"},
           {{{2, {{"480p10s", {1, 2, 1}, 1}, {"720p", {1, 1, 1}, 1}}}}, "no anchor in bucket '720p'"},
       }) {
    Plan mutant = plan;
    mutant.certificate.anchor_placement = contents;
    expect_only(mutant, Violation::wrong_anchors, fragment);
  }
}

TEST_F(AnchorPlacement, KeepsTheMemoryCap) {
  profile.set_prices(2, {{.config = {1, 1, 1}, .time = {3'270'000}, .memory = {6'778'736'640}},
                         {.config = {1, 2, 1}, .time = {3'269'554}, .memory = {117'000'000'001}}});
  plan.profile_digest = digest(profile);
  plan.certificate.anchor_bound.reset();
  plan.certificate.anchor_status = SolveStatus::feasible;
  plan.certificate.split_bound = 0;
  plan.certificate.split_status = SolveStatus::feasible;
  plan.certified = false;
  expect_only(plan, Violation::wrong_anchors, "a rank needs 117000000001 bytes; the cap is 117000000000");
}

TEST_F(AnchorPlacement, Round2KeepsItsLimit) {
  profile.set_prices(2, {{.config = {1, 1, 1}, .time = {3'272'824}, .memory = {6'778'736'640}},
                         {.config = {1, 2, 1}, .time = {3'269'554}, .memory = {3'536'732'160}}});
  plan.placement.sequences[0].time = plan.load[0] = plan.makespan = {3'272'824};
  plan.profile_digest = digest(profile);
  plan.floor = {(3'272'824 + 589'570) / 2};
  expect_only(plan, Violation::wrong_anchors, "the anchors' largest load is 3272824; round 2's limit is 3272823");
}

TEST_F(Claims, WrongDigest) {
  Plan plan = naive();
  plan.stated_digest = digest(plan.placement);
  EXPECT_EQ(shown(check(plan, batch, profile)), "");
  const std::vector<std::pair<std::function<void(Placement&)>, const char*>> mutants = {
      {[](Placement& p) { p.exec.waves = 4; }, "it is the digest of this plan with exec.waves 1"},
      {[](Placement& p) { p.exec.overlap = true; }, "it is the digest of this plan with exec.overlap false"},
      {[](Placement& p) { p.exec.keep_kv = false; }, "it is the digest of this plan with exec.keep_kv true"},
      {[](Placement& p) { p.exec.engine = "paper"; }, "it is the digest of this plan with exec.engine coalesced"},
  };
  for (const auto& [change, fragment] : mutants) {
    Plan mutant = plan;
    change(mutant.placement);
    expect_only(mutant, Violation::wrong_digest, fragment);
  }
  Plan mutant = plan;
  mutant.stated_digest = worked_case::kDigest;
  expect_only(mutant, Violation::wrong_digest, "was changed after it was written");
}

TEST_F(Claims, WhatIsBehindAnotherDigestComesFirst) {
  Plan plan = worked_case::plan();
  plan.stated_digest = worked_case::kDigest;
  plan.placement.sequences[0].ranks = {1, 0};
  expect_only(plan, Violation::wrong_digest, "with the ranks of sequence 'clip-7' in ascending order");
  plan.placement.sequences[0].ranks = {0, 1};
  plan.placement.sequences[1].ranks = {1};
  plan.profile_digest = worked_case::kDigest;
  const auto findings = check(plan, batch, profile);
  ASSERT_GE(findings.size(), 4u) << shown(findings);
  EXPECT_EQ(findings.front().what, Violation::wrong_load);
  EXPECT_EQ(findings[findings.size() - 2].what, Violation::wrong_profile);
  EXPECT_EQ(findings.back().what, Violation::wrong_digest);
  plan = worked_case::plan();
  plan.stated_digest = worked_case::kDigest;
  plan.placement.sequences[2].tokens.value += 1;
  const std::string text = shown(check(plan, batch, profile));
  EXPECT_THAT(text, HasSubstr("wrong-batch: sequence 'img-2' has 8161 tokens"));
  EXPECT_THAT(text, HasSubstr("wrong-digest: "));
  EXPECT_THAT(text, HasSubstr("it is the digest of this plan with the batch's tokens"));
}

}  // namespace
}  // namespace zellige
