// SPDX-License-Identifier: Apache-2.0
// The engine over NCCL, one process a GPU, against attention of whole sequences in fp64.
#include <memory>

#include <gtest/gtest.h>

#include "engine/packed_attention.h"
#include "gpu/gpu.h"
#include "zellige/error.h"

namespace zellige {
namespace {

constexpr int kHeads = 4;

/// The world group of the processes that run this test, made once.
const WorldGroup* world() {
  static std::unique_ptr<WorldGroup> joined = [] {
    const Env env = Env::from_process();
    if (!why_no_nccl().empty() || env.world_size.value_or(1) < 2) return std::unique_ptr<WorldGroup>();
    return std::make_unique<WorldGroup>(join_world(env, {.timeout = std::chrono::seconds(60)}));
  }();
  return joined.get();
}

/// Ends the communicators before the program does.
class WorldEnd : public testing::Environment {
 public:
  void TearDown() override {
    if (world() != nullptr) const_cast<WorldGroup*>(world())->group.reset();
  }
};
const auto* const world_end = testing::AddGlobalTestEnvironment(new WorldEnd);

class TwoGpus : public testing::Test {
 protected:
  void SetUp() override {
    if (world() == nullptr) {
      const std::string why = why_no_nccl();
      GTEST_SKIP() << (why.empty() ? "run it under torchrun with two processes" : why);
    }
    at::globalContext().setAllowTF32CuBLAS(false);
    gpu::why_skip("flash-attention-3");
  }

  /// This rank's rows of out, dQ, dK, dV by the engine.
  struct Rows {
    at::Tensor out, q, k, v;
  };

  Rows run(const oracle::AttentionProblem& problem, at::ScalarType type, const std::string& kernel = "") {
    const ModelGeometry& model = problem.placement.model;
    const Schedule schedule = lower(problem.placement, world()->rank);
    const auto leaf = [&](const std::vector<at::Tensor>& sequences, int heads) {
      return oracle::pack(schedule, sequences, heads, type).to(world()->device).set_requires_grad(true);
    };
    const at::Tensor q = leaf(problem.inputs.q, model.heads);
    const at::Tensor k = leaf(problem.inputs.k, model.kv_heads);
    const at::Tensor v = leaf(problem.inputs.v, model.kv_heads);
    Engine engine(world()->group, {.kernel = kernel});
    engine.begin_step(schedule);
    const at::Tensor out = engine.attention(q, k, v);
    out.backward(oracle::pack(schedule, problem.grad_outs, model.heads, type).to(world()->device));
    return {out.detach(), q.grad(), k.grad(), v.grad()};
  }

  void expect_close(const char* what, const at::Tensor& ours, const Schedule& schedule, int heads, double floor,
                    const std::vector<at::Tensor>& exact, const std::vector<at::Tensor>& plain) {
    if (schedule.num_tokens == 0) return;
    const at::Tensor wanted = oracle::pack(schedule, exact, heads, at::kDouble);
    const double size = std::max(wanted.norm().item<double>(), 0.03 * std::sqrt(static_cast<double>(wanted.numel())));
    const double error = oracle::distance(ours.to(at::kCPU), wanted);
    const double of_plain = oracle::distance(oracle::pack(schedule, plain, heads, at::kDouble), wanted);
    EXPECT_TRUE(error <= std::max(floor * size, 2 * of_plain))  // false for NaN
        << what << ": " << error / size << ", plain " << of_plain / size;
  }

  /// @param floor  relative error that is always allowed
  void expect_parity(const oracle::AttentionProblem& problem, at::ScalarType type, double floor,
                     const std::string& kernel = "") {
    const oracle::AttentionAnswer exact = oracle::dense_answer(problem);
    const oracle::AttentionAnswer plain = oracle::dense_answer(problem, type);
    const Rows ours = run(problem, type, kernel);
    const Schedule schedule = lower(problem.placement, world()->rank);
    const ModelGeometry& model = problem.placement.model;
    expect_close("out", ours.out, schedule, model.heads, floor, exact.outs, plain.outs);
    expect_close("dQ", ours.q, schedule, model.heads, floor, exact.grads.q, plain.grads.q);
    expect_close("dK", ours.k, schedule, model.kv_heads, floor, exact.grads.k, plain.grads.k);
    expect_close("dV", ours.v, schedule, model.kv_heads, floor, exact.grads.v, plain.grads.v);
  }

  /// A kernel that needs no plan for each new shape, as cuDNN does.
  static std::string flash() {
    return gpu::why_skip("flash-attention-3").empty() ? "flash-attention-3" : "flash-attention-2";
  }

