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

// Counted by hand, in bytes: block input i; self-attention s, cross-attention c and feed-forward f of one block; the
// gradient g; the text's embedding t.
TEST(MemoryModel, EqualsHandCounts) {
  // i = 10*8*2 = 160; s = (10*40 + 10*8)*2 + 10*2*4 = 1040; c = (10*40 + 5*24)*2 + 10*2*4 = 1120;
  // f = 10*(3*8 + 2*16)*2 = 1120; g = 160; t = 5*8*2 = 80.
  expect_terms({10}, {1, 1, 1}, {}, {3 * 160 + (1040 + 1120 + 1120) + 160 + 80, 10 * 16 * 2, 0});
  expect_terms({10}, {1, 1, 1}, {.checkpointing = false},
               {3 * 160 + 3 * (1040 + 1120 + 1120) + 160 + 80, 3 * 10 * 16 * 2, 0});
  expect_terms({10}, {1, 1, 1}, {.keep_kv = false}, {4000, 320, 0});

  // 5 tokens, all 10 queries and keys of one head; the result by heads and by chunks. A and B' move 20 elements of Q
  // (dQ) and 40 of K, V each way; dK, dV of 5 tokens in fp32.
  expect_terms({10}, {1, 2, 1}, {}, {3 * 80 + (600 + 680 + 560) + 80 + 80, 10 * 8 * 2, (60 + 60) * 2 + 5 * 16 * 4});

  // 9 tokens: chunks of 5 and 4. Keys of all 9; 5*16 elements go, 4*16 come, and the other way round in B'.
  expect_terms({9}, {2, 1, 1}, {}, {3 * 80 + (520 + 680 + 560) + 80 + 80, 9 * 16 * 2, (80 + 80) * 2 + 5 * 16 * 4});
  // Not kept: the chunk's K, V; the 288 bytes that are fetched fit where the feed-forward's 560 are not.
  expect_terms({9}, {2, 1, 1}, {.keep_kv = false}, {2160, 5 * 16 * 2, 640});
  expect_terms({9}, {2, 1, 1}, {.checkpointing = false, .keep_kv = false},
               {3 * 80 + 3 * (520 + 680 + 560) + 80 + 80, 3 * 5 * 16 * 2, 640});

  // Ring of two: the own block stays, two blocks in flight; B' sends the other block's dK, dV and receives as much;
  // dQ and the chunk's dK, dV in fp32.
  expect_terms({10}, {1, 1, 2}, {}, {2160, 5 * 16 * 2, (80 + 80) * 2 + 2 * 5 * 16 * 2 + (5 * 8 + 5 * 16) * 4});
  // Ring of three: B' carries two blocks' gradients.
  expect_terms({9}, {1, 1, 3}, {}, {1424, 3 * 16 * 2, (96 + 96) * 2 + 2 * 3 * 16 * 2 + (3 * 8 + 3 * 16) * 4});

  // 11 tokens in chunks of 3, 3, 3, 2: a block of 6 keys; B' carries the own block's gradient, 3*16 to the other owner,
  // and the other block's, 6*16.
  expect_terms({11}, {2, 1, 2}, {},
               {3 * 48 + (312 + 504 + 336) + 48 + 80, 6 * 16 * 2, (144 + 144) * 2 + 2 * 6 * 16 * 2 + (24 + 48) * 4});
}

TEST(MemoryModel, GroupedKeyValueHeadsShrinkWhatIsKeyOrValue) {
  ModelGeometry model = hand_model();
  model.kv_heads = 1;
  const MemoryTerms terms = memory_terms(model, {10}, {2, 1, 1});
  EXPECT_EQ(terms.key_value.value, 10 * 8 * 2);
  EXPECT_EQ(terms.buffers.value, (40 + 40) * 2 + 5 * 8 * 4);
}

TEST(MemoryModel, TextInTheSameAttentionHasNoCrossAttention) {
  ModelGeometry joint = hand_model();
  joint.text = TextPlacement::joint_front;
  EXPECT_EQ(memory_terms(joint, {10}, {1, 1, 1}).activations.value, 4000 - 1120 - 80);
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
      EXPECT_LE(part, 1.15 * whole) << text(c);  // the text is there on every rank; heads hold the result once more
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

// The design's example prices 105,984 bytes a token whole, of which 92,160 are the inputs of 30 blocks.
TEST(MemoryModel, IsOfTheRightOrder) {
  const ModelGeometry wan = model_preset("wan2.1-t2v-1.3b");
  const std::int64_t whole = memory_terms(wan, {63960}, {1, 1, 1}).total().value / 63960;
  EXPECT_GT(whole, 92160);
  EXPECT_LT(whole, 2 * 105984);
  const std::int64_t half = memory_terms(wan, {63960}, {1, 2, 1}).total().value / 63960;
  EXPECT_GT(half, whole / 2);
  EXPECT_LT(half, 2 * 55296);
}

TEST(MemoryModel, RefusesWhatCannotRun) {
  const ModelGeometry wan = model_preset("wan2.1-t2v-1.3b");
  EXPECT_THAT(refusal([&] { memory_terms(wan, {100}, {1, 5, 1}); }), HasSubstr("does not divide 12 heads"));
  EXPECT_THAT(refusal([&] { memory_terms(wan, {3}, {4, 1, 1}); }), HasSubstr("one would be empty"));
  EXPECT_THAT(refusal([&] { memory_terms(wan, {std::int64_t{1} << 53}, {1, 1, 1}); }), HasSubstr("too large"));
}

}  // namespace
}  // namespace zellige
