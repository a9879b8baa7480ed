// SPDX-License-Identifier: Apache-2.0
#include "calibrate/memory_meter.h"

#include <algorithm>
#include <mutex>

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <unistd.h>

namespace zellige {

// Torch tells the calling thread's listener of every block that its CPU allocator hands out or takes back.
struct MemoryMeter::Counter final : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    const std::lock_guard lock(mutex);
    now += size;
    most = std::max(most, now);
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::mutex mutex;
  std::int64_t now = 0, most = 0;
};

namespace {

c10::DeviceAllocator& allocator_of(at::Device device) { return *c10::getDeviceAllocator(device.type()); }

std::int64_t allocated(at::Device device, bool peak) {
  const auto stats = allocator_of(device).getDeviceStats(device.index());
  const auto& all = stats.allocated_bytes[0];  // of all pools
  return peak ? all.peak : all.current;
}

}  // namespace

MemoryMeter::MemoryMeter(at::Device device) : device_(device) {
  if (device.is_cpu()) {
    counter_ = std::make_shared<Counter>();
    guard_ = std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PROFILER_STATE, counter_);
  }
  restart();
}

MemoryMeter::~MemoryMeter() = default;

void MemoryMeter::restart() {
  if (device_.is_cpu()) {
    const std::lock_guard lock(counter_->mutex);
    start_ = counter_->now;
  } else {
    start_ = allocated(device_, false);
  }
  forget_peak();
}

void MemoryMeter::forget_peak() {
  if (device_.is_cpu()) {
    const std::lock_guard lock(counter_->mutex);
    counter_->most = counter_->now;
    return;
  }
  allocator_of(device_).resetPeakStats(device_.index());
}

std::int64_t MemoryMeter::peak_bytes() const {
  if (!device_.is_cpu()) return std::max<std::int64_t>(0, allocated(device_, true) - start_);
  const std::lock_guard lock(counter_->mutex);
  return std::max<std::int64_t>(0, counter_->most - start_);
}

DeviceMemory device_memory(at::Device device) {
  if (device.is_cpu()) {
    const std::int64_t page = sysconf(_SC_PAGESIZE);
    return {sysconf(_SC_PHYS_PAGES) * page, sysconf(_SC_AVPHYS_PAGES) * page};
  }
  const auto [free, total] = allocator_of(device).getMemoryInfo(device.index());
  return {static_cast<std::int64_t>(total), static_cast<std::int64_t>(free)};
}

AllocatorState allocator_state(at::Device device) {
  if (device.is_cpu()) return {};
  const auto stats = allocator_of(device).getDeviceStats(device.index());
  return {stats.allocated_bytes[0].current, stats.reserved_bytes[0].current};
}

void release_cached_memory(at::Device device) {
  if (!device.is_cpu()) allocator_of(device).emptyCache();
}

void synchronize(at::Device device) {
  if (!device.is_cpu()) c10::impl::getDeviceGuardImpl(device.type())->synchronizeDevice(device.index());
}

}  // namespace zellige
