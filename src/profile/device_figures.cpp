// SPDX-License-Identifier: Apache-2.0
#include "profile/device_figures.h"

namespace zellige {
namespace {

constexpr double kTera = 1e6;  // floating-point operations a microsecond at 1 TFLOP/s
constexpr double kGiga = 1e3;
constexpr std::int64_t kGigabytes = 1'000;  // bytes a microsecond at 1 GB/s
constexpr std::int64_t kBillion = 1'000'000'000;

/// Weight and gradient in bf16, both moments in bf16 and sharded over the eight ranks of a node. The paper does not say
/// what its trainer keeps; its workloads fit these two devices, so the leanest common way is assumed.
constexpr double kLeanStateBytes = 2 + 2 + 4.0 / 8;

std::vector<AttentionRate> scaled(double unit, std::vector<AttentionRate> rates) {
  for (AttentionRate& rate : rates) {
    rate.forward *= unit;
    rate.backward *= unit;
  }
  return rates;
}

/// The shape of an attention kernel's rate over lengths, measured for FlashAttention-2 on an H200 (12 heads x 128,
/// 128 x 256 to 1 x 63,960: 190 / 143 to 357 / 319 TFLOP/s), over its largest.
std::vector<AttentionRate> flash_attention_2(double forward, double backward) {
  std::vector<AttentionRate> rates = {{256, 190, 143},  {1024, 337, 251},  {1560, 326, 244}, {3600, 340, 282},
                                      {8160, 351, 305}, {32760, 356, 308}, {63960, 357, 319}};
  for (AttentionRate& rate : rates) {
    rate.forward *= forward * kTera / 357;
    rate.backward *= backward * kTera / 319;
  }
  return rates;
}

}  // namespace

std::span<const DeviceFigures> device_figures() {
  static const std::vector<DeviceFigures> all = {
      // Measured on two H200 of one host: GEMM 32,760 x 1,536 by 1,536 x 8,960 at 775 TFLOP/s, projections 672;
      // FlashAttention-3, at 256 tokens cuDNN forward; half the heads at 32,760 tokens 716 / 605 against 665 / 603;
      // all-to-all of 170 MiB and more at 330 GB/s, an empty one 0.04 ms; a ring block of 4,096 x 4,096 takes 27 us
      // longer than its rate at long keys says. Public: 4.8 TB/s, 400 Gb/s of network a GPU (80% counted),
      // 141 GB of which 140 are usable.
      {.name = "h200",
       .device = "NVIDIA H200",
       .kernel = "flash-attention-3",
       .element_bytes = 2,
       .projection_rate = 672 * kTera,
       .feed_forward_rate = 775 * kTera,
       .attention = scaled(kTera, {{256, 360, 213},
                                   {1024, 608, 492},
                                   {1560, 614, 509},
                                   {3600, 708, 553},
                                   {8160, 703, 582},
                                   {32760, 665, 603},
                                   {63960, 683, 595}}),
       .head_shard_forward = 716.0 / 665.0,
       .memory_bytes_per_us = 4800.0 * kGigabytes,
       .node = {"node", 40, 330 * kGigabytes},
       .cluster = {"cluster", 60, 40 * kGigabytes},
       .node_ranks = 8,
       .shard_call_us = 27,
       .sequence_us = 2,
       .state_bytes = 16,  // bf16 weight and gradient, fp32 master weight and both moments
       .context = {300'000'000},
       .usable = {140 * kBillion}},
      // Public: A100's chip (312 TFLOP/s dense bf16, 2.0 TB/s), NVLink 400 GB/s both ways together, 80 GiB;
      // 200 Gb/s of InfiniBand a GPU. FlashAttention-2 reaches about two thirds of the peak there, GEMMs about 80%.
      {.name = "a800",
       .device = "NVIDIA A800-SXM4-80GB",
       .kernel = "flash-attention-2",
       .element_bytes = 2,
       .projection_rate = 240 * kTera,
       .feed_forward_rate = 255 * kTera,
       .attention = flash_attention_2(205, 175),
       .head_shard_forward = 1,
       .memory_bytes_per_us = 2000.0 * kGigabytes,
       .node = {"node", 45, 160 * kGigabytes},
       .cluster = {"cluster", 70, 20 * kGigabytes},
       .node_ranks = 8,
       .shard_call_us = 40,
       .sequence_us = 3,
       .state_bytes = kLeanStateBytes,
       .context = {600'000'000},
       .usable = {82 * kBillion}},
      // Public: 155 TFLOP/s dense bf16 peak (a power limit of 300 W keeps GEMMs near 60% of it), 768 GB/s, 48
      // GB, PCIe 4 x16 without peer access (host memory: 23 GB/s measured on a larger box), 200 Gb/s of InfiniBand for
      // the eight GPUs of a node together.
      {.name = "a6000",
       .device = "NVIDIA RTX A6000",
       .kernel = "flash-attention-2",
       .element_bytes = 2,
       .projection_rate = 90 * kTera,
       .feed_forward_rate = 95 * kTera,
       .attention = flash_attention_2(85, 72),
       .head_shard_forward = 1,
       .memory_bytes_per_us = 768.0 * kGigabytes,
       .node = {"node", 60, 18 * kGigabytes},
       .cluster = {"cluster", 90, 3 * kGigabytes},
       .node_ranks = 8,
       .shard_call_us = 50,
       .sequence_us = 4,
       .state_bytes = kLeanStateBytes,
       .context = {600'000'000},
       .usable = {49 * kBillion}},
      // One core a rank in fp32: 60 GFLOP/s of GEMM, attention a bit less; ranks are threads that copy through memory.
      {.name = "cpu",
       .device = "CPU",
       .kernel = "aten-cpu",
       .element_bytes = 4,
       .projection_rate = 60 * kGiga,
       .feed_forward_rate = 60 * kGiga,
       .attention = scaled(kGiga, {{256, 40, 32}, {1024, 45, 38}, {4096, 48, 40}, {32768, 48, 40}}),
       .head_shard_forward = 1,
       .memory_bytes_per_us = 10.0 * kGigabytes,
       .node = {"node", 30, 4 * kGigabytes},
       .cluster = {"cluster", 100, 1 * kGigabytes},
       .node_ranks = 64,
       .shard_call_us = 60,
       .sequence_us = 10,
       .state_bytes = 16,
       .context = {100'000'000},
       .usable = {64 * kBillion}},
  };
  return all;
}

}  // namespace zellige
