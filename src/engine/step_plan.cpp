// SPDX-License-Identifier: Apache-2.0
#include "engine/step_plan.h"

#include <algorithm>
#include <map>
#include <string>

#include "zellige/error.h"

namespace zellige {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(Code::input, "engine.begin_step", message); }

std::string describe(const Exchange& exchange) {
  std::string text = "exchange " + std::string(name(exchange.phase)) + " of wave " + std::to_string(exchange.wave);
  if (exchange.phase == Phase::ring) text += ", step " + std::to_string(exchange.step);
  if (exchange.group > 0) text += " of group " + std::to_string(exchange.group);
  return text;
}

bool is_key_like(Payload payload) {
  return payload == Payload::key || payload == Payload::value || payload == Payload::grad_key ||
         payload == Payload::grad_value;
}

/// Resolves the pieces of one pass against what this rank owns and computes.
class Resolver {
 public:
  Resolver(const Schedule& schedule, const std::vector<ShardPlan>& shards) : schedule_(schedule), shards_(shards) {
    for (std::size_t i = 0; i < shards.size(); ++i) shard_of_.emplace(shards[i].segment.sequence, i);
  }

  ExchangePlan resolve(const Exchange& exchange) const {
    ExchangePlan plan;
    for (const auto* pieces : {&exchange.sends, &exchange.receives}) {
      for (const Piece& piece : *pieces) {
        if (shard(piece).segment.group == exchange.group) continue;
        refuse(describe(exchange) + " carries sequence " + std::to_string(piece.sequence) + " of group " +
               std::to_string(shard(piece).segment.group));
      }
    }
    plan.phase = exchange.phase;
    plan.wave = static_cast<std::size_t>(exchange.wave);
    plan.send_counts = exchange.send_counts;
    plan.receive_counts = exchange.receive_counts;
    plan.send_elements = add(exchange, exchange.sends, exchange.send_counts, /*sending=*/true, plan.sends);
    plan.receive_elements = add(exchange, exchange.receives, exchange.receive_counts, false, plan.receives);
    for (const Piece& piece : exchange.sends) classify(piece, plan);
    return plan;
  }

 private:
  const ShardPlan& shard(const Piece& piece) const { return shards_[index(piece)]; }

  std::size_t index(const Piece& piece) const {
    const auto found = shard_of_.find(piece.sequence);
    if (found == shard_of_.end()) {
      refuse("sequence " + std::to_string(piece.sequence) + " travels but is not split over rank " +
             std::to_string(schedule_.rank));
    }
    return found->second;
  }

  std::int64_t elements(const Piece& piece) const { return piece.num_tokens * piece.num_heads * schedule_.head_dim; }

  std::int64_t add(const Exchange& exchange, const std::vector<Piece>& pieces, const std::vector<std::int64_t>& counts,
                   bool sending, std::vector<SliceCopy>& copies) const {
    std::vector<std::int64_t> counted(static_cast<std::size_t>(schedule_.ranks), 0);
    std::int64_t offset = 0;
    Rank last_peer = 0;
    for (const Piece& piece : pieces) {
      if (piece.peer < last_peer || piece.peer >= schedule_.ranks || piece.peer == schedule_.rank) {
        refuse(describe(exchange) + ": a piece of rank " + std::to_string(piece.peer) + "; use pieces of other ranks " +
               "of 0 .. " + std::to_string(schedule_.ranks - 1) + ", by rising rank");
      }
      last_peer = piece.peer;
      copies.push_back(resolve(exchange, piece, sending));
      copies.back().offset = offset;
      offset += elements(piece);
      counted[static_cast<std::size_t>(piece.peer)] += elements(piece);
    }
    if (counted != counts) {
      refuse(describe(exchange) + ": counts differ from the pieces' elements, " + std::to_string(offset) + " in all");
    }
    return offset;
  }

