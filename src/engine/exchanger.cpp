// SPDX-License-Identifier: Apache-2.0
#include "engine/exchanger.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "zellige/error.h"

namespace zellige {
namespace {

/// Adds the time until it goes out of scope.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

at::Tensor slice_of(const at::Tensor& buffer, const SliceCopy& copy, int head_dim) {
  const std::int64_t elements = copy.rows.count * copy.heads.count * head_dim;
  return buffer.narrow(0, copy.offset, elements).view({copy.rows.count, copy.heads.count, head_dim});
}

void fit(at::Tensor& buffer, std::int64_t elements, const at::TensorOptions& options) {
  const bool fits = buffer.defined() && buffer.numel() >= elements && buffer.device() == options.device() &&
                    buffer.dtype() == options.dtype();
  if (!fits) buffer = at::empty({elements}, options);
}

}  // namespace

Exchanger::Exchanger(c10::intrusive_ptr<c10d::ProcessGroup> group) : group_(std::move(group)) {}

void Exchanger::prepare(const StepPlan& plan, const at::TensorOptions& options, Messages& messages) {
  messages_ = &messages;
  for (const Phase phase : {Phase::a, Phase::ring, Phase::b}) {
    const BufferNeed need = plan.need(phase);
    fit(channel(phase).send, need.send, options);
    fit(channel(phase).receive, need.receive, options);
  }
}

void Exchanger::require_usable() const {
  if (!broken_) return;
  throw Error(Code::communication, "engine",
              "an earlier call failed, and the ranks may stand at different exchanges; make a new group and engine");
}

template <class Body>
void Exchanger::communicate(const char* what, const Body& body) {
  require_usable();
  const Stopwatch watch(counters_.exchange_wait_s);
  try {
    body();
  } catch (const Error&) {
    broken_ = true;
    throw;
  } catch (const std::exception& error) {
    broken_ = true;
    throw Error(Code::communication, "engine", std::string(what) + " failed: " + error.what());
  }
}

Message& Exchanger::message_of(const ExchangePlan& exchange, const StepPlan& plan) {
  const auto [found, is_new] = messages_->try_emplace(&exchange);
  Message& message = found->second;
  if (!is_new) return message;
  const Channel& at = channel(exchange.phase);
  message.send = at.send.narrow(0, 0, exchange.send_elements);
  message.receive = at.receive.narrow(0, 0, exchange.receive_elements);
  const int head_dim = plan.schedule.head_dim;
  for (const SliceCopy& copy : exchange.sends) message.send_slices.push_back(slice_of(at.send, copy, head_dim));
  for (const SliceCopy& copy : exchange.receives)
    message.receive_slices.push_back(slice_of(at.receive, copy, head_dim));
  return message;
}

void Exchanger::post(const ExchangePlan& exchange, const StepPlan& plan, const Find& find) {
  Channel& at = channel(exchange.phase);
  Message& message = message_of(exchange, plan);
  for (std::size_t i = 0; i < exchange.sends.size(); ++i) {
    copies_.copy(whole_box(message.send_slices[i]), find(exchange.sends[i]));
  }
  copies_.run();
  c10d::AllToAllOptions options;
  options.asyncOp = plan.schedule.exec.overlap;
  communicate("an exchange", [&] {
    // c10d takes counts by reference that it does not write to.
    auto& receive_counts = const_cast<std::vector<std::int64_t>&>(exchange.receive_counts);
    auto& send_counts = const_cast<std::vector<std::int64_t>&>(exchange.send_counts);
    const auto start = [&] {
      at.work = group_->alltoall_base(message.receive, message.send, receive_counts, send_counts, options);
    };
    if (options.asyncOp) {
      start();
      return;
    }
    const ExposedTime::Span span(exposed_, exchange.phase, message.send.device());
    start();
    if (at.work) at.work->wait();
    at.work.reset();
  });
  const auto element_bytes = static_cast<std::int64_t>(at.send.element_size());
  counters_.all_gather_bytes += exchange.all_gather_elements * element_bytes;
  counters_.ulysses_bytes += exchange.ulysses_elements * element_bytes;
  counters_.ring_bytes += exchange.ring_elements * element_bytes;
  ++counters_.collectives;
}

void Exchanger::finish(const ExchangePlan& exchange, const StepPlan& plan, const Put& put) {
  Channel& at = channel(exchange.phase);
  Message& message = message_of(exchange, plan);
  if (at.work) {
    communicate("an exchange", [&] {
      const ExposedTime::Span span(exposed_, exchange.phase, message.send.device());
      at.work->wait();
    });
    at.work.reset();
  }
  // Slices of one peer go to different places; those of two peers may be terms of one sum.
  Rank peer = 0;
  bool sums = false;
  for (std::size_t i = 0; i < exchange.receives.size(); ++i) {
    const SliceCopy& copy = exchange.receives[i];
    if (sums && copy.peer != peer) copies_.run();
    peer = copy.peer;
    const Target target = put(copy);
    sums = sums || target.add;
    if (target.add) {
      copies_.add(target.place, whole_box(message.receive_slices[i]));
    } else {
      copies_.copy(target.place, whole_box(message.receive_slices[i]));
    }
  }
  copies_.run();
}

std::vector<std::string> Exchanger::gather(const std::string& mine, std::size_t bytes) {
  const auto ranks = static_cast<std::size_t>(group_->getSize());
  // Every group takes tensors of one of its own devices; a CPU group's is the CPU.
  const std::vector<at::Device> devices = group_->getDeviceTypes();
  const auto cpu = std::find_if(devices.begin(), devices.end(), [](at::Device device) { return device.is_cpu(); });
  const at::Device device = cpu != devices.end() || devices.empty() ? at::Device(at::kCPU) : devices.front();

  at::Tensor own = at::zeros({static_cast<std::int64_t>(ranks * bytes)}, at::kByte);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::memcpy(own.data_ptr<std::uint8_t>() + rank * bytes, mine.data(), std::min(bytes, mine.size()));
  }
  own = own.to(device);
  at::Tensor theirs = at::empty_like(own);
  std::vector<std::int64_t> even(ranks, static_cast<std::int64_t>(bytes));
  communicate("the comparison of plans", [&] {
    const auto work = group_->alltoall_base(theirs, own, even, even);
    if (work) work->wait();
    theirs = theirs.to(at::kCPU);
  });
  std::vector<std::string> result;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const char* text = reinterpret_cast<const char*>(theirs.data_ptr<std::uint8_t>() + rank * bytes);
    result.emplace_back(text, strnlen(text, bytes));
  }
  return result;
}

}  // namespace zellige
