// SPDX-License-Identifier: Apache-2.0
// What holds for the schedules of any placement (docs/design/engine.md, "Correctness"), on random ones of up to 64
// ranks.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "testing/random_placement.h"
#include "zellige/profile.h"
#include "zellige/schedule.h"

namespace zellige {
namespace {

using namespace oracle;

std::vector<Schedule> lower_all(const Placement& placement) {
  std::vector<Schedule> schedules;
  for (Rank rank = 0; rank < placement.ranks; ++rank) schedules.push_back(lower(placement, rank));
  return schedules;
}

const std::vector<Exchange>& exchanges(const Schedule& schedule, bool backward) {
  return backward ? schedule.backward : schedule.forward;
}

bool counts_kv_heads(Payload payload) {
  return payload == Payload::key || payload == Payload::value || payload == Payload::grad_key ||
         payload == Payload::grad_value;
}

std::vector<Piece> with_peer(const std::vector<Piece>& pieces, Rank peer, Rank renamed) {
  std::vector<Piece> found;
  for (Piece piece : pieces) {
    if (piece.peer != peer) continue;
    piece.peer = renamed;
    found.push_back(piece);
  }
  return found;
}

std::vector<std::int64_t> counted(const std::vector<Piece>& pieces, const Schedule& schedule) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(schedule.ranks), 0);
  for (const Piece& p : pieces) counts.at(p.peer) += p.num_tokens * p.num_heads * schedule.head_dim;
  return counts;
}

void expect_same_calls_everywhere(const Placement& placement, const std::vector<Schedule>& schedules) {
  // The longest ring of each set of sequences that exchange together, by how they come: widest first.
  std::vector<const PlacedSequence*> split;
  for (const PlacedSequence& placed : placement.sequences) {
    if (placed.ranks.size() > 1) split.push_back(&placed);
  }
  std::stable_sort(split.begin(), split.end(), [](auto* a, auto* b) { return a->ranks.size() > b->ranks.size(); });
  std::vector<std::pair<const PlacedSequence*, int>> sets;
  for (const PlacedSequence* placed : split) {
    const auto found = std::find_if(sets.begin(), sets.end(), [&](const auto& set) {
      return placement.exec.engine == "coalesced" ||
             (set.first->config == placed->config && set.first->ranks == placed->ranks);
    });
    if (found == sets.end()) {
      sets.emplace_back(placed, placed->config.k);
    } else {
      found->second = std::max(found->second, placed->config.k);
    }
  }
  std::vector<std::tuple<int, Phase, int, int>> calls;
  const auto last = static_cast<int>(sets.size()) - 1;
  for (int set = 0; set <= last; ++set) {
    const int ring = sets[static_cast<std::size_t>(set)].second;
    if (set == 0 || !placement.exec.overlap) calls.emplace_back(set, Phase::a, 0, 0);
    for (int wave = 0; wave < placement.exec.waves; ++wave) {
      const bool is_last = wave == placement.exec.waves - 1;
      if (!is_last) calls.emplace_back(set, Phase::a, wave + 1, 0);
      if (is_last && set < last && placement.exec.overlap) calls.emplace_back(set + 1, Phase::a, 0, 0);
      for (int step = 1; step <= ring - 1; ++step) calls.emplace_back(set, Phase::ring, wave, step);
      calls.emplace_back(set, Phase::b, wave, 0);
    }
  }
  for (const Schedule& schedule : schedules) {
    for (const bool backward : {false, true}) {
      std::vector<std::tuple<int, Phase, int, int>> listed;
      for (const Exchange& e : exchanges(schedule, backward)) listed.emplace_back(e.group, e.phase, e.wave, e.step);
      EXPECT_EQ(listed, calls) << "rank " << schedule.rank;
    }
  }
}