  /// Where the slice lies on this rank (schedule.h says which exchange carries what).
  SliceCopy resolve(const Exchange& exchange, const Piece& piece, bool sending) const {
    const ShardPlan& at = shard(piece);
    const auto wave = static_cast<std::size_t>(exchange.wave);
    const auto step = static_cast<std::size_t>(exchange.step);
    const HeadRange wave_heads = is_key_like(piece.payload) ? at.waves[wave].key : at.waves[wave].query;
    SliceCopy copy;
    copy.shard = index(piece);
    copy.peer = piece.peer;
    copy.payload = piece.payload;
    TokenRange tokens{piece.token_begin, piece.num_tokens};
    TokenRange box;
    switch (piece.payload) {
      case Payload::query:
      case Payload::grad_output: copy.place = sending ? Place::packed : Place::queries; break;
      case Payload::output:
      case Payload::grad_query: copy.place = sending ? Place::queries : Place::packed; break;
      case Payload::key:
      case Payload::value:
        copy.place = sending && exchange.phase == Phase::a ? Place::packed : Place::block;
        if (exchange.phase == Phase::ring) copy.stage = sending ? step - 1 : step;
        break;
      case Payload::grad_key:
      case Payload::grad_value:
        copy.place = sending ? Place::block : Place::packed;
        if (sending) copy.stage = stage_holding(at, tokens);
        break;
    }
    if (copy.place == Place::queries) box = at.queries;
    if (copy.place == Place::packed) box = {at.segment.token_begin, at.segment.num_tokens};
    if (copy.place == Place::block && copy.stage < at.stages()) box = at.blocks[copy.stage];
    const bool packed = copy.place == Place::packed;
    const HeadRange all{0, is_key_like(piece.payload) ? schedule_.kv_heads : schedule_.heads};
    const HeadRange heads = packed ? all : wave_heads;
    const int head_end = piece.head_begin + piece.num_heads;
    if (tokens.count < 1 || tokens.begin < box.begin || tokens.end() > box.end() || piece.num_heads < 1 ||
        piece.head_begin < heads.begin || head_end > heads.end()) {
      refuse(describe(exchange) + ": " + std::string(name(piece.payload)) + " of sequence " +
             std::to_string(piece.sequence) + ", tokens " + std::to_string(tokens.begin) + " .. " +
             std::to_string(tokens.end()) + " and heads " + std::to_string(piece.head_begin) + " .. " +
             std::to_string(head_end) + ", go beyond what rank " + std::to_string(schedule_.rank) + " has of it");
    }
    copy.rows = {tokens.begin - box.begin + (packed ? at.segment.local_begin : 0), tokens.count};
    copy.heads = {piece.head_begin - heads.begin, piece.num_heads};
    return copy;
  }

  static std::size_t stage_holding(const ShardPlan& shard, TokenRange tokens) {
    for (std::size_t stage = 0; stage < shard.stages(); ++stage) {
      const TokenRange& block = shard.blocks[stage];
      if (tokens.begin >= block.begin && tokens.end() <= block.end()) return stage;
    }
    return shard.stages();
  }

  void classify(const Piece& piece, ExchangePlan& plan) const {
    const Segment& segment = shard(piece).segment;
    const auto found = std::find(segment.ranks.begin(), segment.ranks.end(), piece.peer);
    if (found == segment.ranks.end()) {
      refuse("sequence " + std::to_string(piece.sequence) + " travels to rank " + std::to_string(piece.peer) +
             ", which is not of its rank set");
    }
    const int position = static_cast<int>(found - segment.ranks.begin());
    const int iq = position / segment.config.h % segment.config.q;
    const int ik = position / segment.config.h / segment.config.q;
    std::int64_t& elements_of = !is_key_like(piece.payload) ? plan.ulysses_elements
                                : ik != segment.ik          ? plan.ring_elements
                                : iq != segment.iq          ? plan.all_gather_elements
                                                            : plan.ulysses_elements;
    elements_of += elements(piece);
  }

