// SPDX-License-Identifier: Apache-2.0
#include "plan/knapformer_routing.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

namespace zellige {
namespace {

using BagKey = std::pair<double, std::int32_t>;  // occupancy, bag

/// The bags of one size: they have one capacity, so the emptiest is the only candidate.
struct BagClass {
  int size = 1;
  double capacity = 0;
  std::priority_queue<BagKey, std::vector<BagKey>, std::greater<>> emptiest;
};

}  // namespace

double knapformer_work(std::int64_t length, int width, double gamma) {
  const auto l = static_cast<double>(length);
  const double d = width;
  return (24 * l * d * d + gamma * 4 * l * l * d) * 1e-12;
}

RoutingOrder routing_order(std::vector<std::int64_t> lengths, int width, double gamma) {
  RoutingOrder order;
  order.lengths = std::move(lengths);
  for (const std::int64_t length : order.lengths) {
    order.work.push_back(knapformer_work(length, width, gamma));
    order.total_work += order.work.back();
  }
  order.visits.resize(order.lengths.size());
  std::iota(order.visits.begin(), order.visits.end(), 0);
  std::stable_sort(order.visits.begin(), order.visits.end(),
                   [&](SequenceIndex a, SequenceIndex b) { return order.work[a] > order.work[b]; });
  return order;
}

Routing route(const RoutingOrder& order, const GroupLayout& layout) {
  Routing routing;
  routing.bag_of.resize(order.lengths.size());
  routing.occupancy.resize(layout.num_groups());
  const double capacity_of_rank = order.total_work / layout.num_ranks();
  std::vector<BagClass> classes;  // by rising size, hence by rising capacity
  std::int32_t bag = 0;
  for (const GroupCount& kind : layout.groups) {
    classes.push_back({kind.size, kind.size * capacity_of_rank, {}});
    for (int i = 0; i < kind.count; ++i) classes.back().emptiest.push({0.0, bag++});
  }
  for (const SequenceIndex sequence : order.visits) {
    BagClass* chosen = nullptr;
    for (BagClass& kind : classes) {
      if (kind.capacity < order.work[sequence] || order.lengths[sequence] < kind.size) continue;
      if (chosen == nullptr || kind.emptiest.top() < chosen->emptiest.top()) chosen = &kind;
    }
    if (chosen == nullptr) chosen = &classes.back();
    auto [occupancy, target] = chosen->emptiest.top();
    chosen->emptiest.pop();
    occupancy += order.work[sequence] / chosen->capacity;
    chosen->emptiest.push({occupancy, target});
    routing.bag_of[sequence] = target;
    routing.occupancy[target] = occupancy;
  }
  return routing;
}

std::vector<std::vector<RoutedChunk>> routed_chunks(std::span<const std::int64_t> lengths, const GroupLayout& layout,
                                                    const Routing& routing) {
  const std::vector<RankGroup> bags = rank_groups(layout);
  std::vector<std::vector<RoutedChunk>> chunks(layout.num_ranks());
  for (std::size_t sequence = 0; sequence < lengths.size(); ++sequence) {
    const RankGroup& bag = bags[routing.bag_of[sequence]];
    const auto takes_remainder = static_cast<int>(sequence % bag.size);
    for (int i = 0; i < bag.size; ++i) {
      const std::int64_t tokens =
          lengths[sequence] / bag.size + (i == takes_remainder ? lengths[sequence] % bag.size : 0);
      if (tokens > 0) chunks[bag.first_rank + i].push_back({static_cast<SequenceIndex>(sequence), tokens});
    }
  }
  return chunks;
}

}  // namespace zellige
