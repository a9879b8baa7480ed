// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel_table.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/packed_attention.h"
#include "zellige/error.h"

namespace zellige {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One batch, [batch, tokens, heads, head_dim], and the textbook's answer in fp64, sequence by sequence.
struct Case {
  Case(std::int64_t batch, std::int64_t queries, std::int64_t keys, std::int64_t heads, std::int64_t kv_heads,
       double spread = 1) {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t(1000 * queries + keys));
    const auto draw = [&](std::int64_t tokens, std::int64_t of) {
      return at::randn({batch, tokens, of, 8}, generator, at::kDouble);
    };
    q = draw(queries, heads) * spread;
    k = draw(keys, kv_heads) * spread;
    v = draw(keys, kv_heads);
    grad_out = draw(queries, heads);
  }

  void compute() {
    std::vector<at::Tensor> outs, lses;
    const auto leaf = [](const at::Tensor& tensor) { return tensor.clone().set_requires_grad(true); };
    const at::Tensor q_leaf = leaf(q), k_leaf = leaf(k), v_leaf = leaf(v);
    for (std::int64_t i = 0; i < q.size(0); ++i) {
      outs.push_back(oracle::textbook_attention(q_leaf[i], k_leaf[i], v_leaf[i]));
      const at::Tensor keys = k[i].repeat_interleave(q.size(2) / k.size(2), 1);
      lses.push_back((at::einsum("qhd,khd->hqk", {q[i], keys}) / std::sqrt(8.0)).logsumexp(-1));
    }
    const at::Tensor stacked = at::stack(outs);
    stacked.backward(grad_out);
    out = stacked.detach();
    lse = at::stack(lses);
    grads = {q_leaf.grad(), k_leaf.grad(), v_leaf.grad()};
  }

  at::Tensor q, k, v, grad_out, out, lse;
  AttentionGradients grads;
};

/// Against a tenth of the inputs' unit variance where the reference vanishes, as the gradients of one key do.
double relative(const at::Tensor& ours, const at::Tensor& reference) {
  const double least = 0.1 * std::sqrt(static_cast<double>(reference.numel()));
  return oracle::distance(ours, reference) / std::max(reference.norm().item<double>(), least);
}

class EveryKernel : public testing::TestWithParam<const char*> {
 protected:
  const KernelTable kernels_{GetParam()};

  void expect_equal(const Case& c, at::ScalarType type, double tolerance) {
    const auto cast = [&](const at::Tensor& tensor) { return tensor.to(type); };
    const AttentionOutput result = kernels_.forward(cast(c.q), cast(c.k), cast(c.v));
    EXPECT_EQ(result.out.scalar_type(), type);
    EXPECT_EQ(result.lse.scalar_type(), accumulation_type(type));
    EXPECT_EQ(result.lse.sizes(), c.lse.sizes());
    EXPECT_LE(relative(result.out, c.out), tolerance);
    EXPECT_LE(relative(result.lse, c.lse), tolerance);
    const AttentionGradients grads =
        kernels_.backward(cast(c.grad_out), cast(c.q), cast(c.k), cast(c.v), result.out, result.lse);
    EXPECT_LE(relative(grads.q, c.grads.q), tolerance);
    EXPECT_LE(relative(grads.k, c.grads.k), tolerance);
    EXPECT_LE(relative(grads.v, c.grads.v), tolerance);
  }
};

INSTANTIATE_TEST_SUITE_P(Kernels, EveryKernel, testing::Values("aten-cpu-flash", "plain"));

TEST_P(EveryKernel, EqualsTheTextbookAtAwkwardLengths) {
  for (const std::int64_t queries : {1, 63, 127, 128, 129, 192}) {
    for (const std::int64_t keys : {1, 64, 255, 513}) {
      SCOPED_TRACE(std::to_string(queries) + " queries, " + std::to_string(keys) + " keys");
      Case c(2, queries, keys, 3, 3);
      c.compute();
      expect_equal(c, at::kDouble, 1e-13);
      expect_equal(c, at::kFloat, 3e-5);
    }
  }
}

TEST_P(EveryKernel, SharesKeysBetweenGroupedHeads) {
  Case c(2, 37, 53, 6, 2);
  c.compute();
  expect_equal(c, at::kDouble, 1e-13);
}

TEST_P(EveryKernel, TakesLargeScoresOfEitherSign) {
  Case c(1, 40, 40, 2, 2);
  c.q = at::ones_like(c.q) * 60;
  for (const double sign : {1.0, -1.0}) {
    // Scores near +-10,000: exponentials of them are no numbers, and log-sum-exp is far below -88.
    c.k = sign * (60 + at::arange(40, at::kDouble).view({1, 40, 1, 1}) * 1e-3).expand_as(c.k).contiguous();
    c.compute();
    ASSERT_GT(std::abs(c.lse[0][0][0].item<double>()), 9000);
    expect_equal(c, at::kDouble, 1e-6);  // scores of 10,000 leave so much of 53 bits, and dQ cancels
  }
}

