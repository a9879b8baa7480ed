// SPDX-License-Identifier: Apache-2.0
#include "report/stacks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>

#include "zellige/schedule.h"

namespace zellige {
namespace {

using Colour = std::array<double, 3>;

// Light enough to stand on a dark page, dark enough for a white one.
constexpr std::array<Colour, 5> kCool = {
    {{146, 208, 219}, {90, 173, 207}, {58, 134, 194}, {66, 96, 173}, {84, 66, 146}}};
constexpr std::array<Colour, 5> kWarm = {
    {{246, 201, 98}, {243, 158, 77}, {231, 111, 62}, {208, 68, 68}, {158, 42, 92}}};

std::string colour_at(const std::array<Colour, 5>& scale, double part) {
  const double place = part * (scale.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(place), scale.size() - 2);
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text = "#";
  for (std::size_t i = 0; i < 3; ++i) {
    const auto level =
        static_cast<int>(std::lround(std::lerp(scale[low][i], scale[low + 1][i], place - static_cast<double>(low))));
    text += kDigits[level / 16];
    text += kDigits[level % 16];
  }
  return text;
}

auto bucket_key(const PlacedSequence& sequence) {
  return std::tuple(sequence.kind, sequence.tokens.value, sequence.bucket);
}

}  // namespace

std::vector<Swatch> swatches(const std::vector<Plan>& plans) {
  std::map<std::tuple<MediaKind, std::int64_t, std::string>, int> used;
  for (const Plan& plan : plans) {
    for (const PlacedSequence& sequence : plan.placement.sequences) used.emplace(bucket_key(sequence), 0);
  }
  std::array<int, 2> of_kind{};
  for (const auto& [key, unused] : used) ++of_kind[std::get<0>(key) == MediaKind::video];
  std::vector<Swatch> result;
  std::array<int, 2> seen{};
  for (const auto& [key, unused] : used) {
    const auto& [kind, tokens, bucket] = key;
    const bool video = kind == MediaKind::video;
    const int count = of_kind[video];
    // A single bucket of its kind takes the middle of the scale.
    const double part = count == 1 ? 0.5 : static_cast<double>(seen[video]++) / (count - 1);
    result.push_back({bucket, kind, {tokens}, colour_at(video ? kWarm : kCool, part)});
  }
  return result;
}

std::vector<Stack> stacks(const Placement& placement, const std::vector<Swatch>& swatches, const LoadModel& model) {
  std::map<std::tuple<MediaKind, std::int64_t, std::string>, int> index;
  for (const Swatch& swatch : swatches) {
    index.emplace(std::tuple(swatch.kind, swatch.tokens.value, swatch.bucket), static_cast<int>(index.size()));
  }
  std::vector<Stack> result(static_cast<std::size_t>(placement.ranks));
  for (std::size_t i = 0; i < placement.sequences.size(); ++i) {
    const PlacedSequence& sequence = placement.sequences[i];
    const int degree = sequence.config.degree();
    Part part{.sequence = static_cast<SequenceIndex>(i),
              .swatch = index.at(bucket_key(sequence)),
              .time = charge(sequence.time, sequence.exchange, model).time,
              .memory = sequence.memory};
    for (std::size_t at = 0; at < sequence.ranks.size(); ++at) {
      part.tokens.value = chunk(sequence.tokens.value, degree, static_cast<int>(at)).count;
      result.at(static_cast<std::size_t>(sequence.ranks[at])).push_back(part);
    }
  }
  const auto order = [&](const Part& a, const Part& b) {
    const PlacedSequence& left = placement.sequences[static_cast<std::size_t>(a.sequence)];
    const PlacedSequence& right = placement.sequences[static_cast<std::size_t>(b.sequence)];
    return std::tuple(-left.config.degree(), -left.tokens.value, a.sequence) <
           std::tuple(-right.config.degree(), -right.tokens.value, b.sequence);
  };
  for (Stack& stack : result) std::sort(stack.begin(), stack.end(), order);
  return result;
}

double value(const Part& part, Measure measure) {
  switch (measure) {
    case Measure::tokens: return static_cast<double>(part.tokens.value);
    case Measure::time: return static_cast<double>(part.time.value);
    case Measure::memory: return static_cast<double>(part.memory.value);
  }
  return 0;
}

std::vector<double> totals(const Score& score, Measure measure) {
  std::vector<double> result;
  switch (measure) {
    case Measure::tokens:
      for (const Tokens tokens : score.tokens) result.push_back(static_cast<double>(tokens.value));
      break;
    case Measure::time:
      for (const Microseconds time : score.load) result.push_back(static_cast<double>(time.value));
      break;
    case Measure::memory:
      for (const Bytes size : score.memory) result.push_back(static_cast<double>(size.value));
      break;
  }
  return result;
}

}  // namespace zellige
