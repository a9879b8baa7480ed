// SPDX-License-Identifier: Apache-2.0
// What ranks feed to the model, and the optimizer.
#include "train/rank_batch.h"

#include <set>

#include "train/tiny_run.h"

namespace zellige {
namespace {

using namespace testing;

const WanConfig kModel = wan_config(small_config());

// Every token of the batch by sequence and place, from all ranks of a placement.
struct Gathered {
  std::vector<at::Tensor> latents, targets, weights;  // a sequence each
};

Gathered gather(const Batch& batch, const Placement& placement, const FlowOptions& options, std::int64_t step) {
  const auto source = synthetic_latents(kModel, 5);
  const FlowMatching flow(options);
  Gathered all;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const std::int64_t tokens = batch.tokens_of(static_cast<SequenceIndex>(i)).value;
    all.latents.push_back(at::zeros({tokens, kModel.in_width()}, at::kDouble));
    all.targets.push_back(at::zeros({tokens, kModel.in_width()}, at::kDouble));
    all.weights.push_back(at::zeros({tokens}, at::kDouble));
  }
  for (Rank rank = 0; rank < placement.ranks; ++rank) {
    const Schedule schedule = lower(placement, rank);
    const RankBatch part = make_rank_batch(schedule, batch, *source, flow, options.fixed_noise, step, kModel);
    for (const Segment& segment : schedule.segments) {
      const auto s = static_cast<std::size_t>(segment.sequence);
      const auto copy = [&](at::Tensor& into, const at::Tensor& from) {
        into.narrow(0, segment.token_begin, segment.num_tokens)
            .add_(from.narrow(0, segment.local_begin, segment.num_tokens));
      };
      copy(all.latents[s], part.input.latents);
      copy(all.targets[s], part.target);
      copy(all.weights[s], part.token_weights);
    }
  }
  return all;
}

TEST(RankBatch, IsTheSameInEveryPlacement) {
  const Batch batch = small_batch(4, {3, 1, 2});
  const FlowOptions options{.seed = 2};
  const Gathered whole = gather(batch, place_on_one_rank(batch), options, 6);
  const Gathered split =
      gather(batch, place(batch, {{{2, 2, 1}, {3, 1, 0, 2}}, {{}, {3}}, {{1, 1, 3}, {2, 0, 3}}}), options, 6);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(at::equal(split.latents[i], whole.latents[i]));
    EXPECT_TRUE(at::equal(split.targets[i], whole.targets[i]));
    EXPECT_TRUE(at::equal(split.weights[i], whole.weights[i]));
  }
}

TEST(RankBatch, MixesDataAndNoiseBySigma) {
  const Batch batch = small_batch(1, {2, 0});
  const FlowOptions options{.seed = 2};
  const Gathered found = gather(batch, place_on_one_rank(batch), options, 3);
  const FlowMatching flow(options);
  const auto source = synthetic_latents(kModel, 5);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto grid = i == 0 ? std::array<std::int64_t, 3>{3, 4, 3} : std::array<std::int64_t, 3>{1, 2, 3};
    const FlowDraw draw = flow.draw(3, batch.sequences[i].id);
    const std::int64_t tokens = batch.tokens_of(static_cast<SequenceIndex>(i)).value;
    const at::Tensor clean = source->latents(batch.sequences[i], grid, 0, tokens);
    // x_t = x0 + sigma * (eps - x0), and the target is eps - x0.
    EXPECT_LE(distance(found.latents[i], clean + draw.sigma * found.targets[i]), 1e-14);
    const at::Tensor noise = found.targets[i] + clean;
    EXPECT_NEAR(noise.mean().item<double>(), 0, 0.12);
    EXPECT_NEAR(noise.std().item<double>(), 1, 0.12);
    EXPECT_NEAR(found.weights[i].sum().item<double>(), draw.weight / 2, 1e-12) << "a sample counts once, however long";
  }
}

