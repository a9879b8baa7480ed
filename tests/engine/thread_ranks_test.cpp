// SPDX-License-Identifier: Apache-2.0
#include "zellige/thread_ranks.h"

#include <atomic>
#include <thread>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "engine/thread_backend.h"
#include "engine/torch.h"
#include "zellige/error.h"

namespace zellige {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
using Tensors = std::vector<at::Tensor>;
using testing::AllOf;
using testing::HasSubstr;

/// Runs ranks and returns the error that comes out: its code and text.
std::pair<Code, std::string> failure_of(int ranks, const std::function<void(Rank, Group)>& body,
                                        const ThreadRankOptions& options = {}) {
  try {
    run_thread_ranks(ranks, body, options);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {Code::ok, ""};
}

at::Tensor iota(std::int64_t begin, std::int64_t count) { return at::arange(begin, begin + count, at::kDouble); }

TEST(ThreadRanks, EachRankHasItsOwnThreadAndHandle) {
  std::vector<std::thread::id> threads(3);
  std::vector<int> sizes(3);
  run_thread_ranks(3, [&](Rank rank, const Group& group) {
    threads[static_cast<std::size_t>(rank)] = std::this_thread::get_id();
    sizes[static_cast<std::size_t>(rank)] = group->getRank() == rank ? group->getSize() : -1;
  });
  EXPECT_THAT(sizes, testing::Each(3));
  EXPECT_NE(threads[0], threads[1]);
  EXPECT_NE(threads[1], threads[2]);
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(ThreadRanks, RanksComputeWithTheirOwnNumberOfThreads) {
  at::set_num_threads(1);
  std::vector<int> seen(2);
  run_thread_ranks(2, [&](Rank rank, const Group&) { seen[static_cast<std::size_t>(rank)] = at::get_num_threads(); },
                   {.timeout = std::chrono::seconds(60), .threads_per_rank = 2});
  EXPECT_THAT(seen, testing::Each(2));
  EXPECT_EQ(at::get_num_threads(), 1) << "the caller's number is left as it was";
}

TEST(ThreadRanks, AllToAllTakesUnevenSplitsAndZeroCounts) {
  constexpr int kRanks = 3;
  // counts[from][to]; rank 1 sends nothing, rank 2 receives nothing but from itself.
  const std::vector<std::vector<std::int64_t>> counts{{2, 3, 0}, {0, 0, 0}, {1, 4, 2}};
  run_thread_ranks(kRanks, [&](Rank rank, const Group& group) {
    const auto me = static_cast<std::size_t>(rank);
    std::vector<std::int64_t> out_counts = counts[me];
    std::vector<std::int64_t> in_counts;
    std::vector<double> expected;
    at::Tensor send = at::empty({0}, at::kDouble);
    for (std::size_t peer = 0; peer < kRanks; ++peer) {
      in_counts.push_back(counts[peer][me]);
      send = at::cat({send, iota(static_cast<std::int64_t>(100 * me + 10 * peer), counts[me][peer])});
      for (std::int64_t i = 0; i < counts[peer][me]; ++i) {
        expected.push_back(static_cast<double>(100 * peer + 10 * me) + static_cast<double>(i));
      }
    }
    at::Tensor receive = at::full({static_cast<std::int64_t>(expected.size())}, -1.0, at::kDouble);
    group->alltoall_base(receive, send, in_counts, out_counts)->wait();
    EXPECT_TRUE(at::equal(receive, at::tensor(expected, at::kDouble))) << "rank " << rank << "\n" << receive;
  });
}

TEST(ThreadRanks, AllToAllSplitsRowsEvenlyWithoutCounts) {
  run_thread_ranks(2, [&](Rank rank, const Group& group) {
    at::Tensor send = at::full({4, 3}, rank, at::kFloat);
    at::Tensor receive = at::empty({4, 3}, at::kFloat);
    std::vector<std::int64_t> none;
    group->alltoall_base(receive, send, none, none)->wait();
    EXPECT_TRUE(at::equal(receive.select(1, 0), at::tensor({0.0f, 0.0f, 1.0f, 1.0f})));
  });
}

TEST(ThreadRanks, AllToAllOfLists) {
  run_thread_ranks(3, [&](Rank rank, const Group& group) {
    Tensors send, receive;
    for (Rank peer = 0; peer < 3; ++peer) {
      send.push_back(at::full({rank + peer, 2}, 10 * rank + peer, at::kLong));
      receive.push_back(at::empty({rank + peer, 2}, at::kLong));
    }
    group->alltoall(receive, send)->wait();
    for (Rank peer = 0; peer < 3; ++peer) {
      EXPECT_TRUE(
          at::equal(receive[static_cast<std::size_t>(peer)], at::full({rank + peer, 2}, 10 * peer + rank, at::kLong)));
    }
  });
}

TEST(ThreadRanks, AllReduceKnowsSumAverageMinMaxProduct) {
  using Op = c10d::ReduceOp;
  const std::vector<std::pair<Op::RedOpType, double>> cases{
      {Op::SUM, 2.0 + 3.0 + 4.0}, {Op::AVG, 3.0}, {Op::MIN, 2.0}, {Op::MAX, 4.0}, {Op::PRODUCT, 24.0}};
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16, at::kLong}) {
    run_thread_ranks(3, [&](Rank rank, const Group& group) {
      for (const auto& [op, expected] : cases) {
        Tensors tensors{at::full({2, 2}, rank + 2, type)};
        c10d::AllreduceOptions options;
        options.reduceOp = op;
        group->allreduce(tensors, options)->wait();
        EXPECT_TRUE(at::equal(tensors[0], at::full({2, 2}, expected, type))) << toString(type) << " op " << int(op);
      }
    });
  }
}

TEST(ThreadRanks, Bf16IsSummedInWiderNumbers) {
  // 256 + 1 is 256 in bf16, so a running sum in bf16 would stay there.
  run_thread_ranks(5, [&](Rank rank, const Group& group) {
    Tensors tensors{at::full({1}, rank == 0 ? 256 : 1, at::kBFloat16)};
    group->allreduce(tensors)->wait();
    EXPECT_EQ(tensors[0].item<float>(), 260.0f);
  });
}

TEST(ThreadRanks, BroadcastGatherScatterReduceBarrier) {
  run_thread_ranks(3, [&](Rank rank, const Group& group) {
    Tensors tensors{at::full({2}, rank, at::kFloat), at::full({1}, 10 * rank, at::kLong)};
    c10d::BroadcastOptions from_two;
    from_two.rootRank = 2;
    group->broadcast(tensors, from_two)->wait();
    EXPECT_EQ(tensors[0][1].item<float>(), 2.0f);
    EXPECT_EQ(tensors[1].item<std::int64_t>(), 20);

    Tensors mine{at::full({2}, rank, at::kFloat)};
    std::vector<Tensors> all{{at::empty({2}), at::empty({2}), at::empty({2})}};
    group->allgather(all, mine)->wait();
    at::Tensor flat = at::empty({6});
    group->_allgather_base(flat, mine[0])->wait();
    EXPECT_TRUE(at::equal(at::cat(all[0]), at::tensor({0.0f, 0.0f, 1.0f, 1.0f, 2.0f, 2.0f})));
    EXPECT_TRUE(at::equal(flat, at::cat(all[0])));

    at::Tensor input = at::arange(6, at::kFloat) + static_cast<double>(rank);
    at::Tensor part = at::empty({2});
    group->_reduce_scatter_base(part, input)->wait();
    EXPECT_TRUE(at::equal(part, at::tensor({6.0f * rank + 3.0f, 6.0f * rank + 6.0f})));
    Tensors parts{at::empty({2})};
    std::vector<Tensors> inputs{{input.narrow(0, 0, 2), input.narrow(0, 2, 2), input.narrow(0, 4, 2)}};
    group->reduce_scatter(parts, inputs)->wait();
    EXPECT_TRUE(at::equal(parts[0], part));

    Tensors sum{at::full({1}, 1 + rank, at::kFloat)};
    c10d::ReduceOptions to_one;
    to_one.rootRank = 1;
    group->reduce(sum, to_one)->wait();
    EXPECT_EQ(sum[0].item<float>(), rank == 1 ? 6.0f : 1.0f + rank);
    group->barrier()->wait();
  });
}

TEST(ThreadRanks, WorkIsAsynchronousAndHasAFuture) {
  run_thread_ranks(2, [&](Rank rank, const Group& group) {
    Tensors first{at::full({1}, 1.0 + rank)};
    Tensors second{at::full({1}, 10.0 + rank)};
    const auto work = group->allreduce(first);
    const auto future = group->allreduce(second)->getFuture();
    future->wait();
    EXPECT_EQ(future->value().toTensorVector().at(0).item<float>(), 21.0f);
    EXPECT_TRUE(work->wait());
    EXPECT_TRUE(work->isCompleted() && work->isSuccess());
    EXPECT_EQ(work->result().at(0).item<float>(), 3.0f);
  });
}

TEST(ThreadRanks, CollectivesLeaveNoTraceInAGraph) {
  run_thread_ranks(2, [&](Rank, const Group& group) {
    Tensors parameter{at::ones({2}).set_requires_grad(true)};
    const auto version = parameter[0]._version();
    group->broadcast(parameter)->wait();
    EXPECT_TRUE(parameter[0].is_leaf() && parameter[0].requires_grad());
    EXPECT_EQ(parameter[0]._version(), version);
  });
}

TEST(ThreadRanks, AMismatchIsTheSameErrorOnAllRanks) {
  std::vector<std::string> texts(3);
  const auto [code, text] = failure_of(3, [&](Rank rank, const Group& group) {
    try {
      Tensors tensors{at::ones({rank == 2 ? 4 : 3})};
      group->barrier()->wait();
      group->allreduce(tensors)->wait();
    } catch (const Error& error) {
      texts[static_cast<std::size_t>(rank)] = error.what();
      throw;
    }
  });
  EXPECT_EQ(code, Code::communication);
  // Which of the equal ranks is named depends on who came first.
  EXPECT_THAT(text,
              AllOf(HasSubstr("collective 1 differs between ranks"), HasSubstr("calls allreduce (sum of Float[3])"),
                    HasSubstr("rank 2 calls allreduce (sum of Float[4])")));
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[1], texts[2]);
  EXPECT_THAT(texts[0], HasSubstr("collective 1 differs between ranks"));
}

