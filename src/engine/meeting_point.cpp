// SPDX-License-Identifier: Apache-2.0
#include "engine/meeting_point.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "zellige/error.h"

namespace zellige {
namespace {

/// A deadline further off would not fit the clock.
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365);

std::string called(std::size_t rank, const Call& call) {
  std::string text = "rank " + std::to_string(rank) + " calls " + call.operation;
  if (!call.agreed.empty()) text += " (" + call.agreed + ")";
  return text;
}

std::string counts_mismatch(std::size_t from, const Call& sender, std::size_t to, const Call& receiver) {
  const bool sends = !sender.send_counts.empty();
  const bool receives = !receiver.receive_counts.empty();
  const std::int64_t sent = sends ? sender.send_counts[to] : 0;
  const std::int64_t received = receives ? receiver.receive_counts[from] : 0;
  if (sends == receives && sent == received) return {};
  return "rank " + std::to_string(from) + " sends " + std::to_string(sent) + " elements to rank " + std::to_string(to) +
         ", which receives " + std::to_string(received);
}

}  // namespace

std::string first_mismatch(std::span<const Call* const> calls) {
  std::size_t first = 0;
  while (first < calls.size() && calls[first] == nullptr) ++first;
  for (std::size_t rank = first + 1; rank < calls.size(); ++rank) {
    if (calls[rank] == nullptr) continue;
    if (calls[rank]->operation != calls[first]->operation || calls[rank]->agreed != calls[first]->agreed) {
      return called(first, *calls[first]) + ", " + called(rank, *calls[rank]);
    }
  }
  if (std::find(calls.begin(), calls.end(), nullptr) != calls.end()) return {};
  for (std::size_t from = 0; from < calls.size(); ++from) {
    for (std::size_t to = 0; to < calls.size(); ++to) {
      std::string mismatch = counts_mismatch(from, *calls[from], to, *calls[to]);
      if (!mismatch.empty()) return calls[from]->operation + ": " + mismatch;
    }
  }
  return {};
}

MeetingPoint::MeetingPoint(int ranks, std::chrono::milliseconds timeout)
    : ranks_(ranks),
      timeout_(std::min(timeout, kLongest)),
      calls_(static_cast<std::size_t>(ranks), 0),
      left_(static_cast<std::size_t>(ranks), false) {}

void MeetingPoint::join(Rank rank, Call call, std::shared_ptr<Participant> participant, const Work& work) {
  const auto at = static_cast<std::size_t>(rank);
  Pending failed;
  std::exception_ptr failure;
  Pending everyone;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) {
      failed.push_back(std::move(participant));
    } else {
      const std::uint64_t number = calls_[at]++;
      Meeting& meeting = meetings_[number];
      if (meeting.participants.empty()) {
        meeting.calls.resize(static_cast<std::size_t>(ranks_));
        meeting.participants.resize(static_cast<std::size_t>(ranks_));
        meeting.deadline = Clock::now() + timeout_;
      }
      meeting.calls[at] = std::move(call);
      meeting.participants[at] = std::move(participant);
      ++meeting.arrived;

      std::vector<const Call*> calls(static_cast<std::size_t>(ranks_), nullptr);
      for (std::size_t r = 0; r < calls.size(); ++r) {
        if (meeting.participants[r]) calls[r] = &meeting.calls[r];
      }
      const std::string mismatch = first_mismatch(calls);
      const std::string gone = who_left(number, meeting);
      if (!mismatch.empty()) {
        failed = set_failure("collective " + std::to_string(number) + " differs between ranks: " + mismatch);
      } else if (!gone.empty()) {
        failed = set_failure(gone);
      } else if (meeting.arrived == ranks_) {
        everyone = std::move(meeting.participants);
        meetings_.erase(number);
      }
    }
    failure = failure_;
  }
  for (const auto& one : failed) one->finish(failure);
  if (everyone.empty()) return;

  // Every other rank waits in this collective: nobody touches a buffer of it but this thread, without the lock.
  std::optional<std::string> broken;
  try {
    work(everyone);
  } catch (const std::exception& error) {
    broken = error.what();
  } catch (...) {
    broken = "it threw something that is no exception";
  }
  if (broken) {
    fail("a collective failed: " + *broken);
    const std::lock_guard lock(mutex_);
    failure = failure_;
  }
  for (const auto& one : everyone) one->finish(broken ? failure : nullptr);
}

