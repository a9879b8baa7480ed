// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/refusal.h"
#include "zellige/error.h"
#include "zellige/profile.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using zellige::testing::refusal;

const MemoryOptions kAll[] = {{true, true, 2}, {true, false, 2}, {false, true, 2}, {false, false, 2}, {true, true, 4}};

/// d = 8, kv = 16 elements a token, f = 16, three layers, five text tokens: small enough to count by hand.
ModelGeometry hand_model() {
  ModelGeometry model = model_preset("tiny");
  model.heads = model.kv_heads = 2;
  model.head_dim = 4;
  model.layers = 3;
  model.ffn = 16;
  model.text_tokens = 5;
  return model;
}

struct Expected {
  std::int64_t activations, key_value, buffers;
};

void expect_terms(Tokens length, Configuration c, const MemoryOptions& options, Expected expected) {
  SCOPED_TRACE(text(c) + ", " + std::to_string(length.value) + " tokens");
  const MemoryTerms terms = memory_terms(hand_model(), length, c, options);
  EXPECT_EQ(terms.activations.value, expected.activations);
  EXPECT_EQ(terms.key_value.value, expected.key_value);
  EXPECT_EQ(terms.buffers.value, expected.buffers);
}

// Counted by hand, in bytes: i a block's input, e the ends, s, c, f what self-attention, cross-attention and the
// feed-forward keep of one block, m its modulation, b the feed-forward's backward. Statistics and log-sum-exps in fp32.
TEST(MemoryModel, EqualsHandCounts) {
  // i = 10*8*2 = 160; e = (10*3*64 + 5*(4 + 3*8))*2 + 10*(4*4 + 4) = 4320; s = 10*40*2 + 10*4*4 + 10*2*4 = 1040;
  // c = (10*40 + 5*24)*2 + (10*2 + 10*3 + 5)*4 = 1260; f = 10*((16 + 16 + 24)*2 + 8) = 1200; m = 8*8*4 = 256;
  // b = 160 + max(10*16*2, 2*10*8*4) = 800.
  const MemoryOptions kept{.text_dim = 4};
  expect_terms({10}, {1, 1, 1}, kept, {4 * 160 + 4320 + (1040 + 1260 + 1200 + 256) + 800, 10 * 16 * 2, 0});
  MemoryOptions all_blocks = kept;
  all_blocks.checkpointing = false;
  expect_terms({10}, {1, 1, 1}, all_blocks, {4 * 160 + 4320 + 3 * 3756 + 800, 3 * 10 * 16 * 2, 0});
  MemoryOptions fetched = kept;
  fetched.keep_kv = false;
  expect_terms({10}, {1, 1, 1}, fetched, {9516, 320, 0});

  // 5 tokens, all 10 queries and keys of one head; queries and results of the chunk and by heads, the chunk's own K and
  // V beside the resident block. A moves 20 elements of Q and 40 of K, V each way, B' as many gradients.
  expect_terms({10}, {1, 2, 1}, kept,
               {4 * 80 + 2300 + (680 + 160 + 760 + 600 + 256) + 400, 10 * 8 * 2, 2 * (60 + 60) * 2});

  // 9 tokens: chunks of 5 and 4. Keys of all 9; 5*16 elements go, 4*16 come, and the other way round in B'.
  expect_terms({9}, {2, 1, 1}, kept,
               {4 * 80 + 2300 + (520 + 160 + 760 + 600 + 256) + 400, 9 * 16 * 2, 2 * (80 + 64) * 2});
  // Not kept: the chunk's K, V; what is fetched is there when the feed-forward's 400 and more are not.
  expect_terms({9}, {2, 1, 1}, fetched, {5156, 5 * 16 * 2, 576});
  fetched.checkpointing = false;
  expect_terms({9}, {2, 1, 1}, fetched, {4 * 80 + 2300 + 3 * (520 + 760 + 600 + 256) + 400, 3 * 5 * 16 * 2, 576});

  // Ring of two: the own block stays, a block travels; B' sends the other block's dK, dV and receives as much.
  expect_terms({10}, {1, 1, 2}, kept, {5156, 5 * 16 * 2, (80 + 80) * 2 + (80 + 80) * 2});
  // Ring of three: B' carries two blocks' gradients.
  expect_terms({9}, {1, 1, 3}, kept,
               {4 * 48 + 1492 + (312 + 560 + 360 + 256) + 240, 3 * 16 * 2, (48 + 48) * 2 + (96 + 96) * 2});

  // 11 tokens in chunks of 3, 3, 3, 2: a block of 6 keys; A fetches 48 elements and sends as many; B' carries the own
  // block's gradient, 3*16 to the other owner, and the other block's, 6*16.
  expect_terms({11}, {2, 1, 2}, kept,
               {4 * 48 + 1492 + (312 + 96 + 560 + 360 + 256) + 240, 6 * 16 * 2,
                (48 + 48) * 2 + (96 + 96) * 2 + (144 + 144) * 2});
}

