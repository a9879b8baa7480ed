// SPDX-License-Identifier: Apache-2.0
// The step loop as a whole: manifest and rules in, records out.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <thread>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "train/host_memory.h"
#include "train/step_source.h"
#include "train/tiny_run.h"
#include "train/tiny_training.h"
#include "zellige/error.h"

namespace zellige {
namespace {

using namespace testing;
using ::testing::HasSubstr;

using Training = TinyTraining;

std::vector<double> losses(const std::vector<StepRecord>& records) {
  std::vector<double> list;
  for (const StepRecord& record : records) list.push_back(record.loss);
  return list;
}

TEST_F(Training, RecordsWhatEveryRankDid) {
  std::vector<int> planned;
  std::vector<Plan> plans;
  std::vector<std::int64_t> tokens;
  TrainHooks hooks;
  hooks.planned = [&](int step, const Batch& batch, const Plan& plan, const Profile&) {
    planned.push_back(step);
    plans.push_back(plan);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < batch.sequences.size(); ++i) sum += batch.tokens_of(static_cast<int>(i)).value;
    tokens.push_back(sum);
  };
  int stepped = 0;
  hooks.stepped = [&](const StepRecord& record) {
    EXPECT_EQ(record.step, stepped++);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // other ranks must not have the next step planned
    EXPECT_EQ(planned.size(), static_cast<std::size_t>(stepped));
  };
  const auto records = train(config_, hooks);
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(stepped, 4);
  EXPECT_EQ(planned, (std::vector<int>{0, 1, 2, 3}));
  int splits = 0;
  for (std::size_t s = 0; s < records.size(); ++s) {
    const StepRecord& record = records[s];
    EXPECT_EQ(record.data, "synthetic");
    EXPECT_EQ(record.method, "zellige");
    EXPECT_EQ(record.makespan, plans[s].makespan);
    EXPECT_EQ(record.sequences, static_cast<int>(plans[s].placement.sequences.size()));
    ASSERT_EQ(record.ranks.size(), 3u);
    std::int64_t owned = 0, moved = 0, longest = 0;
    for (std::size_t r = 0; r < 3; ++r) {
      const RankRecord& rank = record.ranks[r];
      EXPECT_EQ(rank.predicted, plans[s].load[r]);
      EXPECT_GT(rank.measured.value, 0);
      EXPECT_LE(rank.computing.value, rank.measured.value + 20'000);
      EXPECT_LE(rank.waiting.value, rank.measured.value);
      EXPECT_EQ(rank.collectives, record.ranks[0].collectives);
      owned += rank.tokens.value;
      moved += rank.all_gather.value + rank.ulysses.value + rank.ring.value;
      longest = std::max(longest, rank.measured.value);
    }
    EXPECT_EQ(owned, tokens[s]);
    EXPECT_EQ(record.measured.value, longest);
    EXPECT_EQ(moved > 0, record.split_count > 0);
    splits += record.split_count;
  }
  EXPECT_GT(splits, 0) << "some video must have been split";
}

TEST_F(Training, TwiceGivesEqualLosses) {
  const auto first = losses(train(config_));
  EXPECT_EQ(losses(train(config_)), first);
  config_.run.seed = 4;
  EXPECT_NE(losses(train(config_)), first) << "positive control";
}

TEST_F(Training, DoesNotDependOnMethodRanksOrCheckpointing) {
  config_.run.precision = Precision::fp64;
  const auto wanted = losses(train(config_));
  for (const char* method : {"naive", "usp"}) {
    config_.plan.method = method;
    config_.run.checkpointing = !config_.run.checkpointing;
    const auto found = losses(train(config_));
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-9 * wanted[i]) << method;
  }
}

TEST_F(Training, RunsInBf16AndWithMoreThreadsARank) {
  const auto wanted = losses(train(config_));
  config_.run.precision = Precision::bf16;
  config_.ranks.threads_per_rank = 2;
  const auto found = losses(train(config_));
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 0.02 * wanted[i]);
  EXPECT_NE(found, wanted);
}

TEST_F(Training, LossFallsOnFixedNoise) {
  config_.run.steps = 40;
  config_.optimizer.lr = 1e-2;
  config_.flow.fixed_noise = true;
  const auto found = losses(train(config_));
  const auto mean = [](auto begin, auto end) { return std::accumulate(begin, end, 0.0) / double(end - begin); };
  const double before = mean(found.begin(), found.begin() + 8);
  const double after = mean(found.end() - 8, found.end());
  EXPECT_LT(after, 0.8 * before);
}

