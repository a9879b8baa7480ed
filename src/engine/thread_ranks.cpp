// SPDX-License-Identifier: Apache-2.0
#include "zellige/thread_ranks.h"

#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include "engine/meeting_point.h"
#include "engine/thread_backend.h"
#include "engine/torch.h"
#include "zellige/error.h"

namespace zellige {
namespace {

/// c10d's own barrier goes through a tensor that all threads of the process share, unprotected: go past it.
class ThreadProcessGroup final : public c10d::ProcessGroup {
 public:
  using ProcessGroup::ProcessGroup;
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override {
    return getDefaultBackend()->barrier(options);
  }
};

c10::intrusive_ptr<c10d::ProcessGroup> make_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                  const std::shared_ptr<MeetingPoint>& point, Rank rank) {
  auto group = c10::make_intrusive<ThreadProcessGroup>(store, rank, point->ranks());
  const c10::intrusive_ptr<c10d::Backend> backend = c10::make_intrusive<ThreadBackend>(point, rank);
  // Registered for GPU tensors too, so that the backend itself says why it does not take them.
  for (const auto device : {c10::DeviceType::CPU, c10::DeviceType::CUDA}) {
    group->setBackend(device, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  }
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  return group;
}

/// The first exception that left a rank's body.
class FirstExit {
 public:
  void record(Rank rank, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    rank_ = rank;
    error_ = std::move(error);
  }

  /// Throws it with its rank in the text; the exception itself is nested in what is thrown.
  void rethrow() const {
    if (!error_) return;
    const std::string who = "rank " + std::to_string(rank_) + " failed: ";
    try {
      std::rethrow_exception(error_);
    } catch (const Error& error) {
      std::throw_with_nested(Error(error.code(), "thread_ranks", who + error.what()));
    } catch (const std::exception& error) {
      std::throw_with_nested(Error(Code::internal, "thread_ranks", who + error.what()));
    } catch (...) {
      std::throw_with_nested(Error(Code::internal, "thread_ranks", who + "it threw something that is no exception"));
    }
  }

 private:
  std::mutex mutex_;
  Rank rank_ = 0;
  std::exception_ptr error_;
};

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "it threw something that is no exception";
  }
}

}  // namespace

void run_thread_ranks(int num_ranks, const std::function<void(Rank, c10::intrusive_ptr<c10d::ProcessGroup>)>& body,
                      const ThreadRankOptions& options) {
  const auto require_positive = [](const char* what, std::int64_t value) {
    if (value >= 1) return;
    throw Error(Code::input, "thread_ranks", std::string(what) + " is " + std::to_string(value) + "; use at least 1");
  };
  require_positive("num_ranks", num_ranks);
  require_positive("threads_per_rank", options.threads_per_rank);
  require_positive("timeout in milliseconds", options.timeout.count());

  const auto point = std::make_shared<MeetingPoint>(num_ranks, options.timeout);
  const c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  FirstExit first;
  const auto run_rank = [&](Rank rank) {
    try {
      at::set_num_threads(options.threads_per_rank);
      body(rank, make_group(store, point, rank));
    } catch (...) {
      const std::exception_ptr error = std::current_exception();
      first.record(rank, error);
      point->fail("rank " + std::to_string(rank) + " failed: " + text_of(error));
    }
    point->leave(rank);
  };

  const int threads_before = at::get_num_threads();  // torch keeps one number a process for threads that start later
  std::vector<std::thread> threads;
  try {
    for (Rank rank = 0; rank < num_ranks; ++rank) threads.emplace_back(run_rank, rank);
  } catch (...) {
    const auto started = static_cast<Rank>(threads.size());
    first.record(started, std::current_exception());
    point->fail("the thread of rank " + std::to_string(started) + " did not start");
    for (Rank rank = started; rank < num_ranks; ++rank) point->leave(rank);
  }
  point->wait_for_all();
  for (std::thread& thread : threads) thread.join();
  at::set_num_threads(threads_before);
  first.rethrow();
}

}  // namespace zellige
