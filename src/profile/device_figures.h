// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "zellige/profile.h"

namespace zellige {

/// Rate of self-attention at one length, whole sequences in dense batches, in floating-point operations a microsecond
/// (1e6 = 1 TFLOP/s).
struct AttentionRate {
  std::int64_t length;
  double forward;
  double backward;
};

/// What a device can do, from public figures and measurements; estimates are made of nothing else.
struct DeviceFigures {
  std::string_view name;    ///< as `built_in_profile` is asked, e.g. "h200"
  std::string_view device;  ///< as the driver calls it
  std::string_view kernel;  ///< attention kernel that the rates are for
  int element_bytes;        ///< of activations and exchanges
  double projection_rate;   ///< GEMM of width x width, operations a microsecond
  double feed_forward_rate;
  std::vector<AttentionRate> attention;  ///< ascending lengths
  double head_shard_forward;             ///< rate of half the heads over that of all heads, forward
  double memory_bytes_per_us;
  Link node;             ///< within a node
  Link cluster;          ///< between nodes
  int node_ranks;        ///< devices a node
  double shard_call_us;  ///< a layer's fixed cost of one more attention call and of packing its messages
  double sequence_us;    ///< a layer's fixed cost of one more sequence in a dense batch
  double state_bytes;    ///< a parameter: weight, gradient, optimizer
  Bytes context;         ///< of the driver, libraries and collectives
  Bytes usable;          ///< of the device's memory, what a step may use before the allocator fragments
};

std::span<const DeviceFigures> device_figures();

}  // namespace zellige