void expect_ends_agree(const std::vector<Schedule>& schedules) {
  for (const bool backward : {false, true}) {
    for (std::size_t e = 0; e < exchanges(schedules[0], backward).size(); ++e) {
      for (const Schedule& from : schedules) {
        const Exchange& sent = exchanges(from, backward)[e];
        for (const Schedule& to : schedules) {
          const Exchange& received = exchanges(to, backward)[e];
          EXPECT_EQ(with_peer(sent.sends, to.rank, 0), with_peer(received.receives, from.rank, 0))
              << "exchange " << e << " backward " << backward << " from " << from.rank << " to " << to.rank;
          EXPECT_EQ(sent.send_counts[to.rank], received.receive_counts[from.rank]);
        }
        EXPECT_EQ(counted(sent.sends, from), sent.send_counts);
        EXPECT_EQ(counted(sent.receives, from), sent.receive_counts);
      }
    }
  }
}

/// By peer; in a message by schedule order, payload, tokens; boxes inside the sequence, never empty, never to oneself.
void expect_message_order(const Schedule& schedule) {
  std::map<SequenceIndex, std::size_t> order;
  for (std::size_t i = schedule.num_whole; i < schedule.segments.size(); ++i) order[schedule.segments[i].sequence] = i;
  for (const bool backward : {false, true}) {
    for (const Exchange& exchange : exchanges(schedule, backward)) {
      for (const std::vector<Piece>* pieces : {&exchange.sends, &exchange.receives}) {
        std::set<std::tuple<Rank, std::size_t, Payload, std::int64_t>> keys;  // strictly rising keys are a set in order
        std::vector<std::tuple<Rank, std::size_t, Payload, std::int64_t>> listed;
        for (const Piece& p : *pieces) {
          ASSERT_TRUE(order.contains(p.sequence));
          const Segment& segment = schedule.segments[order[p.sequence]];
          listed.emplace_back(p.peer, order[p.sequence], p.payload, p.token_begin);
          keys.insert(listed.back());
          EXPECT_NE(p.peer, schedule.rank);
          EXPECT_GE(p.token_begin, 0);
          EXPECT_GE(p.num_tokens, 1);
          EXPECT_LE(p.token_begin + p.num_tokens, segment.sequence_tokens);
          EXPECT_GE(p.head_begin, 0);
          EXPECT_GE(p.num_heads, 1);
          EXPECT_LE(p.head_begin + p.num_heads, counts_kv_heads(p.payload) ? schedule.kv_heads : schedule.heads);
        }
        EXPECT_TRUE(std::equal(listed.begin(), listed.end(), keys.begin(), keys.end()));
      }
    }
  }
}

void expect_tokens_owned_once(const Placement& placement, const std::vector<Schedule>& schedules) {
  std::vector<std::vector<int>> owners;
  for (const PlacedSequence& placed : placement.sequences) owners.emplace_back(placed.tokens.value, 0);
  for (const Schedule& schedule : schedules) {
    for (const Segment& s : schedule.segments) {
      for (std::int64_t t = s.token_begin; t < s.token_begin + s.num_tokens; ++t) ++owners.at(s.sequence).at(t);
    }
  }
  for (const auto& sequence : owners) {
    EXPECT_TRUE(std::all_of(sequence.begin(), sequence.end(), [](int n) { return n == 1; }));
  }
}

