// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
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

Exchange make_exchange(const Schedule& schedule, Pass pass, Phase phase, int wave, int step) {
  Exchange exchange;
  exchange.phase = phase;
  exchange.wave = wave;
  exchange.step = step;
  for (std::size_t i = schedule.num_whole; i < schedule.segments.size(); ++i) {
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

/// The layer's collectives in the order in which they are posted (engine.md, "One layer on one rank"). They follow from
/// `waves` and `longest_ring` alone, both of the whole placement.
std::vector<Exchange> make_exchanges(const Schedule& schedule, Pass pass, int longest_ring) {
  const int waves = schedule.exec.waves;
  std::vector<Exchange> exchanges;
  exchanges.reserve(static_cast<std::size_t>(waves) * static_cast<std::size_t>(longest_ring + 1));
  exchanges.push_back(make_exchange(schedule, pass, Phase::a, 0, 0));
  for (int wave = 0; wave < waves; ++wave) {
    if (wave + 1 < waves) exchanges.push_back(make_exchange(schedule, pass, Phase::a, wave + 1, 0));
    for (int step = 1; step < longest_ring; ++step) {
      exchanges.push_back(make_exchange(schedule, pass, Phase::ring, wave, step));
    }
    exchanges.push_back(make_exchange(schedule, pass, Phase::b, wave, 0));
  }
  return exchanges;
}

/// Every exchange holds a count for every rank, both ways: with many ranks, waves and ring steps at once that would
/// fill the host's memory before anything runs.
void require_small_tables(const Schedule& schedule, int longest_ring) {
  if (longest_ring == 0) return;
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
  const std::int64_t exchanges = 2LL * schedule.exec.waves * (longest_ring + 1);  // forward and backward
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

  int longest_ring = 0;  // of the split sequences; 0 when there are none
  for (const PlacedSequence& placed : placement.sequences) {
    if (!placed.config.is_whole()) longest_ring = std::max(longest_ring, placed.config.k);
  }
  require_small_tables(schedule, longest_ring);
  if (longest_ring > 0) {
    schedule.forward = make_exchanges(schedule, Pass::forward, longest_ring);
    schedule.backward = make_exchanges(schedule, Pass::backward, longest_ring);
  }
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