TEST_P(EveryKernel, TakesStridedAndMisalignedViews) {
  Case c(2, 33, 33, 4, 4);
  c.compute();
  // As one projection gives q, k, v: side by side, and off any alignment by one element.
  const at::Tensor fused = at::empty({2 * 33 * 3 * 4 * 8 + 1}, at::kDouble).narrow(0, 1, 2 * 33 * 3 * 4 * 8);
  const at::Tensor qkv = fused.view({2, 33, 3, 4, 8});
  qkv.select(2, 0).copy_(c.q);
  qkv.select(2, 1).copy_(c.k);
  qkv.select(2, 2).copy_(c.v);
  const AttentionOutput result = kernels_.forward(qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2));
  EXPECT_LE(relative(result.out, c.out), 1e-13);
  const AttentionGradients grads =
      kernels_.backward(c.grad_out, qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2), result.out, result.lse);
  EXPECT_LE(relative(grads.k, c.grads.k), 1e-13);
}

TEST_P(EveryKernel, EmptySetsGiveZeroAndMinusInfinity) {
  const Case no_keys(2, 5, 0, 3, 3);
  const AttentionOutput result = kernels_.forward(no_keys.q, no_keys.k, no_keys.v);
  EXPECT_TRUE(at::equal(result.out, at::zeros_like(no_keys.q)));
  EXPECT_TRUE(result.lse.isneginf().all().item<bool>());
  EXPECT_EQ(result.lse.sizes(), at::IntArrayRef({2, 3, 5}));
  const AttentionGradients grads =
      kernels_.backward(no_keys.grad_out, no_keys.q, no_keys.k, no_keys.v, result.out, result.lse);
  EXPECT_TRUE(at::equal(grads.q, at::zeros_like(no_keys.q)));

  const Case no_queries(1, 0, 7, 3, 3);
  EXPECT_EQ(kernels_.forward(no_queries.q, no_queries.k, no_queries.v).out.numel(), 0);
  const AttentionGradients none = kernels_.backward(no_queries.grad_out, no_queries.q, no_queries.k, no_queries.v,
                                                    no_queries.q, at::empty({1, 3, 0}, at::kDouble));
  EXPECT_TRUE(at::equal(none.v, at::zeros_like(no_queries.v)));
}

/// Blocks of keys, one after the other, each with the final out and log-sum-exp on the way back.
TEST_P(EveryKernel, BlocksOfKeysMergeToTheWhole) {
  for (const double spread : {1.0, 12.0}) {  // the larger one makes some blocks vanish beside others
    Case c(1, 31, 50, 3, 3, spread);
    c.compute();
    at::Tensor out, lse, grad_q = at::zeros_like(c.q);
    const std::vector<at::Tensor> keys = c.k.split_with_sizes({17, 1, 0, 32}, 1);
    const std::vector<at::Tensor> values = c.v.split_with_sizes({17, 1, 0, 32}, 1);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const AttentionOutput part = kernels_.forward(c.q, keys[i], values[i]);
      if (i == 0) {
        out = part.out.clone();
        lse = part.lse.clone();
      } else {
        merge_partial(out, lse, part);
      }
    }
    EXPECT_LE(relative(out, c.out), 1e-13);
    EXPECT_LE(relative(lse, c.lse), 1e-13);
    std::vector<at::Tensor> grad_k, grad_v;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const AttentionGradients grads = kernels_.backward(c.grad_out, c.q, keys[i], values[i], out, lse);
      grad_q += grads.q;
      grad_k.push_back(grads.k);
      grad_v.push_back(grads.v);
    }
    const double tolerance = spread > 1 ? 1e-11 : 1e-13;
    EXPECT_LE(relative(grad_q, c.grads.q), tolerance);
    EXPECT_LE(relative(at::cat(grad_k, 1), c.grads.k), tolerance);
    EXPECT_LE(relative(at::cat(grad_v, 1), c.grads.v), tolerance);
  }
}

/// One query of one head and one element: out and lse are plain numbers.
std::pair<double, double> merged(double out, double lse, double more_out, double more_lse) {
  at::Tensor out_tensor = at::full({1, 1, 1, 1}, out, at::kFloat);
  at::Tensor lse_tensor = at::full({1, 1, 1}, lse, at::kFloat);
  merge_partial(out_tensor, lse_tensor, {at::full({1, 1, 1, 1}, more_out), at::full({1, 1, 1}, more_lse)});
  return {out_tensor.item<double>(), lse_tensor.item<double>()};
}

