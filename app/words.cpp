// SPDX-License-Identifier: Apache-2.0
#include "words.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
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

// "0, 1, 2, 3"; longer lists with runs drawn together: "0 to 63, 80".
std::string rank_list(const std::vector<Rank>& ranks, std::string_view separator) {
  constexpr std::size_t kListed = 8;
  if (ranks.size() <= kListed) return fmt::format("{}", fmt::join(ranks, separator));
  std::vector<std::string> runs;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - begin < 3) end = begin + 1;
    runs.push_back(end - begin == 1 ? std::to_string(ranks[begin])
                                    : fmt::format("{} to {}", ranks[begin], ranks[end - 1]));
    begin = end;
  }
  return fmt::format("{}", fmt::join(runs, separator));
}

std::string of_shards(const PlacedSequence& sequence) {
  std::vector<std::string> ways;
  if (sequence.config.q > 1) ways.push_back(fmt::format("queries {} ways (all-gather)", sequence.config.q));
  if (sequence.config.h > 1) ways.push_back(fmt::format("heads {} ways (Ulysses)", sequence.config.h));
  if (sequence.config.k > 1) ways.push_back(fmt::format("keys {} ways (ring)", sequence.config.k));
  return fmt::format("{} ({} {}, {} tokens) is split over ranks {}: {}; {} and {} a rank\n", printable(sequence.id),
                     name(sequence.kind), printable(sequence.bucket), grouped(sequence.tokens.value),
                     rank_list(sequence.ranks, ", "), fmt::join(ways, ", "), seconds(sequence.time),
                     gibibytes(sequence.memory));
}

// The first pair of split sequences whose rank sets differ and share a rank: what disjoint groups can't do.
std::string of_overlap(const Sequences& split, int ranks) {
  // Until a pair is found, all sequences on a rank have the same set: the first of them stands for all.
  std::vector<std::pair<const PlacedSequence*, std::vector<Rank>>> first_on(ranks);
  for (const auto* sequence : split) {
    std::vector<Rank> set = sequence->ranks;
    std::sort(set.begin(), set.end());
    for (const Rank rank : set) {
      auto& [other, others_set] = first_on.at(rank);
      if (other != nullptr && others_set != set) {
        return fmt::format("rank sets overlap: {} on {}, {} on {}\n", printable(other->id),
                           rank_list(other->ranks, ","), printable(sequence->id), rank_list(sequence->ranks, ","));
      }
      if (other == nullptr) first_on[rank] = {sequence, set};
    }
  }
  return "";
}

// "shards of a, b; whole 3 x 1080p". Of many shards the first ones are named.
std::string of_rank(int rank, const Sequences& shards, const Sequences& whole, const Plan& plan) {
  constexpr std::size_t kNamed = 16;
  std::vector<std::string> parts;
  if (!shards.empty()) {
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < std::min(shards.size(), kNamed); ++i) ids.push_back(printable(shards[i]->id));
    std::string more;
    if (shards.size() > kNamed) more = fmt::format(" and {} more", grouped(std::ssize(shards) - std::ssize(ids)));
    parts.push_back(fmt::format("shards of {}{}", fmt::join(ids, ", "), more));
  }
  if (!whole.empty()) parts.push_back("whole " + by_bucket(whole));
  const std::string all = parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, "; "));
  return fmt::format("rank {}: {}; {}, {}\n", rank, all, seconds(plan.load[rank]), gibibytes(plan.memory[rank]));
}

}  // namespace

std::string in_words(const Plan& plan, int most) {
  std::string text;
  std::vector<Sequences> whole(plan.placement.ranks), shards(plan.placement.ranks);
  Sequences split;
  for (const auto& sequence : plan.placement.sequences) {
    for (Rank rank : sequence.ranks) (sequence.config.is_whole() ? whole : shards).at(rank).push_back(&sequence);
    if (!sequence.config.is_whole()) split.push_back(&sequence);
  }
  const auto shown = [most](std::int64_t count) { return std::min<std::int64_t>(count, most); };
  const auto others = [&](std::int64_t count, const std::string& noun) {
    return count > most ? fmt::format("and {}\n", plural(count - most, noun)) : std::string();
  };
  for (std::int64_t i = 0; i < shown(std::ssize(split)); ++i) text += of_shards(*split[i]);
  text += others(std::ssize(split), "more split sequence");
  text += split.empty() ? "every sequence is whole: nothing is exchanged\n" : of_overlap(split, plan.placement.ranks);
  for (int r = 0; r < shown(plan.placement.ranks); ++r) text += of_rank(r, shards[r], whole[r], plan);
  return text + others(plan.placement.ranks, "more rank");
}

}  // namespace zellige::app
