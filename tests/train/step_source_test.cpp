// SPDX-License-Identifier: Apache-2.0
// Steps planned ahead by a thread, and asked for by many. Without torch, so that the sanitizers' builds run it too.
#include "train/step_source.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/tiny_training.h"
#include "zellige/error.h"

namespace zellige {
namespace {

using namespace testing;
using ::testing::HasSubstr;

using StepSourceOf = TinyTraining;

/// The thread that plans ahead draws and plans what a loop without it would, and tells of each step when it is asked
/// for.
TEST_F(StepSourceOf, StepsPlannedAheadAreThoseOfTheirTurn) {
  TrainHooks hooks;
  std::vector<int> told;
  hooks.planned = [&](int step, const Batch&, const Plan&, const Profile&) { told.push_back(step); };
  std::vector<std::string> digests;
  {
    StepSource source(config_, hooks);
    for (int step = 0; step < config_.run.steps; ++step) {
      const auto planned = source.get(step);
      ASSERT_NE(planned, nullptr);
      EXPECT_EQ(source.get(step), planned) << "another rank of the process gets the same";
      if (step % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the thread is done, or is not
      EXPECT_EQ(told.size(), static_cast<std::size_t>(step) + 1);
      digests.push_back(digest(planned->plan.placement));
    }
    EXPECT_EQ(source.get(config_.run.steps), nullptr);
  }
  const Manifest manifest = read_manifest(config_.data.manifest);
  BucketRules rules = read_rules(config_.data.rules);
  rules.model = config_.model;
  const BucketedSamples samples = apply_rules(manifest, rules);
  DrawOptions options;
  options.ranks = config_.ranks.count;
  options.tokens_per_rank = config_.batch.tokens_per_rank;
  options.video_share = rules.video_share;
  options.seed = config_.batch.seed;
  BatchDrawer drawer(manifest, samples, options);
  for (const std::string& wanted : digests) {
    const Plan plan = make_planner("zellige")->plan(drawer.next(), profile(), config_.plan.options);
    EXPECT_EQ(digest(plan.placement), wanted);
  }
  StepSource left(config_, hooks);  // leaving with a plan under way
  EXPECT_NE(left.get(0), nullptr);
}

/// Every rank of a process is a thread that asks; those that are late must not wait for a step that others have passed.
TEST_F(StepSourceOf, ManyThreadsGetTheSameSteps) {
  constexpr int kThreads = 7;
  config_.run.steps = 12;
  std::atomic<int> told = 0;
  TrainHooks hooks;
  hooks.planned = [&](int, const Batch&, const Plan&, const Profile&) { ++told; };
  StepSource source(config_, hooks);
  std::vector<std::vector<const PlannedStep*>> seen(kThreads);
  std::vector<std::shared_ptr<const PlannedStep>> kept(static_cast<std::size_t>(config_.run.steps));
  std::atomic<int> arrived = 0;
  const auto rank = [&](std::size_t number) {
    for (int step = 0; step < config_.run.steps; ++step) {
      auto planned = source.get(step);
      seen[number].push_back(planned.get());
      if (number == 0) kept[static_cast<std::size_t>(step)] = std::move(planned);  // so that no address comes again
      ++arrived;
      while (arrived < kThreads * (step + 1)) std::this_thread::yield();  // the barrier behind each step
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back(rank, i);
  }
  EXPECT_EQ(told, config_.run.steps);
  for (const auto& steps : seen) {
    EXPECT_EQ(steps, seen[0]);
    EXPECT_EQ(std::count(steps.begin(), steps.end(), nullptr), 0);
  }
}

TEST_F(StepSourceOf, StopsFromAnotherThreadAtAnyMoment) {
  config_.run.steps = 1'000'000;
  for (const int wait_us : {0, 50, 500, 5000}) {
    std::stop_source run;
    TrainHooks hooks;
    hooks.stop = run.get_token();
    StepSource source(config_, hooks);
    std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(wait_us));
      run.request_stop();
    });
    int step = 0;
    while (source.get(step) != nullptr) ++step;
    EXPECT_TRUE(run.stop_requested());
  }
}

TEST_F(StepSourceOf, EveryThreadGetsTheErrorOfAStepPlannedAhead) {
  config_.plan.method = "usp";
  config_.plan.options.layout = "u2r1";  // two ranks of three: no layout, which shows when the step is planned
  StepSource source(config_, {});
  std::vector<std::string> messages(3);
  {
    std::vector<std::jthread> threads;
    for (std::string& message : messages) {
      threads.emplace_back([&] {
        try {
          source.get(0);
        } catch (const Error& error) {
          message = error.what();
        }
      });
    }
  }
  EXPECT_THAT(messages[0], HasSubstr("u2r1"));
  for (const std::string& message : messages) EXPECT_EQ(message, messages[0]);
}

}  // namespace
}  // namespace zellige