TEST(ThreadRanks, CountsThatDoNotMatchAreNamed) {
  const auto [code, text] = failure_of(2, [&](Rank rank, const Group& group) {
    std::vector<std::int64_t> send{1, 2};
    std::vector<std::int64_t> receive{1, rank == 0 ? 2 : 3};
    if (rank == 1) receive = {2, 3};
    at::Tensor out = at::empty({receive[0] + receive[1]});
    at::Tensor in = at::ones({3});
    group->alltoall_base(out, in, receive, send)->wait();
  });
  EXPECT_EQ(code, Code::communication);
  EXPECT_THAT(text, HasSubstr("alltoall_base: rank 1 sends 1 elements to rank 0, which receives 2"));
}

TEST(ThreadRanks, AnExceptionEndsAllRanksAndKeepsItsCodeTextAndRank) {
  std::atomic<int> ended = 0;
  const auto [code, text] = failure_of(4, [&](Rank rank, const Group& group) {
    if (rank == 2) throw Error(Code::infeasible, "test", "no room");
    try {
      group->barrier()->wait();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::communication);
      EXPECT_THAT(error.what(), HasSubstr("rank 2 failed: [test] no room"));
      ++ended;
      throw;
    }
  });
  EXPECT_EQ(code, Code::infeasible);
  EXPECT_THAT(text, HasSubstr("rank 2 failed: [test] no room"));
  EXPECT_EQ(ended, 3);
}

