// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "engine/packed_attention.h"
#include "zellige/error.h"

namespace zellige {
namespace {

using oracle::AttentionAnswer;
using oracle::AttentionProblem;
using oracle::PlacementEntry;
using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
using testing::AllOf;
using testing::HasSubstr;

/// Four ranks of which rank 3 holds nothing; two split sequences over overlapping rank sets and whole ones beside them.
Placement mixed_placement() {
  return oracle::make_placement(4, 6, 6, 8,
                                {{31, {1, 3, 1}, {2, 0, 1}},
                                 {12, {1, 1, 1}, {0}},
                                 {23, {1, 1, 2}, {1, 2}},
                                 {12, {1, 1, 1}, {0}},
                                 {9, {1, 1, 1}, {2}},
                                 {18, {2, 1, 1}, {0, 2}}});
}

bool equal_bits(const at::Tensor& a, const at::Tensor& b) {
  return at::equal(a.contiguous().view(at::kLong), b.contiguous().view(at::kLong));
}

Code code_of(const std::function<void()>& call, std::string* text = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (text != nullptr) *text = error.what();
    return error.code();
  }
  return Code::ok;
}

/// Zeros in the shapes that a schedule wants.
struct Inputs {
  explicit Inputs(const Schedule& schedule)
      : q(at::ones({schedule.num_tokens, schedule.heads, schedule.head_dim}).set_requires_grad(true)),
        k(at::ones({schedule.num_tokens, schedule.kv_heads, schedule.head_dim}).set_requires_grad(true)),
        v(at::ones({schedule.num_tokens, schedule.kv_heads, schedule.head_dim}).set_requires_grad(true)) {}
  at::Tensor q, k, v;
};

class EngineOfEither : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Engines, EngineOfEither, testing::Values("coalesced", "paper"));

TEST_P(EngineOfEither, SequencesAreIsolated) {
  AttentionProblem problem = oracle::make_problem(mixed_placement(), 1);
  problem.placement.exec.waves = 2;
  problem.placement.exec.engine = GetParam();
  const AttentionAnswer clean = oracle::engine_answer(problem);
  for (const std::size_t poisoned : {0u, 1u, 2u}) {
    AttentionProblem dirty = problem;
    for (auto* tensors : {&dirty.inputs.q, &dirty.inputs.k, &dirty.inputs.v, &dirty.grad_outs}) {
      (*tensors)[poisoned] = at::full_like((*tensors)[poisoned], NAN);
    }
    const AttentionAnswer answer = oracle::engine_answer(dirty);
    std::size_t i = 0;
    oracle::for_each_pair(answer, clean, [&](const std::string& what, const at::Tensor& a, const at::Tensor& b) {
      if (i++ % problem.inputs.q.size() == poisoned) {
        EXPECT_TRUE(a.isnan().any().item<bool>()) << "the poison of " << what << " must show";
      } else {
        EXPECT_TRUE(equal_bits(a, b)) << what << " with NaN in sequence " << poisoned;
      }
    });
  }
}

TEST(EngineContract, RunsGiveTheSameBitsWhateverOverlapsOrIsKept) {
  AttentionProblem problem = oracle::make_problem(mixed_placement(), 2);
  problem.placement.exec.waves = 2;
  const AttentionAnswer first = oracle::engine_answer(problem);
  for (int run = 0; run < 12; ++run) {
    problem.placement.exec.engine = run < 6 ? "coalesced" : "paper";
    problem.placement.exec.overlap = run % 2 == 1;
    problem.placement.exec.keep_kv = run % 3 != 0;
    oracle::for_each_pair(oracle::engine_answer(problem), first,
                          [&](const std::string& what, const at::Tensor& a, const at::Tensor& b) {
                            EXPECT_TRUE(equal_bits(a, b)) << what << ", run " << run;
                          });
  }
}