  const Schedule& schedule_;
  const std::vector<ShardPlan>& shards_;
  std::map<SequenceIndex, std::size_t> shard_of_;
};

/// Reads the list of exchanges as the rounds that schedule.h describes.
PassPlan plan_pass(const std::vector<Exchange>& exchanges, const Resolver& resolver, const Schedule& schedule,
                   const std::vector<ShardPlan>& shards) {
  PassPlan pass;
  if (exchanges.empty()) return pass;
  int groups = 0;
  for (const Exchange& exchange : exchanges) groups = std::max(groups, exchange.group + 1);
  if (schedule.exec.engine == "coalesced" && groups > 1)
    refuse("a coalesced step has " + std::to_string(groups) + " groups");
  for (int group = 0; group < groups; ++group) {
    for (int wave = 0; wave < schedule.exec.waves; ++wave) {
      Round round;
      round.group = group;
      round.wave = static_cast<std::size_t>(wave);
      round.a_is_early = wave > 0 || (group > 0 && schedule.exec.overlap);
      for (std::size_t i = 0; i < shards.size(); ++i) {
        if (shards[i].segment.group == group && shards[i].is_active(round.wave)) round.shards.push_back(i);
      }
      pass.rounds.push_back(std::move(round));
    }
  }
  auto next = exchanges.begin();
  const auto take = [&](const Round& round, Phase phase, int step) {
    const auto wave = static_cast<int>(round.wave);
    if (next == exchanges.end() || next->group != round.group || next->phase != phase || next->wave != wave ||
        next->step != step) {
      const std::string of_group = round.group > 0 ? " of group " + std::to_string(round.group) : "";
      refuse((next == exchanges.end() ? "the end" : describe(*next)) + " comes where exchange " +
             std::string(name(phase)) + " of wave " + std::to_string(wave) + of_group + " belongs");
    }
    return resolver.resolve(*next++);
  };
  for (std::size_t r = 0; r < pass.rounds.size(); ++r) {
    Round& round = pass.rounds[r];
    if (!round.a_is_early) round.a = take(round, Phase::a, 0);
    if (r + 1 < pass.rounds.size() && pass.rounds[r + 1].a_is_early) {
      pass.rounds[r + 1].a = take(pass.rounds[r + 1], Phase::a, 0);
    }
    for (int step = 1; next != exchanges.end() && next->phase == Phase::ring; ++step) {
      round.ring.push_back(take(round, Phase::ring, step));
    }
    if (round.wave > 0 && round.ring.size() != pass.rounds[r - 1].ring.size()) {
      refuse("wave " + std::to_string(round.wave) + " has another ring");
    }
    round.b = take(round, Phase::b, 0);
  }
  if (next != exchanges.end()) refuse(describe(*next) + " comes after the last wave");
  return pass;
}

/// Ring steps of a group and one; 0 where it makes no exchanges.
std::size_t steps_of(const PassPlan& pass, int group) {
  for (const Round& round : pass.rounds) {
    if (round.group == group) return round.ring.size() + 1;
  }
  return 0;
}

ShardPlan plan_shard(const Schedule& schedule, const Segment& segment) {
  ShardPlan shard;
  shard.segment = segment;
  shard.queries = query_range(segment);
  for (int stage = 0; stage < segment.config.k; ++stage) shard.blocks.push_back(key_block(segment, stage));
  for (int wave = 0; wave < schedule.exec.waves; ++wave) {
    shard.waves.push_back({wave_query_heads(schedule, segment, wave), wave_kv_heads(schedule, segment, wave)});
  }
  return shard;
}

