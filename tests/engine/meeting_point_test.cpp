// SPDX-License-Identifier: Apache-2.0
#include "engine/meeting_point.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zellige/error.h"

namespace zellige {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

/// Keeps a number, and how its collective ended.
class Seat final : public Participant {
 public:
  explicit Seat(std::int64_t number_in = 0) : number(number_in) {}
  void finish(std::exception_ptr failure) noexcept override {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    done_ = true;
    changed_.notify_all();
  }
  /// Waits, and returns the error's text; empty on success.
  std::string wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
    if (!failure_) return {};
    try {
      std::rethrow_exception(failure_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::communication);
      return error.what();
    }
  }
  bool is_done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }

  std::int64_t number;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::exception_ptr failure_;
};

/// Every number becomes the sum of all.
void add_up(std::span<const std::shared_ptr<Participant>> everyone) {
  std::int64_t sum = 0;
  for (const auto& one : everyone) sum += static_cast<Seat&>(*one).number;
  for (const auto& one : everyone) static_cast<Seat&>(*one).number = sum;
}

std::shared_ptr<Seat> join(MeetingPoint& point, Rank rank, const Call& call, std::int64_t number = 0) {
  auto seat = std::make_shared<Seat>(number);
  point.join(rank, call, seat, add_up);
  return seat;
}

std::string mismatch_of(const std::vector<Call>& calls) {
  std::vector<const Call*> all;
  for (const Call& call : calls) all.push_back(&call);
  return first_mismatch(all);
}

TEST(FirstMismatch, IsEmptyWhereCallsAgree) {
  EXPECT_THAT(mismatch_of({{"allreduce", "sum of Float[3]"}, {"allreduce", "sum of Float[3]"}}), IsEmpty());
  EXPECT_THAT(mismatch_of({{"alltoall", "Float", {1, 2}, {1, 5}}, {"alltoall", "Float", {5, 0}, {2, 0}}}), IsEmpty());
}

TEST(FirstMismatch, NamesBothRanksAndTheirCalls) {
  EXPECT_EQ(mismatch_of({{"allreduce", "x"}, {"allreduce", "x"}, {"broadcast", "x"}}),
            "rank 0 calls allreduce (x), rank 2 calls broadcast (x)");
  EXPECT_EQ(mismatch_of({{"allreduce", "sum of Float[3]"}, {"allreduce", "sum of Float[4]"}}),
            "rank 0 calls allreduce (sum of Float[3]), rank 1 calls allreduce (sum of Float[4])");
}

TEST(FirstMismatch, ComparesWhatOneSendsWithWhatTheOtherExpects) {
  EXPECT_EQ(mismatch_of({{"alltoall", "", {1, 2}, {1, 5}}, {"alltoall", "", {5, 0}, {3, 0}}}),
            "alltoall: rank 0 sends 2 elements to rank 1, which receives 3");
}

TEST(FirstMismatch, LeavesOutRanksThatHaveNotCalled) {
  const Call early{"alltoall", "", {1, 2, 0}, {1, 5, 0}};
  const Call late{"alltoall", "", {9, 9, 9}, {9, 9, 9}};
  const Call other{"barrier", ""};
  const std::vector<const Call*> counts_wait{&early, nullptr, &late};
  EXPECT_THAT(first_mismatch(counts_wait), IsEmpty());
  const std::vector<const Call*> operations_do_not{nullptr, &early, &other};
  EXPECT_EQ(first_mismatch(operations_do_not), "rank 1 calls alltoall, rank 2 calls barrier");
}