TEST(EngineContract, TakesStridedInputsAndExpandedGradients) {
  const AttentionProblem problem = oracle::make_problem(mixed_placement(), 3);
  AttentionProblem ones = problem;
  for (at::Tensor& grad : ones.grad_outs) grad = at::ones_like(grad);
  const AttentionAnswer expected = oracle::dense_answer(ones);
  // The rank's q, k, v are strided views of one tensor, elements of a head not adjacent; the loss is a plain sum.
  const auto layers = [](Engine& engine, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    const at::Tensor fused = at::stack({q, k, v}, 3);
    return engine.attention(fused.select(3, 0), fused.select(3, 1), fused.select(3, 2)).sum().expand(q.sizes()) /
           static_cast<double>(std::max<std::int64_t>(q.numel(), 1));
  };
  const AttentionAnswer answer = oracle::engine_answer(ones, {.layers = layers});
  for (std::size_t i = 0; i < expected.outs.size(); ++i) {
    EXPECT_TRUE(at::allclose(answer.grads.q[i], expected.grads.q[i], 1e-10, 1e-12)) << i;
    EXPECT_TRUE(at::allclose(answer.grads.v[i], expected.grads.v[i], 1e-10, 1e-12)) << i;
  }
}

/// Keeps its inputs only, and runs `body` again inside backward: activation checkpointing.
using Body = std::function<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>;
class Checkpoint final : public torch::autograd::Function<Checkpoint> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const std::shared_ptr<Body>& body) {
    context->save_for_backward({q, k, v});
    context->saved_data["body"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(body));
    return (*body)(q, k, v);
  }
  static std::vector<at::Tensor> backward(torch::autograd::AutogradContext* context, std::vector<at::Tensor> grads) {
    const auto capsule = context->saved_data["body"].toCapsule();
    std::vector<at::Tensor> inputs;
    for (const at::Tensor& saved : context->get_saved_variables()) {
      inputs.push_back(saved.detach().set_requires_grad(true));
    }
    {
      const at::AutoGradMode with_graph(true);
      const at::Tensor out = (*static_cast<Holder&>(*capsule).body)(inputs[0], inputs[1], inputs[2]);
      out.backward(grads[0]);
    }
    return {inputs[0].grad(), inputs[1].grad(), inputs[2].grad(), at::Tensor()};
  }

 private:
  struct Holder final : torch::CustomClassHolder {
    explicit Holder(std::shared_ptr<Body> body_in) : body(std::move(body_in)) {}
    std::shared_ptr<Body> body;
  };
};

TEST(EngineContract, ActivationCheckpointingChangesNothing) {
  AttentionProblem problem = oracle::make_problem(mixed_placement(), 4);
  problem.placement.exec.waves = 2;
  // Three layers; each uses the attention twice, so that a layer's recomputation stands between exchanges of backward.
  const auto layers = [](bool checkpointed) {
    return [checkpointed](Engine& engine, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
      const auto block =
          std::make_shared<Body>([&engine](const at::Tensor& x, const at::Tensor& y, const at::Tensor& z) {
            return engine.attention(engine.attention(x, y, z).tanh(), y, z) + x;
          });
      at::Tensor x = q;
      for (int layer = 0; layer < 3; ++layer) x = checkpointed ? Checkpoint::apply(x, k, v, block) : (*block)(x, k, v);
      return x;
    };
  };
  std::vector<EngineCounters> plain_counters(4), counters(4);
  const auto keep = [](std::vector<EngineCounters>& into) {
    return [&into](Rank rank, const Engine& engine) { into[static_cast<std::size_t>(rank)] = engine.counters(); };
  };
  const AttentionAnswer plain = oracle::engine_answer(problem, {.layers = layers(false), .look = keep(plain_counters)});
  const AttentionAnswer again = oracle::engine_answer(problem, {.layers = layers(true), .look = keep(counters)});
  oracle::for_each_pair(again, plain, [&](const std::string& what, const at::Tensor& a, const at::Tensor& b) {
    EXPECT_FALSE(a.isnan().any().item<bool>()) << what;
    EXPECT_TRUE(at::allclose(a, b, 1e-12, 1e-12)) << what;
  });
  // Six calls; backward of as many; and six calls again, with checkpointing. Five or more collectives each.
  EXPECT_EQ(plain_counters[0].collectives % 12, 0);
  EXPECT_EQ(counters[0].collectives, plain_counters[0].collectives / 12 * 18);
  for (const EngineCounters& other : counters) EXPECT_EQ(other.collectives, counters[0].collectives);
}

