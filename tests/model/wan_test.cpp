// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <numeric>
#include <set>

#include "model/packed_sample.h"
#include "zellige/error.h"

namespace zellige {
namespace {

using namespace testing;
using ::testing::HasSubstr;

WanTransformer fp64_model(std::uint64_t seed) {
  WanTransformer model(small_config(), {.parameters = at::kDouble, .compute = at::kDouble});
  scatter_parameters(model, seed);
  return model;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::input);
    return error.what();
  }
}

TEST(Wan, HasTheParametersOfWan) {
  const WanTransformer model(wan_preset("wan2.1-t2v-1.3b"), {.device = at::kMeta});  // counted without allocating
  EXPECT_EQ(model.parameters().size(), 825u);
  EXPECT_EQ(model.num_parameters(), 1'418'996'800);
  EXPECT_EQ(model.names()[0], "patch_embedding.weight");
  EXPECT_EQ(model.names()[12], "blocks.0.modulation");
  EXPECT_EQ(model.names()[13], "blocks.0.self_attn.q.weight");
  EXPECT_EQ(model.names()[38], "blocks.0.ffn.2.bias");
  EXPECT_EQ(model.names()[39], "blocks.1.modulation");
  EXPECT_EQ(model.names()[824], "head.head.bias");
  EXPECT_EQ(std::set<std::string>(model.names().begin(), model.names().end()).size(), 825u);
  EXPECT_EQ(model.parameter("patch_embedding.weight").sizes(), at::IntArrayRef({1536, 16, 1, 2, 2}));
  EXPECT_EQ(model.parameter("blocks.29.ffn.0.weight").sizes(), at::IntArrayRef({8960, 1536}));
  EXPECT_EQ(model.parameter("head.modulation").sizes(), at::IntArrayRef({1, 2, 1536}));
  EXPECT_THAT(refusal([&] { model.parameter("blocks.0.ffn.1.bias"); }), HasSubstr("blocks.0.ffn"));
}

TEST(Wan, PresetsAreTheCatalogs) {
  for (const char* preset : {"tiny", "wan2.1-t2v-1.3b", "wan2.1-t2v-14b"}) {
    const WanConfig config = wan_preset(preset);
    const ModelGeometry geometry = model_preset(preset);
    EXPECT_EQ(config.heads, geometry.heads) << preset;
    EXPECT_EQ(config.head_dim, geometry.head_dim) << preset;
    EXPECT_EQ(config.layers, geometry.layers) << preset;
    EXPECT_EQ(config.ffn, geometry.ffn) << preset;
    EXPECT_EQ(config.text_tokens, geometry.text_tokens) << preset;
    EXPECT_EQ(config.patch, geometry.patch) << preset;
  }
  EXPECT_THAT(refusal([] { wan_preset("flux.1"); }), HasSubstr("'flux.1'"));
  ModelGeometry geometry = model_preset("tiny");
  geometry.text = TextPlacement::joint_rear;
  EXPECT_THAT(refusal([&] { wan_config(geometry); }), HasSubstr("joint-rear"));
  geometry = model_preset("tiny");
  geometry.kv_heads = 4;
  EXPECT_THAT(refusal([&] { wan_config(geometry); }), HasSubstr("kv_heads 4"));
}

TEST(Wan, InitialisationDependsOnSeedAndNameAlone) {
  WanTransformer a(small_config()), b(small_config());
  WanConfig deeper = small_config();
  deeper.layers = 3;
  WanTransformer c(deeper);
  for (WanTransformer* model : {&a, &c}) model->initialise(5);
  b.initialise(6);
  int differing = 0;
  for (std::size_t i = 0; i < a.names().size(); ++i) {
    const std::string& name = a.names()[i];
    EXPECT_TRUE(at::equal(a.parameters()[i], c.parameter(name))) << name;
    differing += !at::equal(a.parameters()[i], b.parameters()[i]);
  }
  EXPECT_GT(differing, 20);
  EXPECT_EQ(a.parameter("blocks.0.norm3.weight").min().item<float>(), 1);
  EXPECT_EQ(a.parameter("blocks.1.self_attn.norm_k.weight").max().item<float>(), 1);
  EXPECT_EQ(a.parameter("blocks.0.self_attn.q.bias").abs().max().item<float>(), 0);
}

TEST(Wan, InitialisationSpreadsAsWanDoes) {
  WanTransformer model(wan_preset("tiny"));
  model.initialise(1);
  const auto deviation = [&](const char* name) { return model.parameter(name).std().item<double>(); };
  const auto mean = [&](const char* name) { return model.parameter(name).mean().item<double>(); };
  EXPECT_NEAR(deviation("text_embedding.0.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("head.head.weight"), 0.02, 0.001);
  const double bound = std::sqrt(6.0 / (96 + 96));
  EXPECT_NEAR(deviation("blocks.0.self_attn.q.weight"), bound / std::sqrt(3), 0.003);
  EXPECT_NEAR(mean("blocks.0.self_attn.q.weight"), 0, 0.005);
  EXPECT_LE(model.parameter("blocks.0.self_attn.q.weight").abs().max().item<double>(), bound);
  EXPECT_NEAR(deviation("blocks.0.modulation"), 1 / std::sqrt(96.0), 0.015);
}

TEST(Wan, PackingOrderChangesNothing) {
  const WanTransformer model = fp64_model(1);
  const auto samples = make_samples(model.config(), {{2, 3, 2}, {1, 2, 2}, {1, 4, 1}, {2, 3, 2}}, 2);
  const Outcome first = train_once(model, samples, whole(samples, {0, 1, 2, 3}), false);
  const Outcome second = train_once(model, samples, whole(samples, {2, 3, 1, 0}), false);
  EXPECT_NEAR(first.loss, second.loss, 1e-13 * first.loss);
  expect_equal_gradients(model, second.gradients, first.gradients, 1e-11);
}

TEST(Wan, ChunksOfASampleSeeTheirPlaceInTheWhole) {
  const WanTransformer model = fp64_model(3);
  const auto samples = make_samples(model.config(), {{3, 2, 3}, {1, 2, 2}}, 4);
  const Outcome wanted = train_once(model, samples, whole(samples, {0, 1}), false);
  const std::vector<TokenRun> chunks = {{0, 11, 7}, {1, 0, 3}, {0, 0, 5}, {1, 3, 1}, {0, 5, 6}};
  const Outcome found = train_once(model, samples, chunks, false);
  EXPECT_NEAR(found.loss, wanted.loss, 1e-13 * wanted.loss);
  EXPECT_LE(distance(found.prediction.narrow(0, 0, 7), wanted.prediction.narrow(0, 11, 7)), 1e-12);
  expect_equal_gradients(model, found.gradients, wanted.gradients, 1e-11);

  // Positive control: tokens that claim another place give another prediction.
  Packed packed = pack(model.config(), samples, chunks);
  packed.input.segments[0].token_begin = 10;
  const at::Tensor moved = model.forward(packed.input, dense_attention(chunks), false);
  EXPECT_GT(distance(moved, found.prediction), 1e-3);
}

TEST(Wan, SamplesDoNotMix) {
  const WanTransformer model = fp64_model(5);
  auto samples = make_samples(model.config(), {{1, 2, 2}, {2, 2, 2}, {1, 2, 2}}, 6);
  const auto runs = whole(samples, {0, 1, 2});
  const Packed before = pack(model.config(), samples, runs);
  const at::Tensor clean = model.forward(before.input, dense_attention(runs), false);
  samples[1].latents.fill_(std::nan(""));
  samples[1].text.fill_(std::nan(""));
  samples[1].timestep = std::nan("");
  const Packed after = pack(model.config(), samples, runs);
  const at::Tensor poisoned = model.forward(after.input, dense_attention(runs), false);
  EXPECT_TRUE(at::equal(poisoned.narrow(0, 0, 4), clean.narrow(0, 0, 4)));
  EXPECT_TRUE(at::equal(poisoned.narrow(0, 12, 4), clean.narrow(0, 12, 4)));
  EXPECT_TRUE(poisoned.narrow(0, 4, 8).isnan().all().item<bool>()) << "positive control";
}

TEST(Wan, CheckpointingChangesNothing) {
  const WanTransformer model = fp64_model(7);
  const auto samples = make_samples(model.config(), {{2, 2, 2}, {1, 3, 1}}, 8);
  const auto runs = whole(samples, {0, 1});
  const Outcome kept = train_once(model, samples, runs, false);
  const Outcome run_again = train_once(model, samples, runs, true);
  EXPECT_EQ(kept.loss, run_again.loss);
  EXPECT_TRUE(at::equal(kept.prediction, run_again.prediction));
  expect_equal_gradients(model, run_again.gradients, kept.gradients, 1e-14);
}

TEST(Wan, CheckpointingRunsEachBlockOnceMore) {
  const WanTransformer model = fp64_model(9);
  const auto samples = make_samples(model.config(), {{1, 2, 2}}, 10);
  const auto runs = whole(samples, {0});
  const Packed packed = pack(model.config(), samples, runs);
  for (const bool checkpointing : {false, true}) {
    int calls = 0;
    const PackedAttention counted = [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
      ++calls;
      return dense_attention(runs)(q, k, v);
    };
    const at::Tensor prediction = model.forward(packed.input, counted, checkpointing);
    EXPECT_EQ(calls, 2);
    flow_loss(prediction, packed.target, packed.token_weights).backward();
    EXPECT_EQ(calls, checkpointing ? 4 : 2);
  }
}

TEST(Wan, ARankThatHoldsNothingStillGivesEveryParameterAGradient) {
  const WanTransformer model = fp64_model(11);
  for (const bool checkpointing : {false, true}) {
    const Outcome outcome = train_once(model, {}, {}, checkpointing);
    EXPECT_EQ(outcome.prediction.sizes(), at::IntArrayRef({0, model.config().out_width()}));
    EXPECT_EQ(outcome.loss, 0);
    for (std::size_t i = 0; i < outcome.gradients.size(); ++i) {
      ASSERT_TRUE(outcome.gradients[i].defined()) << model.names()[i];
      EXPECT_EQ(outcome.gradients[i].abs().max().item<double>(), 0) << model.names()[i];
    }
  }
}

TEST(Wan, LowerPrecisionsStayClose) {
  const auto samples = make_samples(small_config(), {{2, 2, 2}, {1, 3, 1}}, 12);
  const auto runs = whole(samples, {0, 1});
  const Outcome wanted = train_once(fp64_model(13), samples, runs, false);
  struct Case {
    at::ScalarType parameters, compute;
    double tolerance;
  };
  for (const Case& c : {Case{at::kFloat, at::kFloat, 1e-5}, Case{at::kFloat, at::kBFloat16, 0.05},
                        Case{at::kBFloat16, at::kBFloat16, 0.1}}) {
    WanTransformer model(small_config(), {.parameters = c.parameters, .compute = c.compute});
    scatter_parameters(model, 13);
    const Outcome found = train_once(model, samples, runs, true);
    EXPECT_EQ(found.prediction.scalar_type(), c.compute);
    EXPECT_LE(distance(found.prediction, wanted.prediction), c.tolerance) << c.compute;
    EXPECT_NEAR(found.loss, wanted.loss, c.tolerance * wanted.loss);
    EXPECT_EQ(found.gradients[0].scalar_type(), c.parameters);
  }
}

TEST(Wan, WrongShapesAreNamed) {
  const WanTransformer model = fp64_model(14);
  const auto samples = make_samples(model.config(), {{1, 2, 2}}, 15);
  const auto runs = whole(samples, {0});
  const Packed right = pack(model.config(), samples, runs);
  const auto refusal_of = [&](const std::function<void(PackedTokens&)>& change) {
    PackedTokens input = right.input;
    change(input);
    return refusal([&] { model.forward(input, dense_attention(runs), false); });
  };
  EXPECT_EQ(refusal_of([](PackedTokens&) {}), "") << "positive control";
  EXPECT_THAT(refusal_of([](PackedTokens& in) { in.latents = in.latents.narrow(0, 0, 3); }),
              HasSubstr("latents is [3, 12] but must be [4, 12]"));
  EXPECT_THAT(refusal_of([](PackedTokens& in) { in.timesteps = at::Tensor(); }), HasSubstr("timesteps is undefined"));
  EXPECT_THAT(refusal_of([](PackedTokens& in) { in.text = in.text.narrow(1, 0, 4); }), HasSubstr("text is [1, 4, 7]"));
  EXPECT_THAT(refusal_of([](PackedTokens& in) { in.segments[0].token_begin = 1; }), HasSubstr("tokens 1 to 5"));
  WanConfig config = small_config();
  config.head_dim = 7;
  EXPECT_THAT(refusal([&] { WanTransformer{config}; }), HasSubstr("head_dim 7"));
  config = small_config();
  config.ffn = 0;
  EXPECT_THAT(refusal([&] { WanTransformer{config}; }), HasSubstr("ffn 0"));
}

TEST(Wan, PatchesAreCutByChannelThenPlace) {
  const std::array<int, 3> patch = {1, 2, 2};
  const at::Tensor latent = at::arange(2 * 3 * 4 * 2, at::kDouble).view({2, 3, 4, 2});
  const at::Tensor tokens = patchify(latent, patch);
  EXPECT_EQ(tokens.sizes(), at::IntArrayRef({6, 8}));
  // Token 3 is the lower half of frame 1: rows 2 and 3 of both channels.
  const at::Tensor wanted = at::cat({latent[0][1].slice(0, 2, 4).flatten(), latent[1][1].slice(0, 2, 4).flatten()});
  EXPECT_TRUE(at::equal(tokens[3], wanted));
  EXPECT_TRUE(at::equal(unpatchify(tokens, {3, 2, 1}, patch), latent));
}

}  // namespace
}  // namespace zellige