// Of many gathered keys the gradients alone are more than the feed-forward's tensors, which are gone by then.
TEST(MemoryModel, WideGathersPeakInSelfAttention) {
  const MemoryTerms kept = memory_terms(hand_model(), {64}, {8, 1, 1}, {.text_dim = 4});
  const MemoryTerms less = memory_terms(hand_model(), {64}, {8, 1, 1}, {.keep_kv = false, .text_dim = 4});
  // l = 8, l_k = 64. Exchanges: A sends 7*128 and receives 56*16 elements, B' the other way round: 3584.
  // Self-attention: o = s + own - block + stream + (8*32 + 64*16)*2 + 8*16*4 with block - s - own = c + f + m
  // = (8*40 + 120)*2 + (16 + 24 + 5)*4 + 8*120 + 256 = 2276: -2276 + 128 + 2560 + 512 = 924, over the feed-forward's
  // 128 + max(256, 512) = 640.
  EXPECT_EQ(kept.buffers.value, 3584 * 2 + 924 - 640);
  // Fetched again: 64*16 elements more.
  EXPECT_EQ(less.buffers.value, kept.buffers.value + 64 * 16 * 2);
}

TEST(MemoryModel, TheWorkspaceIsCopiesOfWeightsAndGradientsOfTheFeedForward) {
  // A block's 2*(4*8*8) + 2*8*16 = 768 weights.
  EXPECT_EQ(step_workspace(hand_model()).value, (768 + 256) * 2);
  EXPECT_EQ(step_workspace(hand_model(), {.checkpointing = false}).value, (3 * 768 + 256) * 2);
  EXPECT_EQ(step_workspace(hand_model(), {.element_bytes = 4}).value, 256 * 4) << "no copies";
}

TEST(MemoryModel, GroupedKeyValueHeadsShrinkWhatIsKeyOrValue) {
  ModelGeometry model = hand_model();
  model.kv_heads = 1;
  const MemoryTerms terms = memory_terms(model, {10}, {2, 1, 1});
  EXPECT_EQ(terms.key_value.value, 10 * 8 * 2);
  EXPECT_EQ(terms.buffers.value, 2 * (40 + 40) * 2);
}

TEST(MemoryModel, TextInTheSameAttentionHasNoCrossAttention) {
  ModelGeometry joint = hand_model();
  joint.text = TextPlacement::joint_front;
  // Neither cross-attention, nor a residual after it, nor the text's embedding.
  EXPECT_EQ(memory_terms(joint, {10}, {1, 1, 1}).activations.value, 9516 - 1260 - 160 - 5 * (4 + 3 * 8) * 2);
}

// The last column of Table II, and its nesting.
TEST(MemoryModel, ResidentKeysAndValuesFollowTableTwo) {
  const ModelGeometry wan = model_preset("wan2.1-t2v-1.3b");
  const std::int64_t length = 12 * 5 * 7 * 100;
  const std::int64_t kv = 2 * 1536 * 2;
  const auto resident = [&](Configuration c) { return memory_terms(wan, {length}, c).key_value.value; };
  for (const int n : {1, 2, 3, 4, 6, 12}) {
    EXPECT_EQ(resident({n, 1, 1}), length * kv);
    EXPECT_EQ(resident({1, n, 1}), length * kv / n);
    EXPECT_EQ(resident({1, 1, n}), length * kv / n);
    EXPECT_EQ(resident({5, n, 7}), length * kv / (n * 7));
  }
}

