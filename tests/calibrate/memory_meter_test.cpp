// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include <gtest/gtest.h>

#include "calibrate/memory_meter.h"

namespace zellige {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

at::Tensor mebibytes(std::int64_t count) { return at::empty({count * kMiB}, at::kByte); }

TEST(MemoryMeter, CountsThePeakNotTheEnd) {
  MemoryMeter meter(at::kCPU);
  const at::Tensor before = mebibytes(3);
  meter.restart();
  EXPECT_EQ(meter.peak_bytes(), 0);
  at::Tensor a = mebibytes(2);
  { const at::Tensor b = mebibytes(5); }
  const at::Tensor c = mebibytes(1);
  EXPECT_EQ(meter.peak_bytes(), 7 * kMiB);
  a.reset();
  meter.restart();
  EXPECT_EQ(meter.peak_bytes(), 0);
  const at::Tensor d = mebibytes(4);
  EXPECT_EQ(meter.peak_bytes(), 4 * kMiB);
}

TEST(MemoryMeter, CountsItsOwnThreadAlone) {
  MemoryMeter meter(at::kCPU);
  std::thread other([] {
    MemoryMeter own(at::kCPU);
    const at::Tensor big = mebibytes(64);
    EXPECT_EQ(own.peak_bytes(), 64 * kMiB);
  });
  other.join();
  EXPECT_EQ(meter.peak_bytes(), 0);
}

TEST(MemoryMeter, KnowsTheHost) {
  const DeviceMemory memory = device_memory(at::kCPU);
  EXPECT_GT(memory.total_bytes, 0);
  EXPECT_LE(memory.free_bytes, memory.total_bytes);
}

}  // namespace
}  // namespace zellige