/// Bytes of the pieces that a rank sends in one layer.
std::int64_t bytes_of(const Schedule& schedule, int element_bytes, Phase phase) {
  std::int64_t bytes = 0;
  for (const auto* pass : {&schedule.forward, &schedule.backward}) {
    for (const Exchange& exchange : *pass) {
      for (const Piece& piece : exchange.sends) {
        if (exchange.phase == phase) bytes += piece.num_tokens * piece.num_heads * schedule.head_dim * element_bytes;
      }
    }
  }
  return bytes;
}

TEST(EngineContract, CountersAreTheSchedulesBytes) {
  for (std::uint64_t seed = 100; seed < 110; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Placement placement = oracle::random_placement(seed, {.min_split = 1, .head_dims = {4}});
    if (seed % 2 == 0) placement.exec.engine = "paper";
    oracle::engine_answer(
        oracle::make_problem(placement, seed),
        {.type = at::kFloat,
         .layers = [](Engine& engine, const at::Tensor& q, const at::Tensor& k,
                      const at::Tensor& v) { return engine.attention(engine.attention(q, k, v), k, v); },
         .look =
             [&](Rank rank, const Engine& engine) {
               const Schedule schedule = lower(placement, rank);
               const EngineCounters counters = engine.counters();
               const std::int64_t total = bytes_of(schedule, 4, Phase::a) + bytes_of(schedule, 4, Phase::ring) +
                                          bytes_of(schedule, 4, Phase::b);
               EXPECT_EQ(counters.all_gather_bytes + counters.ulysses_bytes + counters.ring_bytes, 2 * total);
               EXPECT_GE(counters.ring_bytes, 2 * bytes_of(schedule, 4, Phase::ring));
               EXPECT_EQ(counters.collectives,
                         static_cast<std::int64_t>(2 * (schedule.forward.size() + schedule.backward.size())));
               EXPECT_GE(counters.exchange_wait_s, 0);
               const StepReport report = const_cast<Engine&>(engine).report();
               EXPECT_EQ(report.counters.collectives, counters.collectives);
               EXPECT_EQ(report.forward_layers, 2);
               EXPECT_EQ(report.backward_layers, 2);
               EXPECT_LE(report.exposed.total_s(), counters.exchange_wait_s + 1e-3);
             }});
  }
}

/// What a rank waits for another one is exposed, in the phase in which it waits, and on the others' reports nowhere.
TEST(EngineContract, ReportsHowLongARankStoodStill) {
  constexpr auto kLate = std::chrono::milliseconds(300);
  for (const bool overlap : {false, true}) {
    Placement placement = mixed_placement();
    placement.exec.overlap = overlap;
    run_thread_ranks(4, [&](Rank rank, const Group& group) {
      const Schedule schedule = lower(placement, rank);
      const Inputs x(schedule);
      Engine engine(group);
      engine.begin_step(schedule);
      const at::NoGradGuard no_grad;
      engine.attention(x.q, x.k, x.v);
      const double before = engine.report().exposed.total_s();
      if (rank == 1) std::this_thread::sleep_for(kLate);
      engine.attention(x.q, x.k, x.v);
      const ExposedExchange exposed = engine.report().exposed;
      if (rank == 0) {  // shares sequences with rank 1
        EXPECT_GE(exposed.total_s() - before, 0.2);
        EXPECT_GE(exposed.a_s + exposed.ring_s, 0.2);
      }
      EXPECT_EQ(engine.report().forward_layers, 2);
      engine.begin_step(schedule);
      EXPECT_EQ(engine.report().exposed.total_s(), 0);
    });
  }
}

