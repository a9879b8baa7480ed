// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/group_layout.h"

namespace zellige {

/// Modelled work of a sequence, in units of 1e12: 24 l d^2 + gamma 4 l^2 d  // w(l)
double knapformer_work(std::int64_t length, int width, double gamma);

/// Sequences sorted the way the router visits them. It does not depend on the layout, so many layouts can share it.
struct RoutingOrder {
  std::vector<std::int64_t> lengths;  ///< [sequences], in sequence-id order
  std::vector<double> work;           ///< [sequences]
  std::vector<SequenceIndex> visits;  ///< by falling work, equal ones in id order
  double total_work = 0;
};
RoutingOrder routing_order(std::vector<std::int64_t> lengths, int width, double gamma);

/// Where KnapFormer's balancer sends each sequence, and how full that makes the bags.
struct Routing {
  std::vector<std::int32_t> bag_of;  ///< [sequences], position in rank_groups(layout)
  std::vector<double> occupancy;     ///< [bags], work over the bag's even share of all work
};

/// KnapFormer's routing, step by step: every sequence, most work first, goes to the bag with the lowest occupancy
/// (before it is placed; ties to the lowest bag) among those whose full capacity holds it and that have no more ranks
/// than it has tokens; where there is none, among the bags of the largest size. Knows neither memory nor communication.
Routing route(const RoutingOrder& order, const GroupLayout& layout);

/// A run of tokens that a rank receives.
struct RoutedChunk {
  SequenceIndex sequence = 0;
  std::int64_t tokens = 0;

  bool operator==(const RoutedChunk&) const = default;
};
/// Cuts each sequence into as many chunks as its bag has ranks, as the original does: equal ones, the whole remainder
/// to chunk number (sequence id mod G). (Our engine gives one more token to each of the first chunks instead.)
/// @return [ranks], in sequence order; empty for a rank that gets nothing
std::vector<std::vector<RoutedChunk>> routed_chunks(std::span<const std::int64_t> lengths, const GroupLayout& layout,
                                                    const Routing& routing);

}  // namespace zellige