TEST(MergePartial, WeighsByLogSumExp) {
  using Pair = std::pair<double, double>;
  const auto [out, lse] = merged(2, std::log(3.0), 6, std::log(1.0));
  EXPECT_FLOAT_EQ(out, 3);
  EXPECT_FLOAT_EQ(lse, std::log(4.0f));
  EXPECT_EQ(merged(0, -kInfinity, 0, -kInfinity), Pair(0, -kInfinity)) << "both empty: zero, not NaN";
  EXPECT_EQ(merged(0, -kInfinity, 5, 1.5), Pair(5, 1.5));
  EXPECT_EQ(merged(5, 1.5, 0, -kInfinity), Pair(5, 1.5));
  EXPECT_EQ(merged(5, -30000, 7, -20000), Pair(7, -20000)) << "differences whose exponential overflows";
  EXPECT_EQ(merged(5, -20000, 7, -30000), Pair(5, -20000));
  EXPECT_EQ(merged(5, 30000, 7, -30000), Pair(5, 30000));
  const auto [even_out, even_lse] = merged(4, -10000, 8, -10000);
  EXPECT_FLOAT_EQ(even_out, 6);
  EXPECT_FLOAT_EQ(even_lse, -10000 + std::log(2.0f));
  EXPECT_TRUE(std::isnan(merged(NAN, NAN, 1, 1).first)) << "NaN is passed on, not hidden";
  EXPECT_TRUE(std::isnan(merged(1, 1, NAN, NAN).first));
}

/// A shape of bf16 on a GPU; choosing needs none.
AttentionShape on_gpu(std::int64_t batch, std::int64_t length, at::ScalarType type = at::kBFloat16) {
  return {.device = c10::DeviceType::CUDA,
          .dtype = type,
          .batch = batch,
          .queries = length,
          .keys = length,
          .heads = 12,
          .head_dim = 128};
}

TEST(KernelTable, OnAGpuGoesByRulesOrByWhatWasMeasured) {
  const KernelTable by_rules;
  EXPECT_EQ(by_rules.choose(on_gpu(64, 256), Direction::forward).name(), "cudnn");
  EXPECT_EQ(by_rules.choose(on_gpu(4, 1), Direction::forward).name(), "flash-attention-2")
      << "cuDNN takes no single query";
  EXPECT_EQ(by_rules.choose(on_gpu(4, 300, at::kFloat), Direction::backward).name(), "memory-efficient");
  EXPECT_TRUE(by_rules.has("aten-cpu-flash"));
  EXPECT_FALSE(by_rules.has("plain")) << "for tests only";

  const auto row = [](const char* kernel, const char* direction, std::int64_t length, std::int64_t rate) {
    KernelRate rate_row;
    rate_row.kernel = kernel;
    rate_row.direction = direction;
    rate_row.length = {length};
    rate_row.count = 1;
    rate_row.heads = 12;
    rate_row.flops_per_us = rate;
    return rate_row;
  };
  const KernelTable measured("", {row("cudnn", "forward", 1000, 500), row("flash-attention-2", "forward", 1000, 400),
                                  row("cudnn", "forward", 100, 100), row("flash-attention-2", "forward", 100, 200),
                                  row("memory-efficient", "backward", 100, 300), row("cudnn", "backward", 100, 200)});
  EXPECT_EQ(measured.choose(on_gpu(1, 4000), Direction::forward).name(), "cudnn");
  EXPECT_EQ(measured.choose(on_gpu(1, 120), Direction::forward).name(), "flash-attention-2");
  EXPECT_EQ(measured.choose(on_gpu(1, 120), Direction::backward).name(), "memory-efficient");
}

TEST(WholeBatches, SmallNeighboursShareACall) {
  const std::vector<WholeGroup> groups = {{.length = 8160, .count = 8},
                                          {.length = 4000, .count = 1},
                                          {.length = 900, .count = 2},
                                          {.length = 256, .count = 64}};
  using Batches = std::vector<WholeBatch>;
  EXPECT_EQ(batch_whole_groups(groups, 12, false), (Batches{{0, 1}, {1, 2}, {3, 1}}));
  EXPECT_EQ(batch_whole_groups(groups, 12, true), (Batches{{0, 4}})) << "the paper's block-diagonal call";
  EXPECT_EQ(one_batch_a_group(groups).size(), 4u);
  EXPECT_TRUE(batch_whole_groups({}, 12, true).empty());
}

TEST(KernelTable, ChoosesByDeviceAndDtypeOrSaysWhatItMisses) {
  EXPECT_EQ(KernelTable().choose({.dtype = at::kBFloat16, .head_dim = 128}, Direction::forward).name(),
            "aten-cpu-flash");
  EXPECT_EQ(KernelTable("plain").choose({.dtype = at::kHalf}, Direction::backward).name(), "plain");
  const auto code_of = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return Code::ok;
  };
  const auto choose = [](const AttentionShape& shape) {
    return KernelTable().choose(shape, Direction::forward).name();
  };
  EXPECT_EQ(code_of([&] { choose({.dtype = at::kHalf}); }), Code::device);
  EXPECT_EQ(code_of([&] { choose({.device = c10::DeviceType::CUDA, .dtype = at::kDouble, .head_dim = 64}); }),
            Code::device);
  EXPECT_EQ(code_of([] { KernelTable("flash"); }), Code::input);
}

}  // namespace
}  // namespace zellige