/// Calls of a layer by shape, each once; with the shapes of a later step only those that are new.
TEST(EngineContract, WarmUpRunsEachShapeOnceAndExchangesNothing) {
  run_thread_ranks(2, [&](Rank rank, const Group& group) {
    Placement placement = oracle::make_placement(2, 4, 4, 8,
                                                 {{33, {1, 2, 1}, {0, 1}},
                                                  {33, {1, 2, 1}, {1, 0}},
                                                  {20, {1, 1, 1}, {0}},
                                                  {20, {1, 1, 1}, {0}},
                                                  {20, {1, 1, 1}, {1}},
                                                  {20, {1, 1, 1}, {1}},
                                                  {9, {1, 1, 1}, {rank}}});
    Engine engine(group);
    const auto warm_up = [&] { return engine.warm_up(lower(placement, rank), at::kFloat, at::kCPU); };
    EXPECT_EQ(warm_up(), 3U) << "2 x 20, 1 x 9, and a shard of 33 tokens by 2 heads";
    EXPECT_EQ(warm_up(), 0U);
    placement.sequences.pop_back();
    placement.sequences.pop_back();
    EXPECT_EQ(warm_up(), rank == 0 ? 0U : 1U) << "rank 1 has one of 20 now";
    EXPECT_EQ(engine.warm_up(lower(placement, rank), at::kDouble, at::kCPU), 2U) << "another dtype";
    EXPECT_EQ(engine.counters().collectives, 0);
  });
}

TEST(EngineContract, WholeSequencesAloneNeedNoExchange) {
  const Placement placement = oracle::make_placement(3, 2, 2, 8, {{7, {1, 1, 1}, {0}}, {9, {1, 1, 1}, {2}}});
  const AttentionProblem problem = oracle::make_problem(placement, 5);
  const auto look = [](Rank, const Engine& engine) { EXPECT_EQ(engine.counters().collectives, 0); };
  const AttentionAnswer answer = oracle::engine_answer(problem, {.look = look});
  EXPECT_LE(oracle::worst_error(answer, oracle::dense_answer(problem)).relative, 1e-12);
}

TEST(EngineContract, DifferentPlansAreAnErrorOnEveryRank) {
  std::vector<Code> codes(4, Code::ok);
  std::vector<std::string> texts(4);
  run_thread_ranks(4, [&](Rank rank, const Group& group) {
    Placement placement = mixed_placement();
    if (rank == 2) placement.exec.waves = 3;
    Engine engine(group);
    const auto me = static_cast<std::size_t>(rank);
    codes[me] = code_of([&] { engine.begin_step(lower(placement, rank)); }, &texts[me]);
    // Nobody can go on after that.
    const Schedule right = lower(mixed_placement(), rank);
    EXPECT_EQ(code_of([&] { engine.begin_step(right); }), Code::communication);
  });
  EXPECT_THAT(codes, testing::Each(Code::communication));
  Placement other = mixed_placement();
  other.exec.waves = 3;
  EXPECT_THAT(texts, testing::Each(AllOf(HasSubstr("ranks 2 hold '" + digest(other) + "'"),
                                         HasSubstr("ranks 0, 1, 3 hold '" + digest(mixed_placement()) + "'"))));
}