TEST(ThreadRanks, ForeignExceptionsAreNestedInOurs) {
  try {
    run_thread_ranks(2, [](Rank rank, const Group& group) {
      if (rank == 0) throw std::out_of_range("shelf 9");
      group->barrier()->wait();
    });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::internal);
    EXPECT_THAT(error.what(), HasSubstr("rank 0 failed: shelf 9"));
    EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
  }
}

TEST(ThreadRanks, ARankThatNeverComesFailsWithinTheTimeLimit) {
  const ThreadRankOptions options{.timeout = std::chrono::milliseconds(100), .threads_per_rank = 1};
  const auto begin = std::chrono::steady_clock::now();
  const auto [code, text] = failure_of(
      2,
      [&](Rank rank, const Group& group) {
        Tensors tensors{at::ones({1})};
        // Rank 1 works on, far beyond the limit, until it hears of the failure.
        if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(400));
        group->allreduce(tensors)->getFuture()->waitAndThrow();
      },
      options);
  EXPECT_EQ(code, Code::communication);
  EXPECT_THAT(text, HasSubstr("rank 1 (0 calls) did not join within 100 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(ThreadRanks, ARankThatEndsEarlyFailsTheOthersAtOnce) {
  const auto [code, text] = failure_of(2, [&](Rank rank, const Group& group) {
    if (rank == 0) group->barrier()->wait();
  });
  EXPECT_EQ(code, Code::communication);
  EXPECT_THAT(text, HasSubstr("rank 1 ended after 0 collectives"));
}

TEST(ThreadRanks, TensorsOffTheCpuAreRefused) {
  run_thread_ranks(1, [&](Rank rank, const Group&) {
    ThreadBackend backend(std::make_shared<MeetingPoint>(1, std::chrono::milliseconds(1000)), rank);
    Tensors elsewhere{at::empty({2}, at::TensorOptions().device(at::kMeta))};
    Tensors here{at::ones({2})};
    EXPECT_NO_THROW(backend.allreduce(here, {})->wait());
    try {
      backend.allreduce(elsewhere, {});
      FAIL() << "taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::input);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("on meta"), HasSubstr("dense CPU tensors only")));
    }
  });
}

TEST(ThreadRanks, WrongSplitsAndArgumentsAreRefusedBeforeAnythingMoves) {
  run_thread_ranks(1, [&](Rank, const Group& group) {
    at::Tensor tensor = at::ones({3});
    std::vector<std::int64_t> right{3}, wrong{2}, negative{-3};
    EXPECT_NO_THROW(group->alltoall_base(tensor, tensor, right, right)->wait());
    EXPECT_THROW(group->alltoall_base(tensor, tensor, right, wrong), Error);
    EXPECT_THROW(group->alltoall_base(tensor, tensor, negative, right), Error);
    Tensors tensors{tensor};
    c10d::AllreduceOptions options;
    options.reduceOp = c10d::ReduceOp::BXOR;
    EXPECT_THROW(group->allreduce(tensors, options), Error);
    EXPECT_NO_THROW(group->barrier()->wait());
  });
  const auto nothing = [](Rank, const Group&) {};
  EXPECT_EQ(failure_of(0, nothing).first, Code::input);
  EXPECT_EQ(failure_of(1, nothing, {.timeout = std::chrono::milliseconds(0)}).first, Code::input);
  EXPECT_EQ(failure_of(1, nothing, {.timeout = std::chrono::milliseconds(5), .threads_per_rank = 0}).first,
            Code::input);
}

/// Gradient synchronisation as a trainer does it: c10d's own bucketed all-reduce inside backward. Rank 1 holds nothing.
TEST(ThreadRanks, ReducerAveragesGradients) {
  constexpr int kRanks = 3;
  const std::vector<std::int64_t> rows{4, 0, 3};
  const auto weights = [] { return Tensors{at::arange(6, at::kDouble).view({2, 3}), at::ones({3, 2}, at::kDouble)}; };
  const auto input = [&](std::size_t rank, int step) {
    return at::arange(2 * rows[rank], at::kDouble).view({rows[rank], 2}) * (1.0 + static_cast<double>(rank) + step);
  };
  const auto loss = [](const Tensors& w, const at::Tensor& x) { return x.matmul(w[0]).tanh().matmul(w[1]).sum(); };
  std::vector<Tensors> expected;
  for (int step = 0; step < 3; ++step) {
    Tensors w = weights();
    for (at::Tensor& one : w) one.set_requires_grad(true);
    at::Tensor total = at::zeros({}, at::kDouble);
    for (std::size_t rank = 0; rank < kRanks; ++rank) total = total + loss(w, input(rank, step)) / kRanks;
    total.backward();
    expected.push_back({w[0].grad(), w[1].grad()});
  }
  run_thread_ranks(kRanks, [&](Rank rank, const Group& group) {
    Tensors w = weights();
    for (at::Tensor& one : w) one.set_requires_grad(true);
    // One bucket a parameter: several all-reduces under way.
    c10d::Reducer reducer(w, {{0}, {1}}, group, {false, false}, 1 << 20, false, false, {}, 1 << 20, false, false, {});
    for (int step = 0; step < 3; ++step) {
      for (at::Tensor& one : w) one.mutable_grad() = at::Tensor();
      reducer.prepare_for_forward();
      const at::Tensor value = loss(w, input(static_cast<std::size_t>(rank), step));
      reducer.rebuild_buckets();
      reducer.prepare_for_backward({value});
      value.backward();
      for (std::size_t i = 0; i < w.size(); ++i) {
        EXPECT_TRUE(at::allclose(w[i].grad(), expected[static_cast<std::size_t>(step)][i], 1e-12, 1e-12))
            << "rank " << rank << " step " << step << " parameter " << i;
      }
    }
  });
}

}  // namespace
}  // namespace zellige