TEST(RankBatch, FixedNoiseFollowsTheSampleThroughEpochs) {
  Batch first = small_batch(1, {1}), second = first;
  first.sequences[0] = {"r7", 1, "clip.mp4"};
  second.sequences[0] = {"r7e2", 1, "clip.mp4"};  // the same sample, one epoch on
  const FlowOptions fixed{.fixed_noise = true, .seed = 2}, moving{.seed = 2};
  const auto latents = [](const Batch& batch, const FlowOptions& options, std::int64_t step) {
    return gather(batch, place_on_one_rank(batch), options, step).latents[0];
  };
  EXPECT_TRUE(at::equal(latents(first, fixed, 0), latents(second, fixed, 9)));
  EXPECT_FALSE(at::equal(latents(first, moving, 0), latents(second, moving, 0)));
  EXPECT_FALSE(at::equal(latents(first, moving, 0), latents(first, moving, 9)));
}

TEST(SyntheticLatents, AnyRangeOfTokensIsTheSame) {
  const auto source = synthetic_latents(kModel, 8);
  const BatchSequence sample{"a", 3, ""};
  const std::array<std::int64_t, 3> grid = {5, 3, 5};
  const at::Tensor all = source->latents(sample, grid, 0, 75);
  for (const std::int64_t begin : {1, 14, 15, 74}) {
    EXPECT_TRUE(at::equal(source->latents(sample, grid, begin, 75 - begin), all.narrow(0, begin, 75 - begin)));
  }
  EXPECT_FALSE(at::equal(source->latents({"b", 3, ""}, grid, 0, 75), all));
  EXPECT_NEAR(all.std().item<double>(), 1, 0.15);
  EXPECT_EQ(source->label(), "synthetic");
}

TEST(SyntheticLatents, TextsAreOfManyLengthsAndPaddedWithZeros) {
  WanConfig model = kModel;
  model.text_tokens = 8;
  const auto source = synthetic_latents(model, 8);
  std::set<std::int64_t> lengths;
  for (int i = 0; i < 60; ++i) {
    const at::Tensor text = source->text({std::to_string(i), 0, ""});
    const at::Tensor used = text.abs().sum(1) > 0;
    const auto length = used.sum().item<std::int64_t>();
    EXPECT_TRUE(used.narrow(0, 0, length).all().item<bool>()) << "padding comes last";
    lengths.insert(length);
  }
  EXPECT_EQ(lengths, (std::set<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(AdamW, IsTheFormula) {
  const TrainConfig::Optimizer options{
      .lr = 0.1, .betas = {0.8, 0.9}, .eps = 1e-3, .weight_decay = 0.2, .clip_norm = 2};
  std::vector<at::Tensor> parameters = {at::full({2}, 1.0, at::kDouble).set_requires_grad(true),
                                        at::full({1}, -3.0, at::kDouble).set_requires_grad(true)};
  AdamW optimizer(parameters, options);
  double value[3] = {1, 1, -3}, mean[3] = {}, square[3] = {};
  for (int step = 1; step <= 4; ++step) {
    const double raw[3] = {0.5 * step, -1.0, step == 3 ? 8.0 : 0.1};
    parameters[0].mutable_grad() = at::tensor({raw[0], raw[1]}, at::kDouble);
    parameters[1].mutable_grad() = at::tensor({raw[2]}, at::kDouble);
    const double norm = optimizer.gradient_norm();
    EXPECT_NEAR(norm, std::sqrt(raw[0] * raw[0] + raw[1] * raw[1] + raw[2] * raw[2]), 1e-12);
    optimizer.update(norm);
    for (int i = 0; i < 3; ++i) {
      const double gradient = raw[i] * std::min(1.0, 2 / norm);
      value[i] -= 0.1 * 0.2 * value[i];
      mean[i] = 0.8 * mean[i] + 0.2 * gradient;
      square[i] = 0.9 * square[i] + 0.1 * gradient * gradient;
      const double unbiased_mean = mean[i] / (1 - std::pow(0.8, step));
      const double unbiased_square = square[i] / (1 - std::pow(0.9, step));
      value[i] -= 0.1 * unbiased_mean / (std::sqrt(unbiased_square) + 1e-3);
    }
    EXPECT_NEAR(parameters[0][0].item<double>(), value[0], 1e-6);
    EXPECT_NEAR(parameters[0][1].item<double>(), value[1], 1e-6);
    EXPECT_NEAR(parameters[1][0].item<double>(), value[2], 1e-6);
  }
}

}  // namespace
}  // namespace zellige