TEST(EngineContract, WrongArgumentsAreRefusedBeforeAnythingMoves) {
  run_thread_ranks(4, [&](Rank rank, const Group& group) {
    const Schedule schedule = lower(mixed_placement(), rank);
    const Inputs x(schedule);
    std::string text;
    EXPECT_EQ(code_of([] { Engine(nullptr); }), Code::input);
    EXPECT_EQ(code_of([&] { Engine(group, {.kernel = "abacus"}); }), Code::input);
    Engine engine(group);
    EXPECT_EQ(code_of([&] { engine.attention(x.q, x.k, x.v); }, &text), Code::input);
    EXPECT_THAT(text, HasSubstr("call begin_step first"));
    EXPECT_EQ(code_of([&] { engine.begin_step(lower(mixed_placement(), (rank + 1) % 4)); }, &text), Code::input);
    EXPECT_THAT(text, HasSubstr("this engine is rank " + std::to_string(rank) + " of 4"));
    Schedule no_digest = schedule;
    no_digest.digest.clear();
    EXPECT_EQ(code_of([&] { engine.begin_step(no_digest); }), Code::input);

    engine.begin_step(schedule);
    const at::Tensor longer = at::ones({schedule.num_tokens + 1, 6, 8});
    EXPECT_EQ(code_of([&] { engine.attention(longer, x.k, x.v); }, &text), Code::input);
    EXPECT_THAT(text, AllOf(HasSubstr("q is [" + std::to_string(schedule.num_tokens + 1) + ", 6, 8]"),
                            HasSubstr("use [" + std::to_string(schedule.num_tokens) + ", 6, 8]")));
    EXPECT_EQ(code_of([&] { engine.attention(x.q, x.k.flatten(1), x.v); }), Code::input);
    EXPECT_EQ(code_of([&] { engine.attention(x.q, x.k, at::Tensor()); }), Code::input);
    EXPECT_EQ(code_of([&] { engine.attention(x.q, x.k.to(at::kDouble), x.v); }, &text), Code::input);
    EXPECT_THAT(text, HasSubstr("k is Double on cpu, q is Float on cpu"));
    const auto half = [](const at::Tensor& tensor) { return tensor.to(at::kHalf); };
    EXPECT_EQ(code_of([&] { engine.attention(half(x.q), half(x.k), half(x.v)); }), Code::device);
    const auto meta = [](const at::Tensor& tensor) { return tensor.to(at::kMeta); };
    EXPECT_EQ(code_of([&] { engine.attention(meta(x.q), meta(x.k), meta(x.v)); }), Code::device);
    // And still all ranks stand at the same call.
    EXPECT_NO_THROW(engine.attention(x.q, x.k, x.v).sum().backward());
  });
}

TEST(EngineContract, ARankThatThrowsEndsAllAndTheEngineWithThem) {
  std::vector<Code> later(4, Code::ok);
  std::string text;
  const Code code = code_of(
      [&] {
        run_thread_ranks(4, [&](Rank rank, const Group& group) {
          const Schedule schedule = lower(mixed_placement(), rank);
          const Inputs x(schedule);
          Engine engine(group);
          engine.begin_step(schedule);
          if (rank == 1) throw Error(Code::device, "test", "the fan has stopped");
          try {
            engine.attention(x.q, x.k, x.v);
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), Code::communication);
            later[static_cast<std::size_t>(rank)] = code_of([&] { engine.attention(x.q, x.k, x.v); });
            throw;
          }
        });
      },
      &text);
  EXPECT_EQ(code, Code::device);
  EXPECT_THAT(text, HasSubstr("rank 1 failed: [test] the fan has stopped"));
  EXPECT_THAT(later, testing::ElementsAre(Code::communication, Code::ok, Code::communication, Code::communication));
}

TEST(EngineContract, AFailureInsideBackwardKeepsItsCode) {
  std::vector<Code> codes(4, Code::ok);
  run_thread_ranks(4, [&](Rank rank, const Group& group) {
    const Schedule schedule = lower(mixed_placement(), rank);
    const Inputs x(schedule);
    Engine engine(group);
    engine.begin_step(schedule);
    const at::Tensor out = engine.attention(x.q, x.k, x.v);
    if (rank == 3) return;  // ends without backward
    codes[static_cast<std::size_t>(rank)] = code_of([&] { out.sum().backward(); });
  });
  EXPECT_THAT(codes, testing::ElementsAre(Code::communication, Code::communication, Code::communication, Code::ok));
}