TEST_F(Training, ParityOfTheFirstStepIsWithinRounding) {
  config_.run.precision = Precision::fp64;
  const Parity parity = first_step_parity(config_);
  EXPECT_GT(parity.loss, 0);
  EXPECT_LE(parity.loss_difference, 1e-12);
  EXPECT_LE(parity.gradient_difference, 1e-10) << parity.parameter;
  EXPECT_FALSE(parity.parameter.empty());
  config_.run.steps = 1;
  EXPECT_NEAR(train(config_)[0].loss, parity.loss, 1e-12);
}

TEST_F(Training, StopsWhenAsked) {
  std::stop_source stop;
  TrainHooks hooks;
  hooks.stop = stop.get_token();
  hooks.stepped = [&](const StepRecord& record) {
    if (record.step == 1) stop.request_stop();
  };
  config_.run.steps = 1000;
  EXPECT_LE(train(config_, hooks).size(), 3u);

  std::stop_source at_once;
  TrainHooks planning_only;
  planning_only.stop = at_once.get_token();
  int planned = 0;
  planning_only.planned = [&](int, const Batch&, const Plan&, const Profile&) {
    ++planned;
    at_once.request_stop();
  };
  EXPECT_TRUE(train(config_, planning_only).empty());
  EXPECT_EQ(planned, 1);
}

// What `train` is refused with.
Error refusal(const TrainConfig& config) {
  try {
    train(config);
    return Error(Code::ok, "", "");
  } catch (const Error& error) {
    return error;
  }
}

TEST_F(Training, ABatchWithoutAPlanEndsTheRunWithItsReason) {
  Profile poor = profile();
  poor.memory_usable = poor.memory_base + Bytes{10'000};  // no video fits, split or not
  write_profile(poor, path("profile.json"));
  const Error error = refusal(config_);
  EXPECT_EQ(error.code(), Code::infeasible);
  EXPECT_THAT(error.what(), HasSubstr("step 0"));
  EXPECT_THAT(error.what(), HasSubstr("no plan"));
}

TEST_F(Training, APlanThatTheCheckerRefusesDoesNotRun) {
  const Profile prices = small_profile();
  PlannedStep step;
  step.batch = small_batch(2, {3, 1});
  step.plan = make_planner("naive")->plan(step.batch, prices, {});
  EXPECT_NO_THROW(require_sound(step, prices, 5)) << "positive control";
  step.plan.placement.sequences[1].ranks = {7};
  try {
    require_sound(step, prices, 5);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::internal);
    EXPECT_THAT(error.what(), HasSubstr("step 5, method naive"));
    EXPECT_THAT(error.what(), HasSubstr("wrong-rank-set"));
  }
}

TEST_F(Training, ALossThatIsNoNumberIsAnError) {
  config_.optimizer.lr = 1e30;
  config_.optimizer.clip_norm = 0;
  const Error error = refusal(config_);
  EXPECT_EQ(error.code(), Code::input);
  EXPECT_THAT(error.what(), ::testing::ContainsRegex("step [01]: the .* is -?(nan|inf)"));
}

TEST_F(Training, TheLastUpdateIsLookedAtToo) {
  config_.run.steps = 1;  // no later loss would show it
  config_.run.precision = Precision::fp32;
  config_.optimizer.lr = 1e30;
  const Error error = refusal(config_);
  EXPECT_EQ(error.code(), Code::input);
  EXPECT_THAT(error.what(), HasSubstr("step 0: the parameters' norm after the update is inf"));
}

TEST_F(Training, MoreRanksThanFitAreRefusedBeforeTheyStart) {
  const HostNeed need = host_need(config_);
  EXPECT_GT(need.states.value, 0);
  EXPECT_GT(need.activations.value, 0);
  config_.ranks.count = 3;
  EXPECT_NO_THROW(require_host_memory(config_, {3 * need.a_rank().value})) << "they just fit";
  EXPECT_NO_THROW(require_host_memory(config_, {0})) << "nothing known, nothing refused";
  try {
    require_host_memory(config_, {3 * need.a_rank().value - 1});
    ADD_FAILURE() << "three ranks in the room of two";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::input);
    EXPECT_THAT(error.what(), HasSubstr("[ranks] count is 3"));
    EXPECT_THAT(error.what(), HasSubstr("enough for 2"));
  }
  EXPECT_GT(available_host_memory().value, 1 << 20) << "this machine tells what it has";
}