TEST(MemoryModel, AWholeSequenceHasNoBuffersAndEverySplitHas) {
  for (const char* preset : {"wan2.1-t2v-1.3b", "tiny", "hunyuan-video"}) {
    const ModelGeometry model = model_preset(preset);
    for (const MemoryOptions& options : kAll) {
      for (const Configuration c : menu(model, {4099}, 16, Menu::all)) {
        EXPECT_EQ(memory_terms(model, {4099}, c, options).buffers.value == 0, c.is_whole()) << text(c);
      }
    }
  }
}

TEST(MemoryModel, GrowsWithTheLength) {
  const ModelGeometry model = model_preset("tiny");
  for (const MemoryOptions& options : kAll) {
    for (const Configuration c : menu(model, {16}, 16, Menu::all)) {
      Bytes before{0};
      for (std::int64_t length = c.degree(); length < 120; ++length) {
        const Bytes now = memory_terms(model, {length}, c, options).total();
        ASSERT_GE(now, before) << text(c) << " at " << length;
        before = now;
      }
      EXPECT_GT(memory_terms(model, {1000}, c, options).total(), before);
    }
  }
}

TEST(MemoryModel, ActivationsShrinkWithTheDegree) {
  const ModelGeometry wan = model_preset("wan2.1-t2v-1.3b");
  const Tokens length{63960};
  for (const MemoryOptions& options : kAll) {
    const double whole = static_cast<double>(memory_terms(wan, length, {1, 1, 1}, options).activations.value);
    for (const Configuration c : menu(wan, length, 16, Menu::all)) {
      const double part = static_cast<double>(memory_terms(wan, length, c, options).activations.value) * c.degree();
      EXPECT_GE(part, 0.999 * whole) << text(c);
      EXPECT_LE(part, 1.25 * whole) << text(c);  // texts are on every rank; q and the result by heads; own K, V
    }
  }
}

TEST(MemoryModel, CheckpointingPaysInActivations) {
  const ModelGeometry wan = model_preset("wan2.1-t2v-1.3b");
  for (const Configuration c : menu(wan, {63960}, 16, Menu::powers_of_two)) {
    const MemoryTerms with = memory_terms(wan, {63960}, c, {.checkpointing = true});
    const MemoryTerms without = memory_terms(wan, {63960}, c, {.checkpointing = false});
    EXPECT_GT(without.activations.value, 5 * with.activations.value) << text(c);
    EXPECT_EQ(without.key_value.value, 30 * with.key_value.value) << text(c);
    EXPECT_EQ(without.buffers, with.buffers) << text(c);
  }
}

TEST(MemoryModel, WithoutCheckpointingFetchingAgainSavesWhatTheGatherReplicates) {
  const ModelGeometry wan = model_preset("wan2.1-t2v-1.3b");
  const auto total = [&](Configuration c, bool keep_kv) {
    return memory_terms(wan, {64000}, c, {.checkpointing = false, .keep_kv = keep_kv}).total();
  };
  EXPECT_LT(total({4, 1, 1}, false), total({4, 1, 1}, true));
  EXPECT_LT(total({2, 2, 2}, false), total({2, 2, 2}, true));
  EXPECT_EQ(total({1, 1, 1}, false), total({1, 1, 1}, true));
}

// 92,160 bytes a token are the inputs of 30 blocks; 276,000 were measured while blocks kept copies in fp32.
TEST(MemoryModel, IsOfTheRightOrder) {
  const ModelGeometry wan = model_preset("wan2.1-t2v-1.3b");
  const std::int64_t whole = memory_terms(wan, {63960}, {1, 1, 1}).total().value / 63960;
  EXPECT_GT(whole, 2 * 92160);
  EXPECT_LT(whole, 200'000);
  const std::int64_t half = memory_terms(wan, {63960}, {1, 2, 1}).total().value / 63960;
  EXPECT_GT(half, whole / 2);
  EXPECT_LT(half, 0.6 * whole);
}

TEST(MemoryModel, RefusesWhatCannotRun) {
  const ModelGeometry wan = model_preset("wan2.1-t2v-1.3b");
  EXPECT_THAT(refusal([&] { memory_terms(wan, {100}, {1, 5, 1}); }), HasSubstr("does not divide 12 heads"));
  EXPECT_THAT(refusal([&] { memory_terms(wan, {3}, {4, 1, 1}); }), HasSubstr("one would be empty"));
  EXPECT_THAT(refusal([&] { memory_terms(wan, {std::int64_t{1} << 53}, {1, 1, 1}); }), HasSubstr("too large"));
}

}  // namespace
}  // namespace zellige