TEST(EngineContract, AnOutputGoesBackwardAfterTheNextStepHasBegun) {
  const Placement first = mixed_placement();
  const Placement second = oracle::make_placement(4, 6, 6, 8, {{40, {1, 2, 2}, {3, 2, 1, 0}}});
  const AttentionProblem problem = oracle::make_problem(first, 6);
  const auto layers = [&](Engine& engine, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    at::Tensor out = engine.attention(q, k, v);
    const Schedule next = lower(second, engine.schedule().rank);
    engine.begin_step(next);
    EXPECT_EQ(engine.counters().collectives, 0);
    const Inputs x(next);
    engine.attention(x.q, x.k, x.v).sum().backward();
    EXPECT_EQ(engine.schedule().digest, next.digest);
    return out;
  };
  const AttentionAnswer answer = oracle::engine_answer(problem, {.layers = layers});
  EXPECT_LE(oracle::worst_error(answer, oracle::dense_answer(problem)).relative, 1e-12);
}

TEST(EngineContract, GraphsMayOutliveTheEngineAndRunTwice) {
  run_thread_ranks(4, [&](Rank rank, const Group& group) {
    const Schedule schedule = lower(mixed_placement(), rank);
    const Inputs x(schedule);
    at::Tensor out;
    {
      Engine engine(group);
      engine.begin_step(schedule);
      out = engine.attention(x.q, x.k, x.v);
    }
    out.backward(at::ones_like(out), /*retain_graph=*/true);
    const at::Tensor once = x.v.grad().clone();
    out.backward(at::ones_like(out));
    EXPECT_TRUE(at::equal(x.v.grad(), 2 * once));
  });
}

TEST(EngineContract, AGraphThatIsLetGoFreesItsTensors) {
  run_thread_ranks(4, [&](Rank rank, const Group& group) {
    const Schedule schedule = lower(mixed_placement(), rank);
    Inputs x(schedule);
    Engine engine(group);
    engine.begin_step(schedule);
    at::Tensor out = engine.attention(x.q, x.k, x.v);
    const c10::weak_intrusive_ptr<c10::TensorImpl> output(out.getIntrusivePtr());
    const c10::weak_intrusive_ptr<c10::TensorImpl> query(x.q.getIntrusivePtr());
    x.q.reset();
    EXPECT_FALSE(output.expired() || query.expired()) << "the graph holds them";
    out.reset();
    EXPECT_TRUE(output.expired()) << "no cycle through the output that backward needs";
    EXPECT_TRUE(query.expired());
  });
}

TEST(EngineContract, SecondDerivativesAreRefused) {
  run_thread_ranks(4, [&](Rank rank, const Group& group) {
    const Schedule schedule = lower(mixed_placement(), rank);
    const Inputs x(schedule);
    Engine engine(group);
    engine.begin_step(schedule);
    const at::Tensor out = engine.attention(x.q, x.k, x.v);
    EXPECT_EQ(code_of([&] { out.backward(at::ones_like(out), std::nullopt, /*create_graph=*/true); }), Code::input);
  });
}

TEST(EngineContract, WithoutGradientsNothingIsKeptAndTheResultIsTheSame) {
  const AttentionProblem problem = oracle::make_problem(mixed_placement(), 8);
  const auto layers = [](Engine& engine, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    const at::Tensor out = engine.attention(q, k, v);
    {
      const at::NoGradGuard no_grad;
      const at::Tensor again = engine.attention(q, k, v);
      EXPECT_FALSE(again.requires_grad());
      EXPECT_TRUE(equal_bits(again, out));
    }
    EXPECT_FALSE(engine.attention(q.detach(), k.detach(), v.detach()).requires_grad());
    EXPECT_TRUE(out.requires_grad()) << "also on the rank without tokens";
    return out;
  };
  oracle::engine_answer(problem, {.layers = layers});
}

/// A group that can do nothing but all-to-all, and remembers the buffers that it was given.
class OnlyAllToAll final : public c10d::ProcessGroup {
 public:
  explicit OnlyAllToAll(Group inner)
      : ProcessGroup(inner->getStore(), inner->getRank(), inner->getSize()), inner_(std::move(inner)) {}
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& output, at::Tensor& input,
                                               std::vector<std::int64_t>& receive, std::vector<std::int64_t>& send,
                                               const c10d::AllToAllOptions& options) override {
    if (input.scalar_type() != at::kByte && input.numel() > 0) buffers.insert(input.data_ptr());
    if (input.scalar_type() != at::kByte && output.numel() > 0) buffers.insert(output.data_ptr());
    return inner_->alltoall_base(output, input, receive, send, options);
  }
  std::set<void*> buffers;

 private:
  Group inner_;
};