void require_layout(const Schedule& schedule) {
  const auto at_least = [](const char* what, std::int64_t value, std::int64_t least) {
    if (value < least) refuse(std::string(what) + " is " + std::to_string(value) + "; use " + std::to_string(least));
  };
  at_least("heads", schedule.heads, 1);
  at_least("kv_heads", schedule.kv_heads, 1);
  at_least("head_dim", schedule.head_dim, 1);
  at_least("waves", schedule.exec.waves, 1);
  if (schedule.exec.engine != "coalesced" && schedule.exec.engine != "paper") {
    refuse("engine is '" + schedule.exec.engine + "'; use 'coalesced' or 'paper'");
  }
  if (schedule.heads % schedule.kv_heads != 0) {
    refuse(std::to_string(schedule.kv_heads) + " kv_heads do not divide " + std::to_string(schedule.heads) + " heads");
  }
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < schedule.segments.size(); ++i) {
    const Segment& segment = schedule.segments[i];
    if (segment.local_begin != rows || segment.num_tokens < 1 ||
        segment.config.is_whole() != (i < schedule.num_whole)) {
      refuse("segment " + std::to_string(i) + " is out of place");
    }
    rows += segment.num_tokens;
  }
  std::int64_t group_rows = 0;
  for (const WholeGroup& group : schedule.whole_groups) {
    if (group.local_begin != group_rows || group.length < 1 || group.count < 1) refuse("a whole group is out of place");
    group_rows += group.length * group.count;
  }
  std::int64_t whole_rows = 0;
  for (std::size_t i = 0; i < schedule.num_whole; ++i) whole_rows += schedule.segments[i].num_tokens;
  if (rows != schedule.num_tokens || group_rows != whole_rows) {
    refuse(std::to_string(schedule.num_tokens) + " tokens, but the segments have " + std::to_string(rows) +
           ", and the whole groups " + std::to_string(group_rows) + " of " + std::to_string(whole_rows));
  }
}

std::array<BufferNeed, 3> find_needs(const StepPlan& plan) {
  std::array<BufferNeed, 3> needs;
  const auto see = [&](const ExchangePlan& exchange) {
    BufferNeed& most = needs[static_cast<std::size_t>(exchange.phase)];
    most.send = std::max(most.send, exchange.send_elements);
    most.receive = std::max(most.receive, exchange.receive_elements);
  };
  for (const PassPlan* pass : {&plan.forward, &plan.backward}) {
    for (const Round& round : pass->rounds) {
      see(round.a);
      std::for_each(round.ring.begin(), round.ring.end(), see);
      see(round.b);
    }
  }
  return needs;
}

}  // namespace

StepPlan make_step_plan(const Schedule& schedule) {
  require_layout(schedule);
  StepPlan plan;
  plan.schedule = schedule;
  plan.split_rows = {schedule.num_tokens, 0};
  for (std::size_t i = schedule.num_whole; i < schedule.segments.size(); ++i) {
    plan.shards.push_back(plan_shard(schedule, schedule.segments[i]));
  }
  if (!plan.shards.empty()) {
    const std::int64_t begin = plan.shards.front().segment.local_begin;
    plan.split_rows = {begin, schedule.num_tokens - begin};
  }
  const Resolver resolver(plan.schedule, plan.shards);
  plan.forward = plan_pass(schedule.forward, resolver, schedule, plan.shards);
  plan.backward = plan_pass(schedule.backward, resolver, schedule, plan.shards);
  const auto groups = std::max(plan.forward.rounds.size(), plan.backward.rounds.size()) / plan.waves();
  for (int group = 0; group < static_cast<int>(groups); ++group) {
    if (steps_of(plan.forward, group) != steps_of(plan.backward, group)) {
      refuse("forward and backward have rings of different lengths");
    }
  }
  for (const ShardPlan& shard : plan.shards) {
    if (shard.stages() <= steps_of(plan.forward, shard.segment.group)) continue;
    refuse("sequence " + std::to_string(shard.segment.sequence) + " needs " + std::to_string(shard.stages() - 1) +
           " ring steps a wave, and exchanges before and after");
  }
  plan.needs = find_needs(plan);
  return plan;
}

}  // namespace zellige