void expect_local_layout(const Placement& placement, const Schedule& schedule) {
  std::int64_t next = 0;
  for (std::size_t i = 0; i < schedule.segments.size(); ++i) {
    const Segment& s = schedule.segments[i];
    const PlacedSequence& placed = placement.sequences.at(s.sequence);
    EXPECT_EQ(s.config, placed.config);
    EXPECT_EQ(s.ranks, placed.ranks);
    EXPECT_EQ(s.sequence_tokens, placed.tokens.value);
    EXPECT_EQ(s.ranks.at(s.ih + s.config.h * (s.iq + s.config.q * s.ik)), schedule.rank);
    EXPECT_EQ(s.local_begin, next);
    next += s.num_tokens;
    EXPECT_EQ(i < schedule.num_whole, placed.config.is_whole());
    if (i == 0) continue;
    const Segment& before = schedule.segments[i - 1];
    // Falling length among the whole, falling degree among the split, batch order among equals.
    const auto rank_of = [](const Segment& x) {
      return std::tuple(x.config.is_whole() ? 0 : 1,
                        x.config.is_whole() ? -x.sequence_tokens : -std::int64_t{x.config.degree()}, x.sequence);
    };
    EXPECT_LT(rank_of(before), rank_of(s));
  }
  EXPECT_EQ(schedule.num_tokens, next);

  std::size_t covered = 0;
  for (std::size_t g = 0; g < schedule.whole_groups.size(); ++g) {
    const WholeGroup& group = schedule.whole_groups[g];
    EXPECT_GE(group.count, 1);
    if (g > 0) {
      EXPECT_LT(group.length, schedule.whole_groups[g - 1].length);
    }
    for (std::int64_t i = 0; i < group.count; ++i, ++covered) {
      const Segment& s = schedule.segments.at(covered);
      EXPECT_EQ(s.num_tokens, group.length);
      EXPECT_EQ(s.local_begin, group.local_begin + i * group.length);
    }
  }
  EXPECT_EQ(covered, schedule.num_whole);
}

void expect_wave_heads_partition(const Schedule& schedule) {
  for (std::size_t i = schedule.num_whole; i < schedule.segments.size(); ++i) {
    const Segment& s = schedule.segments[i];
    int kv = s.ih * schedule.kv_heads / s.config.h;
    int query = s.ih * schedule.heads / s.config.h;
    for (int wave = 0; wave < schedule.exec.waves; ++wave) {
      EXPECT_EQ(wave_kv_heads(schedule, s, wave).begin, kv);
      EXPECT_EQ(wave_query_heads(schedule, s, wave).begin, query);
      kv = wave_kv_heads(schedule, s, wave).end();
      query = wave_query_heads(schedule, s, wave).end();
      // A group of query heads is in the wave of its key/value head.
      EXPECT_EQ(query * schedule.kv_heads, kv * schedule.heads);
    }
    EXPECT_EQ(kv, (s.ih + 1) * schedule.kv_heads / s.config.h);
    EXPECT_EQ(query, (s.ih + 1) * schedule.heads / s.config.h);
  }
}

void expect_all_properties(const Placement& placement) {
  const std::vector<Schedule> schedules = lower_all(placement);
  expect_same_calls_everywhere(placement, schedules);
  if (::testing::Test::HasFailure()) return;  // the rest compares call by call
  expect_ends_agree(schedules);
  expect_tokens_owned_once(placement, schedules);
  for (const Schedule& schedule : schedules) {
    expect_message_order(schedule);
    expect_local_layout(placement, schedule);
    expect_wave_heads_partition(schedule);
    EXPECT_EQ(schedule.digest, digest(placement));
    EXPECT_EQ(schedule.exec, placement.exec);
  }
}

TEST(ScheduleProperties, HoldForSmallRandomPlacements) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Placement placement = random_placement(seed);
    expect_all_properties(placement);
    placement.exec.engine = "paper";
    expect_all_properties(placement);
    if (HasFailure()) break;
  }
}

TEST(ScheduleProperties, HoldForRandomPlacementsOfUpTo64Ranks) {
  RandomPlacementOptions options;
  options.min_ranks = 13;
  options.max_ranks = 64;
  options.max_degree = 64;
  options.max_split = 8;
  options.max_whole = 200;
  options.max_tokens = 500;
  options.heads = {12, 16, 24, 40};
  options.max_waves = 3;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Placement placement = random_placement(seed, options);
    if (seed % 2 == 0) placement.exec.engine = "paper";
    if (seed % 4 == 0) placement.exec.overlap = true;
    expect_all_properties(placement);
    if (HasFailure()) break;
  }
}

