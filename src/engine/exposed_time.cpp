// SPDX-License-Identifier: Apache-2.0
#include "engine/exposed_time.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace zellige {
namespace {

c10::Stream current_stream(at::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  return guard.getStream(device);
}

}  // namespace

double& ExposedTime::of(Phase phase) {
  return phase == Phase::a ? sum_.a_s : phase == Phase::ring ? sum_.ring_s : sum_.b_s;
}

void ExposedTime::reset() {
  sum_ = {};
  used_ = 0;
}

ExposedExchange ExposedTime::seconds() {
  for (std::size_t i = 0; i < used_; ++i) {
    if (!events_[i].complete) continue;  // what stood there threw
    events_[i].end.synchronize();
    of(events_[i].phase) += 1e-3 * events_[i].begin.elapsedTime(events_[i].end);
  }
  used_ = 0;
  return sum_;
}

ExposedTime::Span::Span(ExposedTime& times, Phase phase, at::Device device)
    : times_(times), phase_(phase), device_(device) {
  if (device.is_cpu()) {
    begin_ = std::chrono::steady_clock::now();
    return;
  }
  if (times_.used_ == times_.events_.size()) {
    times_.events_.push_back({c10::Event(device.type(), c10::EventFlag::BACKEND_DEFAULT),
                              c10::Event(device.type(), c10::EventFlag::BACKEND_DEFAULT)});
  }
  Pair& pair = times_.events_[times_.used_++];
  pair.phase = phase;
  pair.complete = false;
  pair.begin.record(current_stream(device));
}

ExposedTime::Span::~Span() {
  if (device_.is_cpu()) {
    times_.of(phase_) += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    return;
  }
  Pair& pair = times_.events_[times_.used_ - 1];
  try {
    pair.end.record(current_stream(device_));
    pair.complete = true;
  } catch (const std::exception&) {
    // The device has failed; whoever waits for it next says so.
  }
}

}  // namespace zellige
