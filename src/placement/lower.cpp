// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "placement/exchanges.h"
#include "placement/lowerable.h"
#include "placement/segments.h"
#include "zellige/error.h"
#include "zellige/schedule.h"

namespace zellige {
namespace {

void order_by_peer(std::vector<Piece>& pieces) {
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.peer < b.peer; });
}

std::vector<std::int64_t> count_elements(const std::vector<Piece>& pieces, const Schedule& schedule) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(schedule.ranks), 0);
  for (const Piece& piece : pieces) {
    counts[static_cast<std::size_t>(piece.peer)] += piece.num_tokens * piece.num_heads * schedule.head_dim;
  }
  return counts;
}

Exchange make_exchange(const Schedule& schedule, Pass pass, int group, Phase phase, int wave, int step) {
  Exchange exchange;
  exchange.group = group;
  exchange.phase = phase;
  exchange.wave = wave;
  exchange.step = step;
  for (std::size_t i = schedule.num_whole; i < schedule.segments.size(); ++i) {
    if (schedule.segments[i].group != group) continue;
    const Shard shard(schedule, schedule.segments[i], wave);
    switch (phase) {
      case Phase::a: append_exchange_a(shard, pass, schedule.exec.keep_kv, exchange); break;
      case Phase::ring: append_ring_step(shard, pass, exchange); break;
      case Phase::b: append_exchange_b(shard, pass, exchange); break;
    }
  }
  order_by_peer(exchange.sends);
  order_by_peer(exchange.receives);
  exchange.send_counts = count_elements(exchange.sends, schedule);
  exchange.receive_counts = count_elements(exchange.receives, schedule);
  return exchange;
}

/// Split sequences whose exchanges are made together: all of a coalesced step, or those of one configuration and rank
/// set.
struct Group {
  int longest_ring = 0;
};

/// The groups of a placement in the order of their calls, the same on every rank; tells the rank's segments theirs.
std::vector<Group> form_groups(const Placement& placement, Schedule& schedule) {
  std::vector<std::size_t> split;
  for (std::size_t i = 0; i < placement.sequences.size(); ++i) {
    if (!placement.sequences[i].config.is_whole()) split.push_back(i);
  }
  std::stable_sort(split.begin(), split.end(), [&](std::size_t a, std::size_t b) {
    return placement.sequences[a].config.degree() > placement.sequences[b].config.degree();
  });
  const bool together = placement.exec.engine == "coalesced";
  std::vector<Group> groups;
  std::map<std::tuple<int, int, int, std::vector<Rank>>, int> known;
  std::map<SequenceIndex, int> group_of;
  for (const std::size_t i : split) {
    const PlacedSequence& placed = placement.sequences[i];
    const auto key = together ? std::tuple(0, 0, 0, std::vector<Rank>())
                              : std::tuple(placed.config.q, placed.config.h, placed.config.k, placed.ranks);
    const auto [found, is_new] = known.emplace(key, static_cast<int>(groups.size()));
    if (is_new) groups.emplace_back();
    Group& group = groups[static_cast<std::size_t>(found->second)];
    group.longest_ring = std::max(group.longest_ring, placed.config.k);
    group_of[static_cast<SequenceIndex>(i)] = found->second;
  }
  for (std::size_t i = schedule.num_whole; i < schedule.segments.size(); ++i) {
    schedule.segments[i].group = group_of.at(schedule.segments[i].sequence);
  }
  return groups;
}

/// The layer's collectives in the order in which they are posted (engine.md, "One layer on one rank"). They follow from
/// `exec` and the groups alone, both of the whole placement.
std::vector<Exchange> make_exchanges(const Schedule& schedule, Pass pass, const std::vector<Group>& groups) {
  const int waves = schedule.exec.waves;
  std::vector<Exchange> exchanges;
  const auto post = [&](std::size_t group, Phase phase, int wave, int step) {
    exchanges.push_back(make_exchange(schedule, pass, static_cast<int>(group), phase, wave, step));
  };
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (group == 0 || !schedule.exec.overlap) post(group, Phase::a, 0, 0);
    for (int wave = 0; wave < waves; ++wave) {
      if (wave + 1 < waves) {
        post(group, Phase::a, wave + 1, 0);
      } else if (schedule.exec.overlap && group + 1 < groups.size()) {
        post(group + 1, Phase::a, 0, 0);
      }
      for (int step = 1; step < groups[group].longest_ring; ++step) post(group, Phase::ring, wave, step);
      post(group, Phase::b, wave, 0);
    }
  }
  return exchanges;
}

/// Every exchange holds a count for every rank, both ways: with many ranks, waves and ring steps at once that would
/// fill the host's memory before anything runs.
void require_small_tables(const Schedule& schedule, const std::vector<Group>& groups) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
  std::int64_t calls = 0;  // of a wave
  int longest_ring = 0;
  for (const Group& group : groups) {
    calls += group.longest_ring + 1;
    longest_ring = std::max(longest_ring, group.longest_ring);
  }
  const std::int64_t exchanges = 2LL * schedule.exec.waves * calls;  // forward and backward
  const std::int64_t bytes = exchanges * 2 * schedule.ranks * static_cast<std::int64_t>(sizeof(std::int64_t));
  if (bytes <= kMostBytes) return;
  throw Error(Code::input, "placement.lower",
              std::to_string(schedule.exec.waves) + " waves with a ring of " + std::to_string(longest_ring) + " over " +
                  std::to_string(schedule.ranks) + " ranks make " + std::to_string(exchanges) +
                  " exchanges a layer, whose counts take " + std::to_string(bytes) + " bytes on each rank; at most " +
                  std::to_string(kMostBytes) + ": use fewer waves");
}

}  // namespace

Schedule lower(const Placement& placement, Rank rank) {
  require_lowerable(placement);
  if (rank < 0 || rank >= placement.ranks) {
    throw Error(Code::input, "placement.lower",
                "rank " + std::to_string(rank) + "; use 0 .. " + std::to_string(placement.ranks - 1));
  }
  Schedule schedule;
  schedule.rank = rank;
  schedule.ranks = placement.ranks;
  schedule.heads = placement.model.heads;
  schedule.kv_heads = placement.model.kv_heads;
  schedule.head_dim = placement.model.head_dim;
  schedule.exec = placement.exec;
  schedule.digest = digest(placement);
  lay_out_segments(placement, schedule);

  const std::vector<Group> groups = form_groups(placement, schedule);
  require_small_tables(schedule, groups);
  schedule.forward = make_exchanges(schedule, Pass::forward, groups);
  schedule.backward = make_exchanges(schedule, Pass::backward, groups);
  return schedule;
}

std::string_view name(Payload payload) {
  switch (payload) {
    case Payload::query: return "query";
    case Payload::key: return "key";
    case Payload::value: return "value";
    case Payload::output: return "output";
    case Payload::grad_output: return "grad-output";
    case Payload::grad_query: return "grad-query";
    case Payload::grad_key: return "grad-key";
    case Payload::grad_value: return "grad-value";
  }
  throw Error(Code::internal, "placement.name", "a payload that is none");
}

std::string_view name(Phase phase) {
  switch (phase) {
    case Phase::a: return "a";
    case Phase::ring: return "ring";
    case Phase::b: return "b";
  }
  throw Error(Code::internal, "placement.name", "a phase that is none");
}

}  // namespace zellige