TEST(ScheduleProperties, RandomPlacementsAreWhatTheyClaim) {
  int overlapping = 0, beside = 0, idle = 0, uneven = 0, grouped = 0, fetched_again = 0, many_waves = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Placement placement = random_placement(seed);
    std::vector<int> shards(placement.ranks, 0), wholes(placement.ranks, 0);
    for (const PlacedSequence& placed : placement.sequences) {
      ASSERT_EQ(why_illegal(placement.model, placed.tokens, placed.config, placement.ranks), "");
      for (const Rank rank : placed.ranks) ++(placed.config.is_whole() ? wholes : shards).at(rank);
      uneven += placed.tokens.value % placed.config.degree() != 0;
    }
    bool any_overlap = false, any_beside = false, any_idle = false;
    for (Rank rank = 0; rank < placement.ranks; ++rank) {
      any_overlap |= shards[rank] > 1;
      any_beside |= shards[rank] > 0 && wholes[rank] > 0;
      any_idle |= shards[rank] + wholes[rank] == 0;
    }
    overlapping += any_overlap;
    beside += any_beside;
    idle += any_idle;
    grouped += placement.model.kv_heads != placement.model.heads;
    fetched_again += !placement.exec.keep_kv;
    many_waves += placement.exec.waves > 1;
    EXPECT_EQ(placement, random_placement(seed));
  }
  for (const int count : {overlapping, beside, idle, uneven, grouped, fetched_again, many_waves}) EXPECT_GT(count, 20);
}

/// Elements that arrive, over all ranks, by (pass, phase, payload).
using Volume = std::map<std::tuple<bool, Phase, Payload>, std::int64_t>;

Volume received(const std::vector<Schedule>& schedules) {
  Volume volume;
  for (const Schedule& schedule : schedules) {
    for (const bool backward : {false, true}) {
      for (const Exchange& e : exchanges(schedule, backward)) {
        for (const Piece& p : e.receives) {
          volume[{backward, e.phase, p.payload}] += p.num_tokens * p.num_heads * schedule.head_dim;
        }
      }
    }
  }
  return volume;
}

/// The same from first principles, token by token: rank (iq, ih, ik) computes head group ih of the queries of chunks
/// (iq, *, ik); whatever it lacks comes, whatever it makes for others goes.
Volume needed(const Placement& placement) {
  Volume volume;
  for (const PlacedSequence& placed : placement.sequences) {
    const auto [q, h, k] = placed.config;
    const int degree = q * h * k;
    if (degree == 1) continue;
    const std::int64_t heads = std::int64_t{placement.model.heads} / h * placement.model.head_dim;
    const std::int64_t kv_heads = std::int64_t{placement.model.kv_heads} / h * placement.model.head_dim;
    std::vector<int> owner;  // [tokens]: position in the rank set
    for (int position = 0; position < degree; ++position) {
      const std::int64_t longer = position < placed.tokens.value % degree;
      owner.insert(owner.end(), placed.tokens.value / degree + longer, position);
    }
    for (int me = 0; me < degree; ++me) {
      const int iq = me / h % q;
      const int ik = me / (h * q);
      for (const int them : owner) {
        if (them == me) continue;
        const bool same_ik = them / (h * q) == ik;
        if (same_ik && them / h % q == iq) {
          volume[{false, Phase::a, Payload::query}] += heads;
          volume[{false, Phase::b, Payload::output}] += heads;
          volume[{true, Phase::a, Payload::grad_output}] += heads;
          volume[{true, Phase::b, Payload::grad_query}] += heads;
        }
        const int stage = (ik - them / (h * q) + k) % k;  // in which the token's block is here
        for (const auto& [payload, grad] :
             {std::pair(Payload::key, Payload::grad_key), std::pair(Payload::value, Payload::grad_value)}) {
          volume[{false, same_ik ? Phase::a : Phase::ring, payload}] += kv_heads;
          if (!same_ik) volume[{true, Phase::ring, payload}] += kv_heads;
          if (same_ik && !placement.exec.keep_kv) volume[{true, Phase::a, payload}] += kv_heads;
          volume[{true, stage + 2 <= k - 1 ? Phase::ring : Phase::b, grad}] += kv_heads;
        }
      }
    }
  }
  return volume;
}

TEST(ScheduleVolume, IsWhatIsNeededTokenByToken) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Placement placement = random_placement(seed, {.max_ranks = 12});
    EXPECT_EQ(received(lower_all(placement)), needed(placement));
  }
}

