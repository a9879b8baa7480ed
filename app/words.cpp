// SPDX-License-Identifier: Apache-2.0
#include "words.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "numbers.h"
#include "zellige/text.h"

namespace zellige::app {
namespace {

using Sequences = std::vector<const PlacedSequence*>;

// "3 x 1080p, 2 x 720p", in order of first appearance.
std::string by_bucket(const Sequences& sequences) {
  std::vector<std::pair<std::string, int>> counts;
  for (const auto* sequence : sequences) {
    auto found =
        std::find_if(counts.begin(), counts.end(), [&](const auto& entry) { return entry.first == sequence->bucket; });
    if (found == counts.end()) found = counts.insert(counts.end(), {sequence->bucket, 0});
    ++found->second;
  }
  std::vector<std::string> parts;
  for (const auto& [bucket, count] : counts) parts.push_back(fmt::format("{} x {}", count, printable(bucket)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string of_shards(const PlacedSequence& sequence) {
  std::vector<std::string> ways;
  if (sequence.config.q > 1) ways.push_back(fmt::format("queries {} ways (all-gather)", sequence.config.q));
  if (sequence.config.h > 1) ways.push_back(fmt::format("heads {} ways (Ulysses)", sequence.config.h));
  if (sequence.config.k > 1) ways.push_back(fmt::format("keys {} ways (ring)", sequence.config.k));
  return fmt::format("{} ({} {}, {} tokens) is split over ranks {}: {}; {} and {} a rank\n", printable(sequence.id),
                     name(sequence.kind), printable(sequence.bucket), grouped(sequence.tokens.value),
                     fmt::join(sequence.ranks, ", "), fmt::join(ways, ", "), seconds(sequence.time),
                     gibibytes(sequence.memory));
}

bool overlap(const PlacedSequence& a, const PlacedSequence& b) {
  std::vector<Rank> left = a.ranks, right = b.ranks, both;
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  std::set_intersection(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both));
  return !both.empty() && left != right;
}

// The first pair of split sequences whose rank sets differ and share a rank: what disjoint groups can't do.
std::string of_overlap(const Sequences& split) {
  for (std::size_t i = 0; i < split.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!overlap(*split[j], *split[i])) continue;
      return fmt::format("rank sets overlap: {} on {}, {} on {}\n", printable(split[j]->id),
                         fmt::join(split[j]->ranks, ","), printable(split[i]->id), fmt::join(split[i]->ranks, ","));
    }
  }
  return "";
}

std::string of_rank(int rank, const Sequences& shards, const Sequences& whole, const Plan& plan) {
  std::vector<std::string> parts;
  if (!shards.empty()) {
    std::vector<std::string> ids;
    for (const auto* sequence : shards) ids.push_back(printable(sequence->id));
    parts.push_back(fmt::format("shards of {}", fmt::join(ids, ", ")));
  }
  if (!whole.empty()) parts.push_back("whole " + by_bucket(whole));
  const std::string all = parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, "; "));
  return fmt::format("rank {}: {}; {}, {}\n", rank, all, seconds(plan.load[rank]), gibibytes(plan.memory[rank]));
}

}  // namespace

std::string in_words(const Plan& plan) {
  std::string text;
  std::vector<Sequences> whole(plan.placement.ranks), shards(plan.placement.ranks);
  Sequences split;
  for (const auto& sequence : plan.placement.sequences) {
    for (Rank rank : sequence.ranks) (sequence.config.is_whole() ? whole : shards).at(rank).push_back(&sequence);
    if (sequence.config.is_whole()) continue;
    split.push_back(&sequence);
    text += of_shards(sequence);
  }
  text += split.empty() ? "every sequence is whole: nothing is exchanged\n" : of_overlap(split);
  for (int r = 0; r < plan.placement.ranks; ++r) text += of_rank(r, shards[r], whole[r], plan);
  return text;
}

}  // namespace zellige::app
