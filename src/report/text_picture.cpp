// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "report/figures.h"
#include "report/stacks.h"
#include "zellige/report.h"
#include "zellige/text.h"

namespace zellige {
namespace {

constexpr char kImage = '=', kVideo = '#', kImageShard = ':';
constexpr char kVideoShards[] = {'/', '\\'};  // alternate, so that neighbours are told apart

std::string padded(std::string text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

/// The letter of every sequence's parts, the same on every rank.
std::string letters(const Placement& placement) {
  std::string result;
  int shards = 0;
  for (const PlacedSequence& sequence : placement.sequences) {
    const bool video = sequence.kind == MediaKind::video;
    if (sequence.config.is_whole()) {
      result += video ? kVideo : kImage;
    } else {
      result += video ? kVideoShards[shards++ % 2] : kImageShard;
    }
  }
  return result;
}

/// The bar of one rank; rounding is that of the running sum, so that bars of equal load are equally long.
std::string bar(const Stack& stack, std::string_view letters, double columns_a_us) {
  std::string text;
  std::int64_t sum_us = 0;
  for (const Part& part : stack) {
    sum_us += part.time.value;
    const auto end = static_cast<std::size_t>(std::llround(static_cast<double>(sum_us) * columns_a_us));
    if (end > text.size()) text.append(end - text.size(), letters[static_cast<std::size_t>(part.sequence)]);
  }
  return text;
}

}  // namespace

std::string text_picture(const Plan& plan, int width, int most_ranks) {
  if (!plan.has_placement()) {
    return "no plan (" + std::string(name(plan.status)) + ")" +
           (plan.reason.empty() ? "" : ": " + printable(plan.reason)) + "\n";
  }
  const Placement& placement = plan.placement;
  const std::vector<Stack> of_ranks = stacks(placement, swatches({plan}), plan.load_model);
  std::vector<Microseconds> loads(of_ranks.size());
  for (std::size_t i = 0; i < of_ranks.size(); ++i) {
    for (const Part& part : of_ranks[i]) loads[i] += part.time;
  }
  if (plan.load_model.is_overlapped()) loads = plan.load;  // may be an exchange that outlasts all there is beside it
  const Microseconds makespan = loads.empty() ? Microseconds{} : *std::max_element(loads.begin(), loads.end());

  const std::size_t shown = std::min(of_ranks.size(), static_cast<std::size_t>(std::max(most_ranks, 1)));
  const std::size_t number_width = std::to_string(of_ranks.size() - 1).size();
  std::size_t time_width = 0;
  for (const Microseconds load : loads) time_width = std::max(time_width, readable(load).size());
  const std::size_t beside = 5 + number_width + 2 + 2 + time_width;  // "rank N |" and "| TIME"
  constexpr std::int64_t kShortestBar = 10;
  const auto columns = static_cast<std::size_t>(std::max(kShortestBar, width - static_cast<std::int64_t>(beside)));
  const double columns_a_us =
      makespan.value > 0 ? static_cast<double>(columns) / static_cast<double>(makespan.value) : 0;

  const std::string fill = letters(placement);
  std::string picture;
  for (std::size_t i = 0; i < shown; ++i) {
    std::string filled = bar(of_ranks[i], fill, columns_a_us);
    filled.resize(columns, ' ');
    picture += "rank " + padded(std::to_string(i), number_width) + " |" + filled + "| " +
               padded(readable(loads[i]), time_width) + "\n";
  }
  if (shown < of_ranks.size()) {
    const auto [least, most] = std::minmax_element(loads.begin() + static_cast<std::ptrdiff_t>(shown), loads.end());
    picture += "and " + counted(static_cast<std::int64_t>(of_ranks.size() - shown), "more rank") + ", " +
               readable(*least) + " to " + readable(*most) + "\n";
  }
  return picture + "/\\ shards of videos  # whole videos  : shards of images  = whole images\n";
}

}  // namespace zellige
