// SPDX-License-Identifier: Apache-2.0
// A plan must never change what is computed: loss and every parameter's gradient on N ranks are those on one.
#include <algorithm>
#include <random>
#include <set>

#include "train/tiny_run.h"
#include "zellige/check.h"

namespace zellige {
namespace {

using namespace testing;

constexpr double kTight = 1e-10;  // fp64
constexpr double kLoose = 1e-4;   // fp32

double tolerance_of(Precision precision) { return precision == Precision::fp64 ? kTight : kLoose; }

// Two videos that are worth splitting, and images of two sizes.
const std::vector<BucketIndex> kMixed = {3, 2, 1, 1, 0, 1, 0};

class EveryMethod : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryMethod, GivesTheLossAndGradientsOfOneRank) {
  const Profile profile = small_profile();
  int planned = 0, split = 0;
  for (const Precision precision : {Precision::fp64, Precision::fp32}) {
    for (const bool checkpointing : {false, true}) {
      const TrainConfig config = small_config(precision, checkpointing);
      const Batch one = small_batch(1, kMixed);
      const Outcome wanted = run_step(config, one, place_on_one_rank(one));
      for (const int ranks : {2, 3, 4}) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks, checkpointing " + std::to_string(checkpointing) + ", " +
                     (precision == Precision::fp64 ? "fp64" : "fp32"));
        const Batch batch = small_batch(ranks, kMixed);
        PlanOptions options;
        options.time_limit_s = 5;
        options.menu = Menu::all;
        // Megatron splits what its memory asks for, which is nothing here: give a rank 40 tokens of a sequence at most.
        if (GetParam() == "megatron") options.layout = "t40";
        const Plan plan = make_planner(GetParam())->plan(batch, profile, options);
        if (!plan.has_placement()) continue;  // a method may have no layout for these ranks
        ASSERT_TRUE(check(plan, batch, profile).empty()) << check(plan, batch, profile)[0].message;
        ++planned;
        split += plan.split_count;
        expect_same(run_step(config, batch, plan.placement), wanted, tolerance_of(precision));
      }
    }
  }
  EXPECT_GT(planned, 0);
  RecordProperty("plans", planned);
  RecordProperty("split_sequences", split);
  const std::set<std::string> whole_only = {"naive", "adaptiveload"};
  if (!whole_only.contains(GetParam())) {
    EXPECT_GT(split, 0) << "the comparison must include split sequences";
  }
}

