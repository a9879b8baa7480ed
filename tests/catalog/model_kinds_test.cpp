// SPDX-License-Identifier: Apache-2.0
// Models that differ from Wan in what legality and lengths depend on: head counts that are no powers of two, grouped
// key/value heads, text in the same attention as the picture. Figures are those of the models' public configurations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "zellige/catalog.h"

namespace zellige {
namespace {

/// Ulysses degrees up to `most` that are legal when there are ranks and tokens enough.
std::set<int> head_splits(const ModelGeometry& model, int most) {
  std::set<int> degrees;
  for (int h = 1; h <= most; ++h) {
    if (why_illegal(model, Tokens{100'000}, {1, h, 1}, most).empty()) degrees.insert(h);
  }
  return degrees;
}

TEST(ModelKinds, UlyssesDegreesAreTheDivisorsOfTheHeads) {
  const std::map<std::string, std::set<int>> expected = {
      {"wan2.1-t2v-1.3b", {1, 2, 3, 4, 6, 12}},              // 12 heads
      {"hunyuan-video", {1, 2, 3, 4, 6, 8, 12, 24}},         // 24
      {"flux.1", {1, 2, 3, 4, 6, 8, 12, 24}},                // 24
      {"cogvideox-2b", {1, 2, 3, 5, 6, 10, 15, 30}},         // 30
      {"wan2.1-t2v-14b", {1, 2, 4, 5, 8, 10, 20, 40}},       // 40
      {"cogvideox-5b", {1, 2, 3, 4, 6, 8, 12, 16, 24, 48}},  // 48
      {"ltx-video", {1, 2, 4, 8, 16, 32}},                   // 32
  };
  for (const auto& [name, degrees] : expected) {
    EXPECT_EQ(head_splits(model_preset(name), 64), degrees) << name;
  }
}

TEST(ModelKinds, GroupedKeyValueHeadsAreCutWholeOnly) {
  ModelGeometry model = model_preset("hunyuan-video");
  model.kv_heads = 8;  // three query heads share one
  EXPECT_EQ(head_splits(model, 64), (std::set<int>{1, 2, 4, 8}));
  EXPECT_EQ(why_illegal(model, Tokens{100}, {1, 3, 1}, 8), "head split 3 does not divide 8 key/value heads");
  model.kv_heads = 6;
  EXPECT_EQ(head_splits(model, 64), (std::set<int>{1, 2, 3, 6}));
  model.kv_heads = 1;  // all query heads share one: no split by heads at all
  EXPECT_EQ(head_splits(model, 64), (std::set<int>{1}));
  // Queries and the ring do not cut heads.
  EXPECT_EQ(why_illegal(model, Tokens{100}, {5, 1, 3}, 15), "");
}

/// Split configurations of each degree on the powers-of-two menu of 16 ranks: (h, and the ways to share the rest
/// between q and k).
TEST(ModelKinds, MenusFollowTheHeads) {
  const auto of_degree = [](const std::string& name, int kv_heads, Menu which) {
    ModelGeometry model = model_preset(name);
    if (kv_heads > 0) model.kv_heads = kv_heads;
    std::map<int, int> counts;
    for (const Configuration c : menu(model, Tokens{4608}, 16, which)) ++counts[c.degree()];
    return counts;
  };
  using Counts = std::map<int, int>;
  // h of degree 2^n: 1 .. 2^min(n, twos in the heads); each leaves n - log2(h) + 1 ways for q x k.
  EXPECT_EQ(of_degree("flux.1", 0, Menu::powers_of_two), (Counts{{1, 1}, {2, 3}, {4, 6}, {8, 10}, {16, 14}}));
  EXPECT_EQ(of_degree("wan2.1-t2v-14b", 0, Menu::powers_of_two), (Counts{{1, 1}, {2, 3}, {4, 6}, {8, 10}, {16, 14}}));
  EXPECT_EQ(of_degree("cogvideox-2b", 0, Menu::powers_of_two), (Counts{{1, 1}, {2, 3}, {4, 5}, {8, 7}, {16, 9}}));
  EXPECT_EQ(of_degree("cogvideox-5b", 0, Menu::powers_of_two), (Counts{{1, 1}, {2, 3}, {4, 6}, {8, 10}, {16, 15}}));
  EXPECT_EQ(of_degree("flux.1", 2, Menu::powers_of_two), (Counts{{1, 1}, {2, 3}, {4, 5}, {8, 7}, {16, 9}}));
  EXPECT_EQ(of_degree("flux.1", 1, Menu::powers_of_two), (Counts{{1, 1}, {2, 2}, {4, 3}, {8, 4}, {16, 5}}));
  // All degrees: 5, 10 and 15 split by heads for 30 heads, 5 and 10 for 40, not for 24 (there by q and k alone).
  EXPECT_EQ(of_degree("cogvideox-2b", 0, Menu::all).at(5), 3);
  EXPECT_EQ(of_degree("cogvideox-2b", 0, Menu::all).at(15), 9);
  EXPECT_EQ(of_degree("wan2.1-t2v-14b", 0, Menu::all).at(10), 9);
  EXPECT_EQ(of_degree("flux.1", 0, Menu::all).at(5), 2);
  EXPECT_EQ(of_degree("flux.1", 0, Menu::all).at(7), 2);
  EXPECT_EQ(of_degree("flux.1", 0, Menu::all).at(12), 18);
}

TEST(ModelKinds, JointTextIsPartOfTheLengthAtFrontAndRearAlike) {
  // HunyuanVideo, 129 frames of 720p: 118,800 tokens of video and 256 of text behind them.
  ModelGeometry hunyuan = model_preset("hunyuan-video");
  EXPECT_EQ(hunyuan.text, TextPlacement::joint_rear);
  EXPECT_EQ(sequence_tokens(hunyuan, 129, 720, 1280).value, 118'800 + 256);
  hunyuan.text = TextPlacement::joint_front;
  EXPECT_EQ(sequence_tokens(hunyuan, 129, 720, 1280).value, 118'800 + 256);
  hunyuan.text = TextPlacement::cross;
  EXPECT_EQ(sequence_tokens(hunyuan, 129, 720, 1280).value, 118'800);
  // Flux.1, an image of 1024 x 1024: 512 of text before 4,096.
  EXPECT_EQ(model_preset("flux.1").text, TextPlacement::joint_front);
  EXPECT_EQ(sequence_tokens(model_preset("flux.1"), 1, 1024, 1024).value, 4608);
  // CogVideoX, 49 frames of 480 x 720: 226 of text before 17,550.
  for (const char* name : {"cogvideox-2b", "cogvideox-5b"}) {
    EXPECT_EQ(model_preset(name).text, TextPlacement::joint_front);
    EXPECT_EQ(sequence_tokens(model_preset(name), 49, 480, 720).value, 17'776);
  }
  EXPECT_EQ(sequence_tokens(model_preset("wan2.1-t2v-14b"), 81, 720, 1280).value, 75'600);
}

TEST(ModelKinds, ATextAloneCanBeSplitAsFarAsItHasTokens) {
  // A tiny picture with its text: the chunks count both.
  ModelGeometry flux = model_preset("flux.1");
  flux.text_tokens = 3;
  const Tokens length = sequence_tokens(flux, 1, 16, 16);
  EXPECT_EQ(length.value, 4);
  EXPECT_EQ(why_illegal(flux, length, {4, 1, 1}, 8), "");
  EXPECT_NE(why_illegal(flux, length, {5, 1, 1}, 8), "");
}

TEST(ModelKinds, WidthsAreThePublishedOnes) {
  const std::map<std::string, std::pair<int, int>> expected = {
      {"wan2.1-t2v-1.3b", {1536, 30}}, {"wan2.1-t2v-14b", {5120, 40}}, {"hunyuan-video", {3072, 60}},
      {"flux.1", {3072, 57}},          {"open-sora-2.0", {3072, 57}},  {"cogvideox-2b", {1920, 30}},
      {"cogvideox-5b", {3072, 42}},    {"ltx-video", {2048, 28}},
  };
  for (const auto& [name, figures] : expected) {
    EXPECT_EQ(model_preset(name).width(), figures.first) << name;
    EXPECT_EQ(model_preset(name).layers, figures.second) << name;
  }
}

}  // namespace
}  // namespace zellige
