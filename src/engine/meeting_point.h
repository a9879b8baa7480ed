// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "zellige/units.h"

namespace zellige {

/// What one rank says of a collective that it calls: all that the ranks must agree on.
struct Call {
  std::string operation;                     ///< e.g. "alltoall_base"
  std::string agreed;                        ///< what must be the same on all ranks, e.g. "sum of float32[12]"
  std::vector<std::int64_t> send_counts;     ///< [ranks] elements to each rank, or empty
  std::vector<std::int64_t> receive_counts;  ///< [ranks] elements from each rank, or empty
};

/// Says where the calls of ranks 0, 1, ... first disagree, naming two ranks; empty when they agree. Ranks that have not
/// called yet are null; counts are compared once all have.
std::string first_mismatch(std::span<const Call* const> calls);

/// One rank's side of a collective: its buffers, and how it hears that the collective is done.
class Participant {
 public:
  virtual ~Participant() = default;
  /// Called once, from any rank's thread. @param failure  null when the collective succeeded
  virtual void finish(std::exception_ptr failure) noexcept = 0;
};

/// Where the ranks of one process meet for collectives: the n-th call of one rank meets the n-th of all others. The
/// rank that comes last does the work for all while the others' buffers lie still. The first failure (a mismatch, a
/// rank that ends or throws, a time limit) fails all pending and all later collectives of every rank with the same
/// error. Threads: join, leave and fail from any thread; one mutex, held while no work is done.
class MeetingPoint {
 public:
  /// What the last one runs. @param participants  [ranks]; all of them wait
  using Work = std::function<void(std::span<const std::shared_ptr<Participant>>)>;

  MeetingPoint(int ranks, std::chrono::milliseconds timeout);

  /// Joins this rank's next collective; returns at once unless this rank is the last to come. The participant's finish
  /// is called when the collective is done, possibly before join returns.
  void join(Rank rank, Call call, std::shared_ptr<Participant> participant, const Work& work);

  /// The rank makes no more calls. Fails the others when they wait for it.
  void leave(Rank rank);

  /// Fails all pending and later collectives, unless something failed before. Error: Code::communication.
  void fail(const std::string& message);

  /// Returns when every rank has left. Meanwhile fails collectives that some rank did not join in time.
  void wait_for_all();

  std::uint64_t calls_of(Rank rank) const;
  int ranks() const { return ranks_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Meeting {
    std::vector<Call> calls;
    std::vector<std::shared_ptr<Participant>> participants;  ///< null until that rank comes
    int arrived = 0;
    Clock::time_point deadline;
  };
  using Pending = std::vector<std::shared_ptr<Participant>>;

  std::string describe(std::uint64_t number, const Meeting& meeting) const;
  std::string missing_ranks(std::uint64_t number, const Meeting& meeting) const;
  std::string who_left(std::uint64_t number, const Meeting& meeting) const;
  Pending set_failure(const std::string& message);

  const int ranks_;
  const std::chrono::milliseconds timeout_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;            ///< a rank left, or something failed
  std::map<std::uint64_t, Meeting> meetings_;  ///< by number, from 0; the first is the oldest
  std::vector<std::uint64_t> calls_;           ///< [ranks] collectives called so far
  std::vector<bool> left_;                     ///< [ranks]
  std::exception_ptr failure_;
};

}  // namespace zellige