INSTANTIATE_TEST_SUITE_P(Parity, EveryMethod, ::testing::ValuesIn(planner_names()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

// Whole sequences and shards of every kind share ranks; rank sets overlap and come in any order.
const std::vector<Part> kOverlapping = {
    {{2, 2, 1}, {2, 0, 3, 1}},
    {{1, 1, 3}, {3, 1, 0}},
    {{1, 3, 1}, {1, 2, 3}},
    {{2, 1, 1}, {0, 3}},
    {{1, 1, 2}, {1, 0}},
    {{}, {2}},
    {{}, {0}},
};

TEST(Parity, HoldsForOverlappingRankSetsOfEveryPrimitive) {
  const Batch batch = small_batch(4, kMixed);
  for (const bool checkpointing : {false, true}) {
    const TrainConfig config = small_config(Precision::fp64, checkpointing);
    const Outcome wanted = run_step(config, batch, place_on_one_rank(batch));
    for (const ExecOptions& exec :
         {ExecOptions{.keep_kv = true}, ExecOptions{.waves = 3, .keep_kv = false}, ExecOptions{.engine = "paper"},
          ExecOptions{.engine = "paper", .waves = 2, .overlap = true}}) {
      SCOPED_TRACE("checkpointing " + std::to_string(checkpointing) + ", waves " + std::to_string(exec.waves));
      expect_same(run_step(config, batch, place(batch, kOverlapping, exec)), wanted, kTight);
    }
  }
}

TEST(Parity, HoldsWhereRanksHoldNothing) {
  for (const bool checkpointing : {false, true}) {
    SCOPED_TRACE("checkpointing " + std::to_string(checkpointing));
    const TrainConfig config = small_config(Precision::fp64, checkpointing);
    const Batch images = small_batch(4, {1, 0});
    expect_same(run_step(config, images, place(images, {{{}, {2}}, {{}, {2}}})),
                run_step(config, images, place_on_one_rank(images)), kTight);
    const Batch mixed = small_batch(3, {3, 0});  // rank 1 holds nothing, while the others exchange
    expect_same(run_step(config, mixed, place(mixed, {{{1, 2, 1}, {2, 0}}, {{}, {0}}})),
                run_step(config, mixed, place_on_one_rank(mixed)), kTight);
  }
}

TEST(Parity, RenamedRanksAndPermutedSequencesChangeNothing) {
  const TrainConfig config = small_config();
  const Batch batch = small_batch(4, kMixed);
  const Outcome wanted = run_step(config, batch, place(batch, kOverlapping));
  for (const unsigned seed : {1u, 2u}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<Rank> renamed = {0, 1, 2, 3};
    std::ranges::shuffle(renamed, random);
    std::vector<std::size_t> order(kMixed.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::shuffle(order, random);
    Batch shuffled = batch;
    std::vector<Part> parts;
    for (std::size_t i = 0; i < order.size(); ++i) {
      shuffled.sequences[i] = batch.sequences[order[i]];
      parts.push_back(kOverlapping[order[i]]);
      for (Rank& rank : parts.back().ranks) rank = renamed[static_cast<std::size_t>(rank)];
    }
    expect_same(run_step(config, shuffled, place(shuffled, parts)), wanted, kTight);
  }
}

TEST(Parity, NoticesAChange) {
  // Positive control: another step's noise, and a batch with one sequence less, are told apart.
  const TrainConfig config = small_config();
  const Batch batch = small_batch(2, {2, 0});
  const Placement placement = place(batch, {{{2, 1, 1}, {0, 1}}, {{}, {1}}});
  const Outcome first = run_step(config, batch, placement, 0);
  const Outcome second = run_step(config, batch, placement, 1);
  EXPECT_GT(std::abs(first.loss - second.loss), 1e-6);
  EXPECT_GT(distance(first.gradients[0], second.gradients[0]), 1e-3);
  const Batch less = small_batch(2, {2});
  const Outcome third = run_step(config, less, place(less, {{{2, 1, 1}, {0, 1}}}), 0);
  EXPECT_GT(distance(third.gradients[0], first.gradients[0]), 1e-3);
}

TEST(Parity, TheGradientIsThatOfTheLoss) {
  // Central differences of the whole batch's loss on 3 ranks, along random directions of a few parameters.
  const TrainConfig config = small_config();
  const Batch batch = small_batch(3, {2, 1, 0});
  const Placement placement = place(batch, {{{1, 1, 3}, {2, 0, 1}}, {{1, 2, 1}, {0, 2}}, {{}, {1}}});
  const Outcome wanted = run_step(config, batch, placement);
  constexpr double kStep = 1e-5;
  for (const std::size_t index : {std::size_t{0}, std::size_t{13}, std::size_t{23}, std::size_t{50}}) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(index + 1);
    const at::Tensor direction = at::randn(wanted.gradients[index].sizes(), generator, at::TensorOptions(at::kDouble));
    double losses[2];
    for (const int sign : {0, 1}) {
      run_thread_ranks(3, [&](Rank rank, c10::intrusive_ptr<c10d::ProcessGroup> group) {
        RankTrainer trainer(config, rank, std::move(group));
        {
          const at::NoGradGuard no_grad;
          at::Tensor parameter = trainer.model().parameters()[index];
          parameter.add_(direction, sign == 0 ? -kStep : kStep);
        }
        const double loss = trainer.run(batch, placement, 0);
        if (rank == 0) losses[sign] = loss;
      });
    }
    const double slope = (losses[1] - losses[0]) / (2 * kStep);
    const double predicted = (wanted.gradients[index] * direction).sum().item<double>();
    EXPECT_NEAR(slope, predicted, 1e-7 + 1e-5 * std::abs(predicted)) << wanted.names[index];
  }
}

}  // namespace
}  // namespace zellige
