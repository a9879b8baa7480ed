// SPDX-License-Identifier: Apache-2.0
#include "engine/whole_batches.h"

#include <cmath>
#include <limits>

namespace zellige {
namespace {

/// Tiles of 128 queries a head: what the kernels hand out to multiprocessors.
std::int64_t tiles(const WholeGroup& group, int heads) { return group.count * ((group.length + 127) / 128) * heads; }

/// Eight rounds over the 132 multiprocessors of an H200: the last round, partly empty, then costs a few percent.
constexpr std::int64_t kFullCall = 8 * 132;

}  // namespace

std::vector<WholeBatch> batch_whole_groups(std::span<const WholeGroup> groups, int heads, bool together) {
  std::vector<WholeBatch> batches;
  bool last_is_small = false;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool small = together || tiles(groups[i], heads) < kFullCall;
    if (small && last_is_small) {
      ++batches.back().count;
    } else {
      batches.push_back({.first = i, .count = 1});
    }
    last_is_small = small;
  }
  return batches;
}

std::vector<WholeBatch> one_batch_a_group(std::span<const WholeGroup> groups) {
  std::vector<WholeBatch> batches;
  for (std::size_t i = 0; i < groups.size(); ++i) batches.push_back({.first = i, .count = 1});
  return batches;
}

double measured_rate(std::span<const KernelRate> rates, std::string_view kernel, std::string_view direction,
                     std::int64_t length, std::int64_t count, std::int64_t heads) {
  const auto apart = [](double a, double b) { return std::abs(std::log2(a / b)); };
  double nearest = std::numeric_limits<double>::infinity();
  double rate = 0;
  for (const KernelRate& row : rates) {
    if (row.kernel != kernel || row.direction != direction) continue;
    // A rate depends on length first; on how many such sequences and heads there are only as far as they fill the GPU.
    const double distance = apart(static_cast<double>(row.length.value), static_cast<double>(length)) +
                            0.25 * apart(static_cast<double>(row.count) * row.heads,
                                         static_cast<double>(count) * static_cast<double>(heads));
    if (distance >= nearest) continue;
    nearest = distance;
    rate = static_cast<double>(row.flops_per_us);
  }
  return rate;
}

}  // namespace zellige
