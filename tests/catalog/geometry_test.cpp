// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/refusal.h"
#include "zellige/catalog.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using zellige::testing::refusal;

TEST(Geometry, TokensOfTheWanBuckets) {  // the table of docs/design/evaluation.md, by hand
  struct Row {
    int frames, height, width;
    std::int64_t tokens;
  };
  const ModelGeometry wan = model_preset("wan2.1-t2v-1.3b");
  for (const Row& row :
       {Row{1, 256, 256, 256}, Row{1, 480, 832, 1560}, Row{1, 720, 1280, 3600}, Row{1, 1088, 1920, 8160},
        Row{161, 480, 832, 63960}, Row{161, 720, 1280, 147600}, Row{161, 1088, 1920, 334560}, Row{241, 480, 832, 95160},
        Row{241, 720, 1280, 219600}, Row{241, 1088, 1920, 497760}, Row{2877, 720, 1280, 2592000},
        Row{81, 480, 832, 32760}, Row{125, 1280, 720, 115200}}) {
    EXPECT_EQ(sequence_tokens(wan, row.frames, row.height, row.width).value, row.tokens) << row.frames << " frames";
  }
}

TEST(Geometry, TextCountsWhereItSharesTheAttention) {
  EXPECT_EQ(sequence_tokens(model_preset("hunyuan-video"), 129, 720, 1280).value, 33 * 3600 + 256);
  EXPECT_EQ(sequence_tokens(model_preset("flux.1"), 1, 1024, 1024).value, 4096 + 512);
  EXPECT_EQ(sequence_tokens(model_preset("cogvideox-2b"), 49, 480, 720).value, 13 * 30 * 45 + 226);
  EXPECT_EQ(sequence_tokens(model_preset("ltx-video"), 121, 512, 768).value, 16 * 16 * 24);
}

TEST(Geometry, PresetsAreWholeAndNamed) {
  EXPECT_EQ(model_preset("wan2.1-t2v-1.3b").width(), 1536);
  EXPECT_EQ(model_preset("wan2.1-t2v-14b").width(), 5120);
  for (const std::string& name : model_preset_names()) {
    const ModelGeometry model = model_preset(name);
    EXPECT_EQ(model.name, name);
    EXPECT_GT(model.width(), 0);
    EXPECT_EQ(model.heads % model.kv_heads, 0);
    EXPECT_EQ(model.head_dim % 2, 0) << "rotary embedding turns pairs";
    EXPECT_EQ(why_unfit(model, 1, 512, 512), "");
  }
}

TEST(Geometry, UnknownModelIsRefusedWithTheNearestName) {
  const std::string message = refusal([] { model_preset("wan2.1-t2v-1.4b"); });
  EXPECT_THAT(message, HasSubstr("'wan2.1-t2v-1.4b'"));
  EXPECT_THAT(message, HasSubstr("did you mean 'wan2.1-t2v-1.3b'?"));
  EXPECT_THAT(message, HasSubstr("hunyuan-video"));
}

TEST(Geometry, WhyUnfitNamesValueAndNeighbours) {
  const ModelGeometry wan = model_preset("wan2.1-t2v-1.3b");
  EXPECT_EQ(why_unfit(wan, 161, 480, 832), "");  // positive control
  EXPECT_THAT(why_unfit(wan, 79, 480, 832), HasSubstr("frames 79 is not 1 + a multiple of 4"));
  EXPECT_THAT(why_unfit(wan, 79, 480, 832), HasSubstr("77 or 81"));
  EXPECT_THAT(why_unfit(wan, 0, 480, 832), HasSubstr("frames 0 must be at least 1"));
  EXPECT_THAT(why_unfit(wan, -3, 480, 832), HasSubstr("frames -3"));
  EXPECT_THAT(why_unfit(wan, 97, 512, 910), HasSubstr("width 910 is no positive multiple of 16"));
  EXPECT_THAT(why_unfit(wan, 97, 512, 910), HasSubstr("896 or 912"));
  EXPECT_THAT(why_unfit(wan, 1, 0, 832), HasSubstr("height 0"));
  EXPECT_THAT(why_unfit(wan, 1, -16, 832), HasSubstr("height -16"));
  EXPECT_THAT(why_unfit(wan, 1, 8, 832), HasSubstr("height 8"));
  EXPECT_THAT(why_unfit(wan, 2147483645, 2147483632, 2147483632), HasSubstr("more than 2^53 tokens"));
  ModelGeometry deep = wan;
  deep.patch[0] = 2;
  EXPECT_THAT(why_unfit(deep, 1, 480, 832), HasSubstr("1 latent frames, no multiple of the patch's 2"));
  EXPECT_EQ(sequence_tokens(deep, 5, 480, 832).value, 1560);
  EXPECT_THAT(refusal([&] { sequence_tokens(wan, 79, 480, 832); }), HasSubstr("frames 79"));
}

}  // namespace
}  // namespace zellige