std::int64_t total(const Volume& volume, bool backward) {
  std::int64_t sum = 0;
  for (const auto& [key, elements] : volume) sum += std::get<bool>(key) == backward ? elements : 0;
  return sum;
}

// forward 2(h-1)/h + 2(qh-1)/h + 2q(k-1); backward 2(h-1)/h + 2q(k-1) + 2(qhk-1)/h, + 2(qh-1)/h where K/V are fetched
// again, in L x heads x head_dim. Times h, so that all is exact in integers.
TEST(ScheduleVolume, FollowsTheFormulasExactly) {
  int checked = 0;
  for (const Configuration config : configurations_up_to(16, 48, 48)) {
    if (config.is_whole()) continue;
    const std::int64_t q = config.q, h = config.h, k = config.k;
    for (const std::int64_t tokens : {3 * q * h * k, 3 * q * h * k + 1}) {
      for (const bool keep_kv : {true, false}) {
        for (const int waves : {1, 5}) {
          std::vector<Rank> ranks;
          for (int i = 0; i < config.degree(); ++i) ranks.push_back(config.degree() - i);
          Placement placement = make_placement(config.degree() + 1, 48, 48, 3, {{tokens, config, ranks}});
          placement.exec.keep_kv = keep_kv;
          placement.exec.waves = waves;
          const Volume volume = received(lower_all(placement));
          const std::int64_t unit = tokens * 48 * 3;
          SCOPED_TRACE(text(config) + " tokens " + std::to_string(tokens) + " keep_kv " + std::to_string(keep_kv));
          EXPECT_EQ(h * total(volume, false), unit * (2 * (h - 1) + 2 * (q * h - 1) + 2 * q * h * (k - 1)));
          EXPECT_EQ(h * total(volume, true),
                    unit * (2 * (h - 1) + 2 * q * h * (k - 1) + 2 * (q * h * k - 1) + (keep_kv ? 0 : 2 * (q * h - 1))));
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 500);
}

// By primitive, as profile, scorer and memory model have it: key/value payloads between different ik are the ring's,
// between different iq the all-gather's, all else is Ulysses'.
TEST(ScheduleVolume, EqualsTheProfilesByPrimitive) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Placement placement = random_placement(seed, {.max_ranks = 12});
    for (const bool backward : {false, true}) {
      ExchangeVolume moved, predicted;
      for (const Schedule& schedule : lower_all(placement)) {
        std::map<SequenceIndex, const Segment*> shards;
        for (const Segment& segment : schedule.segments) shards[segment.sequence] = &segment;
        for (const Exchange& e : exchanges(schedule, backward)) {
          for (const Piece& p : e.sends) {
            const Segment& mine = *shards.at(p.sequence);
            const auto position = std::find(mine.ranks.begin(), mine.ranks.end(), p.peer) - mine.ranks.begin();
            const auto elements = static_cast<double>(p.num_tokens * p.num_heads * schedule.head_dim);
            const bool ring = counts_kv_heads(p.payload) && position / (mine.config.h * mine.config.q) != mine.ik;
            const bool gather = counts_kv_heads(p.payload) && position / mine.config.h % mine.config.q != mine.iq;
            (ring ? moved.ring : gather ? moved.all_gather : moved.ulysses) += elements;
          }
        }
      }
      for (const PlacedSequence& placed : placement.sequences) {
        const ExchangeVolume volume =
            backward ? backward_volume(placement.model, placed.tokens, placed.config, placement.exec.keep_kv)
                     : forward_volume(placement.model, placed.tokens, placed.config);
        predicted.all_gather += volume.all_gather;
        predicted.ulysses += volume.ulysses;
        predicted.ring += volume.ring;
      }
      EXPECT_NEAR(moved.all_gather, predicted.all_gather, 1e-6);
      EXPECT_NEAR(moved.ulysses, predicted.ulysses, 1e-6);
      EXPECT_NEAR(moved.ring, predicted.ring, 1e-6);
    }
  }
}

}  // namespace
}  // namespace zellige
