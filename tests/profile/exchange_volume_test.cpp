// SPDX-License-Identifier: Apache-2.0
// The counting formulas against a count of who needs which token's which head from whom.
#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "zellige/profile.h"

namespace zellige {
namespace {

/// Elements that cross, by primitive, counted token by token and head by head.
struct Count {
  std::int64_t all_gather = 0;
  std::int64_t ulysses = 0;
  std::int64_t ring = 0;
};

struct Coordinates {
  int iq, ih, ik;
};

Coordinates coordinates(int rank, Configuration c) { return {rank / c.h % c.q, rank % c.h, rank / (c.h * c.q)}; }

/// Owner of every token: contiguous chunks in coordinate order, the first ones a token longer.
std::vector<int> owners(std::int64_t length, int degree) {
  std::vector<int> owner;
  for (int rank = 0; rank < degree; ++rank) {
    owner.insert(owner.end(), length / degree + (rank < length % degree ? 1 : 0), rank);
  }
  return owner;
}

/// Every K/V token's every head, towards all ranks that compute with it but do not own it; gradients go the same ways
/// back.
Count key_value_crossings(const ModelGeometry& model, std::int64_t length, Configuration c) {
  Count count;
  const std::vector<int> owner = owners(length, c.degree());
  for (int rank = 0; rank < c.degree(); ++rank) {
    const Coordinates here = coordinates(rank, c);
    for (std::int64_t token = 0; token < length; ++token) {
      if (owner[token] == rank) continue;
      const Coordinates there = coordinates(owner[token], c);
      for (int head = 0; head < model.kv_heads; ++head) {
        if (head / (model.kv_heads / c.h) != here.ih) continue;
        const std::int64_t elements = 2 * model.head_dim;  // K and V
        if (there.ik != here.ik) {
          count.ring += elements;
        } else if (there.iq != here.iq) {
          count.all_gather += elements;
        } else {
          count.ulysses += elements;
        }
      }
    }
  }
  return count;
}

/// Every query token's every head, towards the rank that computes it.
std::int64_t query_crossings(const ModelGeometry& model, std::int64_t length, Configuration c) {
  std::int64_t count = 0;
  const std::vector<int> owner = owners(length, c.degree());
  for (std::int64_t token = 0; token < length; ++token) {
    const Coordinates there = coordinates(owner[token], c);
    for (int rank = 0; rank < c.degree(); ++rank) {
      const Coordinates here = coordinates(rank, c);
      if (rank == owner[token] || here.iq != there.iq || here.ik != there.ik) continue;
      for (int head = 0; head < model.heads; ++head) {
        if (head / (model.heads / c.h) == here.ih) count += model.head_dim;
      }
    }
  }
  return count;
}

void expect_equal(const ExchangeVolume& volume, const Count& count) {
  EXPECT_EQ(volume.all_gather, static_cast<double>(count.all_gather));
  EXPECT_EQ(volume.ulysses, static_cast<double>(count.ulysses));
  EXPECT_EQ(volume.ring, static_cast<double>(count.ring));
}

TEST(ExchangeVolume, EqualsTheCountForEveryConfigurationAndAnyLength) {
  RandomEngine random(20261130);
  int checked = 0;
  for (const int kv_heads : {12, 6, 4, 2, 1}) {
    ModelGeometry model = model_preset("tiny");
    model.kv_heads = kv_heads;
    model.head_dim = 3;
    for (int q = 1; q <= 5; ++q) {
      for (int h = 1; h <= 6; ++h) {
        for (int k = 1; k <= 5; ++k) {
          const Configuration c{q, h, k};
          const std::int64_t length = c.degree() + static_cast<std::int64_t>(draw_below(random, 40));
          if (!why_illegal(model, {length}, c, c.degree()).empty()) continue;
          SCOPED_TRACE(text(c) + ", " + std::to_string(length) + " tokens, " + std::to_string(kv_heads) + " kv heads");
          const Count kv = key_value_crossings(model, length, c);
          const std::int64_t queries = query_crossings(model, length, c);
          // Forward: Q there and O back; K and V once.
          expect_equal(forward_volume(model, {length}, c), {kv.all_gather, kv.ulysses + 2 * queries, kv.ring});
          // Backward: dO there and dQ back; K/V around the ring again; dK and dV the ways that K and V came.
          expect_equal(backward_volume(model, {length}, c, true),
                       {kv.all_gather, kv.ulysses + 2 * queries, 2 * kv.ring});
          // What A brought is fetched again where it was not kept.
          expect_equal(backward_volume(model, {length}, c, false),
                       {2 * kv.all_gather, 2 * kv.ulysses + 2 * queries, 2 * kv.ring});
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 300);
}

TEST(ExchangeVolume, AreTheDesignsFactors) {
  const ModelGeometry wan = model_preset("wan2.1-t2v-1.3b");
  const double unit = 63960.0 * 1536;
  EXPECT_EQ(forward_volume(wan, {63960}, {1, 1, 1}).total(), 0);
  EXPECT_EQ(backward_volume(wan, {63960}, {1, 1, 1}, false).total(), 0);
  EXPECT_EQ(forward_volume(wan, {63960}, {1, 2, 1}).total(), 2 * unit);  // 2(h-1)/h + 2(qh-1)/h
  EXPECT_EQ(forward_volume(wan, {63960}, {4, 1, 1}).total(), 6 * unit);
  EXPECT_EQ(forward_volume(wan, {63960}, {1, 1, 4}).total(), 6 * unit);            // 2q(k-1)
  EXPECT_EQ(backward_volume(wan, {63960}, {1, 1, 4}, true).total(), 12 * unit);    // 2q(k-1) + 2(qhk-1)/h
  EXPECT_EQ(forward_volume(wan, {63960}, {2, 2, 2}).total(), (1 + 3 + 4) * unit);  // 2/2 + 2*3/2 + 2*2*1
  EXPECT_EQ(backward_volume(wan, {63960}, {2, 2, 2}, true).total(), (1 + 4 + 7) * unit);
  EXPECT_EQ(backward_volume(wan, {63960}, {2, 2, 2}, false).total(), (1 + 4 + 7 + 3) * unit);
}

}  // namespace
}  // namespace zellige