  static constexpr double kBf16Floor = 6e-3;
  static constexpr double kFp32Floor = 1e-5;
};

oracle::AttentionProblem split_over_both(Configuration config, std::int64_t length, std::uint64_t seed,
                                         at::ScalarType type) {
  return oracle::make_problem(oracle::make_placement(2, kHeads, kHeads, 128,
                                                     {{200, {1, 1, 1}, {0}},
                                                      {length, config, {1, 0}},
                                                      {64, {1, 1, 1}, {1}},
                                                      {97, config, {0, 1}},
                                                      {64, {1, 1, 1}, {1}},
                                                      {1, {1, 1, 1}, {0}}}),
                              seed, type);
}

TEST_F(TwoGpus, EveryConfigurationEqualsDenseAttention) {
  std::uint64_t seed = 1;
  for (const Configuration config : {Configuration{2, 1, 1}, Configuration{1, 2, 1}, Configuration{1, 1, 2}}) {
    for (const std::int64_t length : {128, 255, 321}) {
      for (const int waves : {1, 2, 3}) {
        for (const bool overlap : {false, true}) {
          oracle::AttentionProblem problem = split_over_both(config, length, ++seed, at::kBFloat16);
          problem.placement.exec.waves = waves;
          problem.placement.exec.overlap = overlap;
          problem.placement.exec.keep_kv = seed % 2 == 0;
          if (seed % 3 == 0) problem.placement.exec.engine = "paper";
          SCOPED_TRACE(text(config) + ", " + std::to_string(length) + " tokens, " + std::to_string(waves) + " waves" +
                       (overlap ? ", overlap" : "") + ", seed " + std::to_string(seed));
          expect_parity(problem, at::kBFloat16, kBf16Floor, flash());
          if (waves == 1) expect_parity(problem, at::kFloat, kFp32Floor);
          if (waves == 1 && !overlap) expect_parity(problem, at::kBFloat16, kBf16Floor, "");
        }
      }
    }
  }
}

TEST_F(TwoGpus, EveryKernelEqualsDenseAttention) {
  for (const char* kernel : {"cudnn", "flash-attention-2", "flash-attention-3", "memory-efficient", "plain"}) {
    if (!gpu::why_skip(kernel).empty()) continue;
    for (const Configuration config : {Configuration{2, 1, 1}, Configuration{1, 2, 1}, Configuration{1, 1, 2}}) {
      SCOPED_TRACE(std::string(kernel) + " " + text(config));
      oracle::AttentionProblem problem = split_over_both(config, 300, 99, at::kBFloat16);
      problem.placement.sequences.pop_back();  // cuDNN takes no single token
      expect_parity(problem, at::kBFloat16, kBf16Floor, kernel);
      if (std::string(kernel) == "plain") expect_parity(problem, at::kDouble, 1e-12, kernel);
    }
  }
}

TEST_F(TwoGpus, RandomPlacementsEqualDenseAttention) {
  for (std::uint64_t seed = 500; seed < 530; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const oracle::RandomPlacementOptions options = {
        .min_ranks = 2, .max_ranks = 2, .max_tokens = 300, .head_dims = {64, 128}, .max_waves = 3};
    expect_parity(oracle::make_problem(oracle::random_placement(seed, options), seed, at::kBFloat16), at::kBFloat16,
                  kBf16Floor, flash());
  }
}

TEST_F(TwoGpus, ForwardRepeatsBitByBit) {
  oracle::AttentionProblem problem = split_over_both({1, 2, 1}, 500, 7, at::kBFloat16);
  const Rows first = run(problem, at::kBFloat16);
  problem.placement.exec.overlap = true;
  const Rows second = run(problem, at::kBFloat16);
  EXPECT_TRUE(at::equal(first.out, second.out));
}

TEST_F(TwoGpus, NotANumberStaysInItsSequence) {
  oracle::AttentionProblem problem = split_over_both({1, 2, 1}, 500, 8, at::kBFloat16);
  const Rows before = run(problem, at::kBFloat16);
  problem.inputs.k[1].fill_(NAN);  // the split sequence
  const Rows after = run(problem, at::kBFloat16);
  const Schedule schedule = lower(problem.placement, world()->rank);
  for (const Segment& segment : schedule.segments) {
    const auto rows = [&](const at::Tensor& packed) {
      return packed.narrow(0, segment.local_begin, segment.num_tokens);
    };
    if (segment.sequence == 1) {
      EXPECT_TRUE(rows(after.out).isnan().all().item<bool>());
    } else {
      EXPECT_TRUE(at::equal(rows(before.out), rows(after.out))) << "sequence " << segment.sequence;
      EXPECT_FALSE(rows(after.q).isnan().any().item<bool>()) << "sequence " << segment.sequence;
    }
  }
}

TEST_F(TwoGpus, AnotherPlanOnOneRankIsTheSameErrorOnBoth) {
  const auto plan_of = [](std::int64_t tokens) {
    return lower(oracle::make_placement(2, kHeads, kHeads, 128, {{tokens, {1, 2, 1}, {0, 1}}}), world()->rank);
  };
  Engine engine(world()->group);
  try {
    engine.begin_step(plan_of(world()->rank == 0 ? 100 : 101));
    ADD_FAILURE() << "nobody noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::communication);
    EXPECT_NE(std::string(error.what()).find("different plans"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace zellige
