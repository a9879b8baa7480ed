// SPDX-License-Identifier: Apache-2.0
#include "placement/segments.h"

#include <algorithm>

namespace zellige {
namespace {

Segment segment_of(const PlacedSequence& placed, SequenceIndex sequence, int position) {
  Segment segment;
  segment.sequence = sequence;
  segment.sequence_tokens = placed.tokens.value;
  segment.config = placed.config;
  segment.ranks = placed.ranks;
  segment.ih = position % placed.config.h;
  segment.iq = position / placed.config.h % placed.config.q;
  segment.ik = position / (placed.config.h * placed.config.q);
  const TokenRange owned = chunk(placed.tokens.value, placed.config.degree(), position);
  segment.token_begin = owned.begin;
  segment.num_tokens = owned.count;
  return segment;
}

/// Whole sequences first, the longest first; then chunks, the widest first. Ties keep batch order (stable sort).
bool runs_before(const Segment& a, const Segment& b) {
  const int degree_a = a.config.degree();
  const int degree_b = b.config.degree();
  const bool whole_a = degree_a == 1;
  const bool whole_b = degree_b == 1;
  if (whole_a != whole_b) return whole_a;
  return whole_a ? a.sequence_tokens > b.sequence_tokens : degree_a > degree_b;
}

}  // namespace

void lay_out_segments(const Placement& placement, Schedule& schedule) {
  for (std::size_t i = 0; i < placement.sequences.size(); ++i) {
    const PlacedSequence& placed = placement.sequences[i];
    const auto found = std::find(placed.ranks.begin(), placed.ranks.end(), schedule.rank);
    if (found == placed.ranks.end()) continue;
    schedule.segments.push_back(
        segment_of(placed, static_cast<SequenceIndex>(i), static_cast<int>(found - placed.ranks.begin())));
  }
  std::stable_sort(schedule.segments.begin(), schedule.segments.end(), runs_before);

  for (Segment& segment : schedule.segments) {
    segment.local_begin = schedule.num_tokens;
    schedule.num_tokens += segment.num_tokens;
    if (!segment.config.is_whole()) continue;
    ++schedule.num_whole;
    if (schedule.whole_groups.empty() || schedule.whole_groups.back().length != segment.num_tokens) {
      schedule.whole_groups.push_back({segment.num_tokens, 0, segment.local_begin});
    }
    ++schedule.whole_groups.back().count;
  }
}

}  // namespace zellige
