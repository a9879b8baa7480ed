// SPDX-License-Identifier: Apache-2.0
#include "plan/differencing.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace zellige {
namespace {

constexpr std::ptrdiff_t kNone = -1;

/// One part of a partial partition: a sum and a chain of items, so that two parts are joined in constant time.
struct Part {
  std::int64_t sum = 0;
  std::ptrdiff_t first = kNone;
  std::ptrdiff_t last = kNone;
};

/// A partial partition. Only parts that hold something are stored, fullest first; the others are empty.
struct PartialPartition {
  std::vector<Part> parts;

  std::int64_t spread(std::size_t num_parts) const {
    return parts.front().sum - (parts.size() < num_parts ? 0 : parts.back().sum);
  }
};

}  // namespace

std::vector<int> largest_differencing(std::span<const std::int64_t> work, int num_parts) {
  std::vector<int> part_of(work.size());
  if (work.empty()) return part_of;
  const auto all = static_cast<std::size_t>(num_parts);
  std::vector<std::ptrdiff_t> next(work.size(), kNone);
  std::vector<PartialPartition> partitions(work.size());
  using Entry = std::tuple<std::int64_t, std::int64_t, std::size_t>;  // spread, minus age, where
  std::priority_queue<Entry> widest;
  std::int64_t born = 0;
  for (std::size_t item = 0; item < work.size(); ++item) {
    const auto index = static_cast<std::ptrdiff_t>(item);
    partitions[item].parts = {{work[item], index, index}};
    widest.push({partitions[item].spread(all), -born++, item});
  }
  while (widest.size() > 1) {
    const std::size_t a = std::get<2>(widest.top());
    widest.pop();
    const std::size_t b = std::get<2>(widest.top());
    widest.pop();
    // Part i of `kept`, fullest first, meets part num_parts - 1 - i of `other`; parts that nobody stores are empty.
    std::vector<Part>& kept = partitions[a].parts;
    const std::vector<Part>& other = partitions[b].parts;
    kept.resize(std::max(kept.size(), std::min(all, kept.size() + other.size())));
    for (std::size_t i = 0; i < other.size(); ++i) {
      Part& target = kept[kept.size() - 1 - i];
      if (target.first == kNone) {
        target = other[i];
        continue;
      }
      target.sum += other[i].sum;
      next[target.last] = other[i].first;
      target.last = other[i].last;
    }
    std::stable_sort(kept.begin(), kept.end(), [](const Part& x, const Part& y) { return x.sum > y.sum; });
    partitions[b].parts = {};
    widest.push({partitions[a].spread(all), -born++, a});
  }
  std::vector<Part> parts = std::move(partitions[std::get<2>(widest.top())].parts);
  // Chains are not in item order, so a part's first item has to be looked for.
  std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> order;  // lowest item, head of the chain
  for (const Part& part : parts) {
    std::ptrdiff_t lowest = part.first;
    for (std::ptrdiff_t item = part.first; item != kNone; item = next[item]) lowest = std::min(lowest, item);
    order.emplace_back(lowest, part.first);
  }
  std::sort(order.begin(), order.end());
  for (std::size_t number = 0; number < order.size(); ++number) {
    for (std::ptrdiff_t item = order[number].second; item != kNone; item = next[item]) {
      part_of[item] = static_cast<int>(number);
    }
  }
  return part_of;
}

}  // namespace zellige
