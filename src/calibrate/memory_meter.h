// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "engine/torch.h"

namespace zellige {

/// Counts the bytes of tensors that are allocated while it lives, and their peak. On a CPU those of the calling thread
/// alone, so that each thread rank counts its own; on a device those of all of this process.
class MemoryMeter {
 public:
  explicit MemoryMeter(at::Device device);
  ~MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  /// Forgets the peak; what is allocated now is the new zero.
  void restart();
  /// Forgets the peak and keeps the zero.
  void forget_peak();
  /// Most that was allocated at once since the peak was forgotten, over the zero; at least 0.
  std::int64_t peak_bytes() const;

 private:
  struct Counter;
  at::Device device_;
  std::shared_ptr<Counter> counter_;  ///< CPU
  std::unique_ptr<c10::DebugInfoGuard> guard_;
  std::int64_t start_ = 0;
};

/// Memory of a device in all, and free of it now; of the host for a CPU.
struct DeviceMemory {
  std::int64_t total_bytes = 0, free_bytes = 0;
};
DeviceMemory device_memory(at::Device device);

/// Bytes of tensors of this process on a device, and what its allocator holds for them; 0 on a CPU.
struct AllocatorState {
  std::int64_t allocated_bytes = 0, reserved_bytes = 0;
};
AllocatorState allocator_state(at::Device device);

/// Gives what the allocator holds and nobody uses back to the device.
void release_cached_memory(at::Device device);

/// Waits for all that was queued on the device.
void synchronize(at::Device device);

}  // namespace zellige