void MeetingPoint::leave(Rank rank) {
  Pending failed;
  std::exception_ptr failure;
  {
    const std::lock_guard lock(mutex_);
    left_[static_cast<std::size_t>(rank)] = true;
    for (const auto& [number, meeting] : meetings_) {
      const std::string gone = who_left(number, meeting);
      if (gone.empty()) continue;
      failed = set_failure(gone);
      break;
    }
    failure = failure_;
    changed_.notify_all();
  }
  for (const auto& one : failed) one->finish(failure);
}

void MeetingPoint::fail(const std::string& message) {
  Pending failed;
  std::exception_ptr failure;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failed = set_failure(message);
    failure = failure_;
  }
  for (const auto& one : failed) one->finish(failure);
}

void MeetingPoint::wait_for_all() {
  std::unique_lock lock(mutex_);
  while (std::find(left_.begin(), left_.end(), false) != left_.end()) {
    // A meeting that opens later ends later: nothing can run out before the oldest one's deadline, or before a whole
    // time limit has passed when none is open.
    const Clock::time_point now = Clock::now();
    const Clock::time_point next = meetings_.empty() ? now + timeout_ : meetings_.begin()->second.deadline;
    if (!meetings_.empty() && next <= now) {
      const auto& [number, meeting] = *meetings_.begin();
      const Pending failed = set_failure(describe(number, meeting) + ": " + missing_ranks(number, meeting) +
                                         " did not join within " + std::to_string(timeout_.count()) + " ms");
      const std::exception_ptr failure = failure_;
      lock.unlock();
      for (const auto& one : failed) one->finish(failure);
      lock.lock();
    } else {
      changed_.wait_until(lock, next);
    }
  }
}

std::uint64_t MeetingPoint::calls_of(Rank rank) const {
  const std::lock_guard lock(mutex_);
  return calls_[static_cast<std::size_t>(rank)];
}

std::string MeetingPoint::describe(std::uint64_t number, const Meeting& meeting) const {
  std::size_t first = 0;
  while (!meeting.participants[first]) ++first;
  return "collective " + std::to_string(number) + ", in which " + called(first, meeting.calls[first]);
}

std::string MeetingPoint::missing_ranks(std::uint64_t number, const Meeting& meeting) const {
  std::string text;
  for (std::size_t r = 0; r < meeting.participants.size(); ++r) {
    if (meeting.participants[r] || calls_[r] > number) continue;
    text += (text.empty() ? "rank " : ", rank ") + std::to_string(r) + " (" + std::to_string(calls_[r]) + " calls)";
  }
  return text;
}

std::string MeetingPoint::who_left(std::uint64_t number, const Meeting& meeting) const {
  for (std::size_t r = 0; r < left_.size(); ++r) {
    if (!left_[r] || meeting.participants[r]) continue;
    return describe(number, meeting) + ": rank " + std::to_string(r) + " ended after " + std::to_string(calls_[r]) +
           " collectives";
  }
  return {};
}

MeetingPoint::Pending MeetingPoint::set_failure(const std::string& message) {
  failure_ = std::make_exception_ptr(Error(Code::communication, "thread_ranks", message));
  Pending all;
  for (auto& [number, meeting] : meetings_) {
    for (auto& one : meeting.participants) {
      if (one) all.push_back(std::move(one));
    }
  }
  meetings_.clear();
  changed_.notify_all();
  return all;
}

}  // namespace zellige