TEST_F(Training, TheNeedOfARankGrowsWithWhatItHolds) {
  const HostNeed need = host_need(config_);
  TrainConfig more = config_;
  more.model.layers *= 2;
  EXPECT_GT(host_need(more).states, need.states);
  more = config_;
  more.batch.tokens_per_rank = {2 * config_.batch.tokens_per_rank.value};
  EXPECT_GT(host_need(more).activations, need.activations);
  more = config_;
  more.run.precision = config_.run.precision == Precision::fp64 ? Precision::fp32 : Precision::fp64;
  EXPECT_NE(host_need(more).states, need.states);
}

TEST_F(Training, OtherBackendsAndModelsAreRefused) {
  TrainConfig nccl = config_;
  nccl.ranks.backend = "nccl";
  EXPECT_THAT(refusal(nccl).what(), HasSubstr("WORLD_SIZE is not set")) << "no launcher started this process";
  TrainConfig strides = config_;
  strides.model.vae_stride = {8, 8, 8};
  EXPECT_THAT(refusal(strides).what(), HasSubstr("rules"));
  TrainConfig joint = config_;
  joint.data.manifest = path("nothing.csv");
  EXPECT_EQ(refusal(joint).code(), Code::input);
}

// The demo must show what it is for: split videos whose rank sets overlap without being equal, and whole images on the
// same ranks.
TEST(Demo, FirstPlanSplitsVideosOverOverlappingRanksBesideWholeImages) {
  if (!why_no_cp_sat().empty()) GTEST_SKIP() << why_no_cp_sat();
  const TrainConfig config = read_train_config(ZELLIGE_SOURCE_DIR "/examples/demo/train.toml");
  EXPECT_EQ(config.ranks.count, 4);
  EXPECT_TRUE(config.flow.fixed_noise);
  std::stop_source stop;
  TrainHooks hooks;
  hooks.stop = stop.get_token();
  std::vector<PlacedSequence> placed;
  hooks.planned = [&](int, const Batch&, const Plan& plan, const Profile&) {
    placed = plan.placement.sequences;
    stop.request_stop();
  };
  train(config, hooks);
  std::vector<std::set<Rank>> split;
  for (const PlacedSequence& sequence : placed) {
    EXPECT_LE(sequence.tokens.value, 4096);
    if (sequence.config.is_whole() || sequence.kind != MediaKind::video) continue;
    split.emplace_back(sequence.ranks.begin(), sequence.ranks.end());
  }
  const auto share = [](const std::set<Rank>& a, const std::set<Rank>& b) {
    return std::ranges::any_of(a, [&](Rank rank) { return b.contains(rank); });
  };
  int overlapping = 0, beside = 0;
  for (const auto& a : split) {
    for (const auto& b : split) overlapping += a != b && share(a, b);
    for (const PlacedSequence& sequence : placed) {
      const bool whole_image = sequence.kind == MediaKind::image && sequence.config.is_whole();
      beside += whole_image && share(a, {sequence.ranks[0]});
    }
  }
  EXPECT_GT(overlapping, 0);
  EXPECT_GT(beside, 0);
}

TEST(StepRecordJson, IsOneLineWithUnitsInItsNames) {
  StepRecord record;
  record.step = 7;
  record.loss = 0.1;
  record.method = "zellige";
  record.data = "synthetic";
  record.status = PlanStatus::feasible;
  record.makespan = {12};
  record.ranks = {{{5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, 13, {2}, {3}, {4}},
                  {{1}, {1}, {1}, {1}, {20}, {1}, {1}, {1}, 1, {0}, {0}, {20}}};
  const std::string line = json_line(record);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["loss"], 0.1);
  EXPECT_EQ(json["status"], "feasible");
  EXPECT_EQ(json["makespan_us"], 12);
  EXPECT_EQ(json["all_gather_bytes"], 11);
  EXPECT_EQ(json["ulysses_bytes"], 12);
  EXPECT_EQ(json["ring_bytes"], 13);
  EXPECT_EQ(json["waiting_us"], 20) << "of the rank that waits longest";
  const nlohmann::json rank = {{"waiting_a_us", 2},   {"waiting_ring_us", 3}, {"waiting_b_us", 4},
                               {"tokens", 5},         {"predicted_us", 6},    {"measured_us", 7},
                               {"computing_us", 8},   {"waiting_us", 9},      {"all_gather_bytes", 10},
                               {"ulysses_bytes", 11}, {"ring_bytes", 12},     {"collectives", 13}};
  EXPECT_EQ(json["ranks"][0], rank);
}

}  // namespace
}  // namespace zellige