TEST(MeetingPoint, TheLastOneWorksForAll) {
  MeetingPoint point(3, milliseconds(10'000));
  const auto first = join(point, 0, {"sum", ""}, 1);
  const auto second = join(point, 2, {"sum", ""}, 2);
  EXPECT_FALSE(first->is_done());
  const auto third = join(point, 1, {"sum", ""}, 4);
  for (const auto& seat : {first, second, third}) {
    EXPECT_THAT(seat->wait(), IsEmpty());
    EXPECT_EQ(seat->number, 7);
  }
}

TEST(MeetingPoint, CallsOfOneRankMayRunAheadOfTheOthers) {
  MeetingPoint point(2, milliseconds(10'000));
  std::vector<std::shared_ptr<Seat>> ahead, behind;
  for (int i = 0; i < 5; ++i) ahead.push_back(join(point, 0, {"sum", std::to_string(i)}, i));
  for (int i = 0; i < 5; ++i) behind.push_back(join(point, 1, {"sum", std::to_string(i)}, 10));
  for (std::size_t i = 0; i < ahead.size(); ++i) {
    EXPECT_THAT(ahead[i]->wait(), IsEmpty());
    EXPECT_EQ(ahead[i]->number, static_cast<std::int64_t>(10 + i));
    EXPECT_EQ(behind[i]->number, ahead[i]->number);
  }
}

TEST(MeetingPoint, AMismatchFailsAllPendingAndLaterCallsOfAllRanks) {
  MeetingPoint point(3, milliseconds(10'000));
  const auto good = join(point, 0, {"allreduce", ""});
  const auto ahead = join(point, 0, {"barrier", ""});
  const auto bad = join(point, 1, {"broadcast", ""});
  const auto late = join(point, 2, {"allreduce", ""});
  for (const auto& seat : {good, ahead, bad, late}) {
    EXPECT_THAT(seat->wait(), HasSubstr("collective 0 differs between ranks: rank 0 calls allreduce, rank 1 calls "
                                        "broadcast"));
  }
}

TEST(MeetingPoint, ARankThatLeavesFailsThoseThatWaitForIt) {
  MeetingPoint point(2, milliseconds(10'000));
  EXPECT_THAT((join(point, 0, {"sum", ""}), join(point, 1, {"sum", ""}))->wait(), IsEmpty());
  const auto waiting = join(point, 0, {"barrier", ""});
  point.leave(1);
  EXPECT_THAT(waiting->wait(),
              HasSubstr("collective 1, in which rank 0 calls barrier: rank 1 ended after 1 collectives"));
}

TEST(MeetingPoint, ARankThatHasLeftFailsThoseThatCallLater) {
  MeetingPoint point(2, milliseconds(10'000));
  point.leave(1);
  EXPECT_THAT(join(point, 0, {"barrier", ""})->wait(), HasSubstr("rank 1 ended after 0 collectives"));
}

TEST(MeetingPoint, TheFirstFailureStays) {
  MeetingPoint point(2, milliseconds(10'000));
  point.fail("rank 1 failed: out of chairs");
  point.fail("something else");
  EXPECT_THAT(join(point, 0, {"barrier", ""})->wait(), HasSubstr("out of chairs"));
}

TEST(MeetingPoint, ATimeLimitNamesWhoDidNotJoin) {
  MeetingPoint point(3, milliseconds(50));
  const auto waiting = join(point, 1, {"allreduce", "sum of Float[3]"});
  std::thread watch([&] { point.wait_for_all(); });
  EXPECT_THAT(waiting->wait(), AllOf(HasSubstr("collective 0, in which rank 1 calls allreduce (sum of Float[3])"),
                                     HasSubstr("rank 0 (0 calls), rank 2 (0 calls) did not join within 50 ms")));
  for (const Rank rank : {0, 1, 2}) point.leave(rank);
  watch.join();
}

TEST(MeetingPoint, AFailureInTheWorkReachesAllRanks) {
  MeetingPoint point(2, milliseconds(10'000));
  const auto broken = [](std::span<const std::shared_ptr<Participant>>) { throw std::runtime_error("no memory"); };
  const auto first = std::make_shared<Seat>();
  const auto second = std::make_shared<Seat>();
  point.join(0, {"sum", ""}, first, broken);
  point.join(1, {"sum", ""}, second, broken);
  EXPECT_THAT(first->wait(), HasSubstr("no memory"));
  EXPECT_THAT(second->wait(), HasSubstr("no memory"));
}

TEST(MeetingPoint, ManyThreadsMeetManyTimes) {
  constexpr int kRanks = 6;
  constexpr int kCalls = 500;
  MeetingPoint point(kRanks, milliseconds(60'000));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      for (int i = 0; i < kCalls; ++i) {
        // Two under way at a time, waited for in reverse.
        const auto seat = join(point, rank, {"sum", ""}, rank + i);
        const auto next = join(point, rank, {"sum", "next"}, 1);
        if (!next->wait().empty() || next->number != kRanks) ++wrong;
        if (!seat->wait().empty() || seat->number != kRanks * i + kRanks * (kRanks - 1) / 2) ++wrong;
      }
      point.leave(rank);
    });
  }
  point.wait_for_all();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(point.calls_of(0), 2u * kCalls);
}

}  // namespace
}  // namespace zellige