TEST(EngineContract, NeedsAllToAllOnlyAndUsesItsBuffersForAllLayers) {
  run_thread_ranks(4, [&](Rank rank, const Group& group) {
    const Schedule schedule = lower(mixed_placement(), rank);
    const Inputs x(schedule);
    const auto only = c10::make_intrusive<OnlyAllToAll>(group);
    Engine engine(only);
    for (int step = 0; step < 2; ++step) {
      engine.begin_step(schedule);
      for (int layer = 0; layer < 3; ++layer) engine.attention(x.q, x.k, x.v).sum().backward();
    }
    // Three phases, one buffer to send and one to receive each; rank 3 has nothing to send.
    EXPECT_LE(only->buffers.size(), 6u);
    EXPECT_EQ(only->buffers.empty(), rank == 3);
  });
}

/// Gradient synchronisation and exchanges share the group and meet inside backward: two layers with parameters, one
/// bucket each, a rank without tokens, against the same model on all tokens at once.
TEST(EngineContract, ReducerAndExchangesMeetInBackward) {
  const AttentionProblem problem = oracle::make_problem(mixed_placement(), 9);
  const int ranks = problem.placement.ranks;
  const auto weights = [] {
    std::vector<at::Tensor> list;
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(77);
    for (int i = 0; i < 6; ++i) list.push_back(at::randn({8, 8}, generator, at::kDouble).set_requires_grad(true));
    return list;
  };
  const auto model = [](const std::vector<at::Tensor>& w, at::Tensor x, const auto& attention) {
    for (std::size_t layer = 0; layer < 2; ++layer) {
      x = x + attention(x.matmul(w[3 * layer]), x.matmul(w[3 * layer + 1]), x.matmul(w[3 * layer + 2]));
    }
    return x;
  };
  std::vector<at::Tensor> dense = weights();
  at::Tensor total = at::zeros({}, at::kDouble);
  for (std::size_t i = 0; i < problem.inputs.q.size(); ++i) {
    total = total + (model(dense, problem.inputs.q[i], oracle::textbook_attention) * problem.grad_outs[i]).sum();
  }
  total.backward();
  run_thread_ranks(ranks, [&](Rank rank, const Group& group) {
    const Schedule schedule = lower(problem.placement, rank);
    Engine engine(group);
    std::vector<at::Tensor> w = weights();
    c10d::Reducer reducer(w, {{5}, {4}, {3}, {2}, {1}, {0}}, group, std::vector<bool>(6, false), 1 << 20, false, false,
                          {}, 1 << 20, false, false, {});
    const at::Tensor x = oracle::pack(schedule, problem.inputs.q, 6, at::kDouble);
    const at::Tensor grad = oracle::pack(schedule, problem.grad_outs, 6, at::kDouble);
    for (int step = 0; step < 2; ++step) {
      for (at::Tensor& one : w) one.mutable_grad() = at::Tensor();
      engine.begin_step(schedule);
      reducer.prepare_for_forward();
      const auto attention = [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
        return engine.attention(q, k, v);
      };
      // The Reducer averages: each rank's share is scaled by the number of ranks.
      const at::Tensor loss = (model(w, x, attention) * grad).sum() * ranks;
      reducer.rebuild_buckets();
      reducer.prepare_for_backward({loss});
      loss.backward();
      for (std::size_t i = 0; i < w.size(); ++i) {
        EXPECT_TRUE(at::allclose(w[i].grad(), dense[i].grad(), 1e-11, 1e-11))
            << "rank " << rank << " step " << step << " parameter " << i;
      }
    }
  });
}

}  // namespace
}  // namespace zellige
