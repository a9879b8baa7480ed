// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "testing/random_placement.h"
#include "zellige/error.h"
#include "zellige/schedule.h"

namespace zellige {
namespace {

using oracle::make_placement;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Chunk, FirstOnesAreOneTokenLonger) {
  EXPECT_EQ(chunk(10, 4, 0), (TokenRange{0, 3}));
  EXPECT_EQ(chunk(10, 4, 1), (TokenRange{3, 3}));
  EXPECT_EQ(chunk(10, 4, 2), (TokenRange{6, 2}));
  EXPECT_EQ(chunk(10, 4, 3), (TokenRange{8, 2}));
  EXPECT_EQ(chunk(3, 3, 2), (TokenRange{2, 1}));
  EXPECT_EQ(chunk(7, 1, 0), (TokenRange{0, 7}));
}

TEST(WaveHeads, CutByFloorOfTheShare) {
  EXPECT_EQ(wave_heads(12, 1, 0), (HeadRange{0, 12}));
  EXPECT_EQ(wave_heads(3, 2, 0), (HeadRange{0, 1}));
  EXPECT_EQ(wave_heads(3, 2, 1), (HeadRange{1, 2}));
  EXPECT_EQ(wave_heads(1, 5, 3), (HeadRange{0, 0}));
  EXPECT_EQ(wave_heads(1, 5, 4), (HeadRange{0, 1}));
  for (int heads = 1; heads <= 13; ++heads) {
    for (int waves = 1; waves <= 17; ++waves) {
      int next = 0;
      for (int wave = 0; wave < waves; ++wave) {
        EXPECT_EQ(wave_heads(heads, waves, wave).begin, next);
        next = wave_heads(heads, waves, wave).end();
      }
      EXPECT_EQ(next, heads);
    }
  }
}

// q2h2k3 of 26 tokens: chunks of 3, 3, then ten of 2; rank (1, 0, 2) is the last but one.
TEST(ShardRanges, OfARankInTheMiddleOfAllThreeAxes) {
  const std::vector<Rank> ranks = {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  const Schedule schedule = lower(make_placement(12, 4, 4, 1, {{26, {2, 2, 3}, ranks}}), 1);
  ASSERT_EQ(schedule.segments.size(), 1U);
  const Segment& segment = schedule.segments[0];
  EXPECT_EQ(std::tuple(segment.iq, segment.ih, segment.ik), std::tuple(1, 0, 2));
  EXPECT_EQ(segment.token_begin, 22);
  EXPECT_EQ(segment.num_tokens, 2);
  EXPECT_EQ(query_range(segment), (TokenRange{22, 4}));
  EXPECT_EQ(key_block(segment, 0), (TokenRange{18, 8}));
  EXPECT_EQ(key_block(segment, 1), (TokenRange{10, 8}));
  EXPECT_EQ(key_block(segment, 2), (TokenRange{0, 10}));
  EXPECT_EQ(wave_query_heads(schedule, segment, 0), (HeadRange{0, 2}));
}

TEST(ShardRanges, WavesNeverCutAGroupOfQueryHeads) {
  Placement placement = make_placement(2, 12, 4, 1, {{8, {1, 2, 1}, {0, 1}}});
  placement.exec.waves = 3;
  const Schedule schedule = lower(placement, 1);
  const Segment& shard = schedule.segments[0];  // head group 1: key/value heads 2, 3, query heads 6 .. 11
  EXPECT_EQ(wave_kv_heads(schedule, shard, 0), (HeadRange{2, 0}));
  EXPECT_EQ(wave_kv_heads(schedule, shard, 1), (HeadRange{2, 1}));
  EXPECT_EQ(wave_kv_heads(schedule, shard, 2), (HeadRange{3, 1}));
  EXPECT_EQ(wave_query_heads(schedule, shard, 0), (HeadRange{6, 0}));
  EXPECT_EQ(wave_query_heads(schedule, shard, 1), (HeadRange{6, 3}));
  EXPECT_EQ(wave_query_heads(schedule, shard, 2), (HeadRange{9, 3}));
}

TEST(Lower, WholeByFallingLengthThenChunksByFallingDegree) {
  const Placement placement = make_placement(4, 4, 4, 1,
                                             {{9, {1, 2, 1}, {0, 1}},          // 0
                                              {5, {1, 1, 1}, {0}},             // 1
                                              {8, {2, 2, 1}, {3, 2, 1, 0}},    // 2
                                              {7, {1, 1, 1}, {0}},             // 3
                                              {6, {1, 1, 1}, {1}},             // 4, elsewhere
                                              {5, {1, 1, 1}, {0}},             // 5
                                              {6, {2, 1, 1}, {2, 0}},          // 6
                                              {4, {1, 1, 4}, {0, 1, 2, 3}}});  // 7
  const Schedule schedule = lower(placement, 0);
  std::vector<std::tuple<SequenceIndex, std::int64_t, std::int64_t, std::int64_t>> listed;
  for (const Segment& s : schedule.segments) {
    listed.emplace_back(s.sequence, s.token_begin, s.num_tokens, s.local_begin);
  }
  EXPECT_THAT(listed, ElementsAre(std::tuple(3, 0, 7, 0), std::tuple(1, 0, 5, 7), std::tuple(5, 0, 5, 12),
                                  std::tuple(2, 6, 2, 17), std::tuple(7, 0, 1, 19), std::tuple(0, 0, 5, 20),
                                  std::tuple(6, 3, 3, 25)));
  EXPECT_EQ(schedule.num_whole, 3U);
  EXPECT_EQ(schedule.num_tokens, 28);
  ASSERT_EQ(schedule.whole_groups.size(), 2U);
  EXPECT_EQ(schedule.whole_groups[0].length, 7);
  EXPECT_EQ(schedule.whole_groups[0].count, 1);
  EXPECT_EQ(schedule.whole_groups[1].length, 5);
  EXPECT_EQ(schedule.whole_groups[1].count, 2);
  EXPECT_EQ(schedule.whole_groups[1].local_begin, 7);
}

TEST(Lower, StepWithoutSplitSequencesHasNoExchange) {
  const Placement placement = make_placement(3, 4, 4, 1, {{9, {1, 1, 1}, {0}}, {5, {1, 1, 1}, {2}}});
  for (Rank rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(lower(placement, rank).forward, IsEmpty());
    EXPECT_THAT(lower(placement, rank).backward, IsEmpty());
  }
}

std::vector<std::string> calls(const std::vector<Exchange>& exchanges) {
  std::vector<std::string> listed;
  for (const Exchange& e : exchanges) {
    listed.push_back(std::string(name(e.phase)) + std::to_string(e.wave) +
                     (e.step ? "." + std::to_string(e.step) : ""));
  }
  return listed;
}

TEST(Lower, RankThatHoldsNothingMakesTheSameCalls) {
  Placement placement = make_placement(6, 4, 4, 1, {{9, {1, 1, 3}, {0, 1, 2}}, {4, {1, 2, 1}, {3, 1}}});
  placement.exec.waves = 2;
  const auto expected = ElementsAre("a0", "a1", "ring0.1", "ring0.2", "b0", "ring1.1", "ring1.2", "b1");
  for (const Rank rank : {0, 3, 5}) {
    EXPECT_THAT(calls(lower(placement, rank).forward), expected);
    EXPECT_THAT(calls(lower(placement, rank).backward), expected);
  }
  const Schedule idle = lower(placement, 5);
  EXPECT_EQ(idle.num_tokens, 0);
  for (const auto* list : {&idle.forward, &idle.backward}) {
    for (const Exchange& e : *list) {
      EXPECT_THAT(e.sends, IsEmpty());
      EXPECT_THAT(e.receives, IsEmpty());
      EXPECT_EQ(e.send_counts, std::vector<std::int64_t>(6, 0));
      EXPECT_EQ(e.receive_counts, std::vector<std::int64_t>(6, 0));
    }
  }
}

/// "query [0,3)x[2,4)": tokens, then heads.
std::string words(const Piece& p) {
  const auto range = [](std::int64_t begin, std::int64_t count) {
    return "[" + std::to_string(begin) + "," + std::to_string(begin + count) + ")";
  };
  return std::string(name(p.payload)) + " " + range(p.token_begin, p.num_tokens) + "x" +
         range(p.head_begin, p.num_heads);
}

std::vector<std::string> messages(const std::vector<Piece>& pieces) {
  std::vector<std::string> listed;
  for (const Piece& p : pieces) listed.push_back(std::to_string(p.peer) + ": " + words(p));
  return listed;
}

// Four chunks of one token; each stage's block has one owner, so that every step is seen.
TEST(Lower, RingPassesBlocksToTheNeighbourAndGradientsToTheOwner) {
  const Placement placement = make_placement(4, 1, 1, 1, {{4, {1, 1, 4}, {0, 1, 2, 3}}});
  const Schedule schedule = lower(placement, 1);
  ASSERT_THAT(calls(schedule.backward), ElementsAre("a0", "ring0.1", "ring0.2", "ring0.3", "b0"));
  EXPECT_THAT(schedule.backward[0].sends, IsEmpty());
  EXPECT_THAT(messages(schedule.backward[1].sends), ElementsAre("2: key [1,2)x[0,1)", "2: value [1,2)x[0,1)"));
  EXPECT_THAT(messages(schedule.backward[1].receives), ElementsAre("0: key [0,1)x[0,1)", "0: value [0,1)x[0,1)"));
  // Stage 0 was the own chunk: its gradients stay, and step 2 carries none.
  EXPECT_THAT(messages(schedule.backward[2].sends), ElementsAre("2: key [0,1)x[0,1)", "2: value [0,1)x[0,1)"));
  EXPECT_THAT(messages(schedule.backward[2].receives), ElementsAre("0: key [3,4)x[0,1)", "0: value [3,4)x[0,1)"));
  // Stage 1 was chunk 0 here, and our chunk at rank 2.
  EXPECT_THAT(messages(schedule.backward[3].sends), ElementsAre("0: grad-key [0,1)x[0,1)", "0: grad-value [0,1)x[0,1)",
                                                                "2: key [3,4)x[0,1)", "2: value [3,4)x[0,1)"));
  EXPECT_THAT(messages(schedule.backward[3].receives),
              ElementsAre("0: key [2,3)x[0,1)", "0: value [2,3)x[0,1)", "2: grad-key [1,2)x[0,1)",
                          "2: grad-value [1,2)x[0,1)"));
  EXPECT_THAT(messages(schedule.backward[4].sends),
              ElementsAre("2: grad-key [2,3)x[0,1)", "2: grad-value [2,3)x[0,1)", "3: grad-key [3,4)x[0,1)",
                          "3: grad-value [3,4)x[0,1)"));
  EXPECT_THAT(messages(schedule.backward[4].receives),
              ElementsAre("0: grad-key [1,2)x[0,1)", "0: grad-value [1,2)x[0,1)", "3: grad-key [1,2)x[0,1)",
                          "3: grad-value [1,2)x[0,1)"));
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(schedule.forward[i].sends.size(), i == 0 || i == 4 ? 0U : 2U);
  }
}

TEST(Lower, ShorterRingTakesPartInItsOwnStepsOnly) {
  const Placement placement =
      make_placement(4, 1, 1, 1, {{4, {1, 1, 4}, {0, 1, 2, 3}}, {2, {1, 1, 2}, {0, 1}}, {2, {2, 1, 1}, {0, 1}}});
  const Schedule schedule = lower(placement, 0);
  const auto of = [&](SequenceIndex sequence, const Exchange& e) {
    std::vector<std::string> listed;
    for (const Piece& p : e.sends) {
      if (p.sequence == sequence) listed.emplace_back(name(p.payload));
    }
    return listed;
  };
  ASSERT_EQ(schedule.backward.size(), 5U);
  EXPECT_THAT(of(1, schedule.backward[1]), ElementsAre("key", "value"));
  EXPECT_THAT(of(2, schedule.backward[1]), IsEmpty());
  for (const std::size_t later : {2U, 3U}) {
    EXPECT_THAT(of(1, schedule.backward[later]), IsEmpty());
    EXPECT_THAT(of(2, schedule.backward[later]), IsEmpty());
  }
  EXPECT_THAT(of(1, schedule.backward[4]), ElementsAre("grad-key", "grad-value"));
  EXPECT_THAT(of(2, schedule.backward[4]), ElementsAre("grad-key", "grad-value"));
}

TEST(Lower, KeyAndValueComeAgainOnlyWhereTheyWereNotKept) {
  Placement placement = make_placement(4, 4, 4, 1, {{8, {2, 2, 1}, {0, 1, 2, 3}}});
  const auto payloads = [&] {
    std::vector<std::string> listed;
    const Schedule schedule = lower(placement, 0);
    for (const Piece& p : schedule.backward[0].sends) {
      listed.push_back(std::to_string(p.peer) + " " + std::string(name(p.payload)));
    }
    return listed;
  };
  EXPECT_THAT(payloads(), ElementsAre("1 grad-output"));
  placement.exec.keep_kv = false;
  EXPECT_THAT(payloads(), ElementsAre("1 key", "1 value", "1 grad-output", "2 key", "2 value", "3 key", "3 value"));
}

/// Who sends what, one line a message, as docs/concepts/schedule.md shows it.
std::string picture(const Placement& placement) {
  std::vector<Schedule> schedules;
  for (Rank rank = 0; rank < placement.ranks; ++rank) schedules.push_back(lower(placement, rank));
  std::ostringstream out;
  for (const bool backward : {false, true}) {
    const auto exchanges = [&](const Schedule& s) -> const std::vector<Exchange>& {
      return backward ? s.backward : s.forward;
    };
    for (std::size_t e = 0; e < exchanges(schedules[0]).size(); ++e) {
      out << (backward ? "backward " : "forward ") << name(exchanges(schedules[0])[e].phase) << '\n';
      for (const Schedule& schedule : schedules) {
        Rank last = -1;
        for (const Piece& p : exchanges(schedule)[e].sends) {
          if (p.peer != last) out << (last < 0 ? "" : "\n") << "  " << schedule.rank << " -> " << p.peer << ":";
          out << (p.peer == last ? ", " : " ") << words(p);
          last = p.peer;
        }
        if (last >= 0) out << '\n';
      }
    }
  }
  return out.str();
}

TEST(Lower, WorkedExampleIsTheOneInTheDocs) {
  const Placement placement = make_placement(4, 4, 4, 8, {{10, {2, 2, 1}, {0, 1, 2, 3}}});
  std::ifstream file(ZELLIGE_SOURCE_DIR "/docs/concepts/schedule.md");
  ASSERT_TRUE(file) << "docs/concepts/schedule.md is missing";
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(page, HasSubstr("```text\n" + picture(placement) + "```\n"));
}

/// The paper's engine: exchanges of their own for each configuration and rank set, on every rank, the widest first.
TEST(Lower, ThePapersEngineExchangesByConfigurationAndRankSet) {
  Placement placement = make_placement(6, 4, 4, 1,
                                       {{9, {1, 2, 1}, {0, 1}},
                                        {9, {1, 1, 3}, {2, 3, 4}},
                                        {8, {1, 2, 1}, {0, 1}},    // with the first
                                        {7, {2, 1, 1}, {0, 1}},    // another configuration
                                        {6, {1, 2, 1}, {1, 0}},    // another order of ranks
                                        {5, {1, 2, 1}, {4, 5}}});  // another rank set
  placement.exec.engine = "paper";
  const auto grouped = [&](Rank rank) {
    std::vector<std::string> listed;
    for (const Exchange& e : lower(placement, rank).forward) {
      listed.push_back(std::to_string(e.group) + calls({e})[0]);
    }
    return listed;
  };
  const std::vector<std::string> serial{"0a0", "0ring0.1", "0ring0.2", "0b0", "1a0", "1b0",
                                        "2a0", "2b0",      "3a0",      "3b0", "4a0", "4b0"};
  for (const Rank rank : {0, 3, 5}) EXPECT_EQ(grouped(rank), serial);
  placement.exec.overlap = true;  // A of a group beside what the group before computes
  const std::vector<std::string> beside{"0a0", "1a0", "0ring0.1", "0ring0.2", "0b0", "2a0",
                                        "1b0", "3a0", "2b0",      "4a0",      "3b0", "4b0"};
  for (const Rank rank : {0, 3, 5}) EXPECT_EQ(grouped(rank), beside);

  const Schedule first = lower(placement, 0);
  std::vector<std::pair<SequenceIndex, int>> groups;
  for (const Segment& segment : first.segments) groups.emplace_back(segment.sequence, segment.group);
  EXPECT_THAT(groups, ElementsAre(std::pair(0, 1), std::pair(2, 1), std::pair(3, 2), std::pair(4, 3)));
  for (const auto* list : {&first.forward, &first.backward}) {
    for (const Exchange& e : *list) {
      for (const Piece& piece : e.sends) {
        EXPECT_EQ(e.group, (std::map<SequenceIndex, int>{{0, 1}, {2, 1}, {3, 2}, {4, 3}}).at(piece.sequence));
      }
    }
  }
  placement.exec.engine = "coalesced";
  EXPECT_EQ(lower(placement, 0).forward.size(), 4U);
}

struct Refusal {
  std::string what;
  std::function<void(Placement&)> break_it;
  std::string message;
};

TEST(Lower, RefusesMalformedPlacementsByName) {
  const Placement good =
      make_placement(4, 12, 6, 8, {{40, {1, 2, 1}, {0, 1}}, {30, {1, 1, 1}, {2}}, {9, {2, 1, 2}, {3, 2, 1, 0}}});
  ASSERT_NO_THROW(lower(good, 0));
  const std::vector<Refusal> refusals = {
      {"no ranks", [](Placement& p) { p.ranks = 0; }, "ranks is 0; use 1 .. 65536"},
      {"a world of corrupt size", [](Placement& p) { p.ranks = 2'000'000'000; }, "ranks is 2000000000"},
      {"no heads", [](Placement& p) { p.model.heads = 0; }, "model.heads is 0; use at least 1"},
      {"no key/value heads", [](Placement& p) { p.model.kv_heads = 0; }, "model.kv_heads is 0"},
      {"head_dim", [](Placement& p) { p.model.head_dim = -8; }, "model.head_dim is -8"},
      {"groups", [](Placement& p) { p.model.kv_heads = 5; }, "model.kv_heads is 5; use a divisor of the 12 heads"},
      {"waves 0", [](Placement& p) { p.exec.waves = 0; }, "exec.waves is 0; use 1 .. 1024"},
      {"waves", [](Placement& p) { p.exec.waves = 1025; }, "exec.waves is 1025; use 1 .. 1024"},
      {"engine", [](Placement& p) { p.exec.engine = "fast"; }, "exec.engine is 'fast'; use 'coalesced' or 'paper'"},
      {"illegal h",
       [](Placement& p) {
         p.sequences[0].config = {1, 4, 1};
       },
       "sequence 's0': head split 4"},
      {"factor 0",
       [](Placement& p) {
         p.sequences[1].config = {1, 0, 1};
       },
       "sequence 's1': configuration [1, 0, 1]"},
      {"too wide",
       [](Placement& p) {
         p.sequences[0].config = {5, 1, 1};
       },
       "sequence 's0': q5h1k1"},
      {"short", [](Placement& p) { p.sequences[2].tokens = {3}; }, "sequence 's2': q2h1k2 cuts 3 tokens"},
      {"empty", [](Placement& p) { p.sequences[1].tokens = {0}; }, "sequence 's1': q1h1k1 cuts 0 tokens"},
      {"few ranks",
       [](Placement& p) {
         p.sequences[2].ranks = {3, 2, 1};
       },
       "sequence 's2': 3 ranks; q2h1k2 needs 4"},
      {"no ranks", [](Placement& p) { p.sequences[1].ranks = {}; }, "sequence 's1': 0 ranks; q1h1k1 needs 1"},
      {"range",
       [](Placement& p) {
         p.sequences[0].ranks = {0, 4};
       },
       "sequence 's0': rank 4; use 0 .. 3"},
      {"negative", [](Placement& p) { p.sequences[1].ranks = {-1}; }, "sequence 's1': rank -1; use 0 .. 3"},
      {"twice",
       [](Placement& p) {
         p.sequences[2].ranks = {3, 2, 3, 0};
       },
       "sequence 's2': rank 3 comes twice"},
      {"huge", [](Placement& p) { p.sequences[1].tokens = {std::int64_t{1} << 60}; }, "sequence 's1': 115292150460684"},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.what);
    Placement bad = good;
    refusal.break_it(bad);
    std::vector<std::string> messages_by_rank;
    for (const Rank rank : {0, 3}) {
      try {
        lower(bad, rank);
        ADD_FAILURE() << "was lowered for rank " << rank;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::input);
        EXPECT_THAT(error.what(), HasSubstr("[placement.lower] " + refusal.message));
        messages_by_rank.emplace_back(error.what());
      }
    }
    // Alike on every rank: one rank that refuses alone would leave the others waiting.
    ASSERT_EQ(messages_by_rank.size(), 2U);
    EXPECT_EQ(messages_by_rank[0], messages_by_rank[1]);
  }
}

TEST(Lower, RefusesCountsThatWouldFillMemory) {
  Placement placement = make_placement(1 << 16, 4, 4, 1, {{26, {1, 1, 2}, {0, 1}}});
  EXPECT_EQ(lower(placement, 0).forward.size(), 3u) << "one wave is fine";
  placement.exec.waves = 1024;  // 2 x 1024 x 3 exchanges of 2 x 65536 counts
  try {
    lower(placement, 0);
    ADD_FAILURE() << "six gigabytes of counts";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::input);
    EXPECT_THAT(error.what(), HasSubstr("1024 waves with a ring of 2 over 65536 ranks"));
    EXPECT_THAT(error.what(), HasSubstr("6442450944 bytes"));
  }
}

TEST(Lower, RefusesARankThatIsNone) {
  const Placement placement = make_placement(2, 4, 4, 1, {{9, {1, 2, 1}, {0, 1}}});
  EXPECT_NO_THROW(lower(placement, 1));
  for (const Rank rank : {-1, 2}) {
    try {
      lower(placement, rank);
      ADD_FAILURE() << rank;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank " + std::to_string(rank) + "; use 0 .. 1"));
    }
  }
}

TEST(Lower, NamesAreDistinct) {
  EXPECT_EQ(name(Payload::grad_output), "grad-output");
  EXPECT_EQ(name(Phase::ring), "ring");
  EXPECT_THROW(name(static_cast<Payload>(99)), Error);
  EXPECT_THROW(name(static_cast<Phase>(99)), Error);
}

}  // namespace
}  // namespace zellige
