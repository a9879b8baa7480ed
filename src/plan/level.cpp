// SPDX-License-Identifier: Apache-2.0
#include "plan/level.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace zellige {
namespace {

/// Partners looked at for one trade: the emptiest ranks. More find little that these do not.
constexpr std::size_t kPartners = 16;

}  // namespace

Leveller::Leveller(const Problem& problem, CountSolution& solution)
    : problem_(problem),
      solution_(solution),
      load_(rank_times(problem, solution)),
      memory_(rank_memory(problem, solution)) {
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    for (std::size_t j = 0; j < problem.groups[g].options.size(); ++j) {
      const Option& option = problem.groups[g].options[j];
      if (!option.is_split()) kinds_.push_back({g, j, option.time_us, option.memory_bytes});
    }
  }
}

std::int64_t Leveller::held(int kind, std::size_t rank) const {
  return solution_.x[kinds_[kind].group][kinds_[kind].option][rank];
}

std::optional<std::int64_t> Leveller::load_after(std::size_t from, const Trade& trade) const {
  const Kind& given = kinds_[trade.give];
  const Kind taken = trade.take < 0 ? Kind{0, 0, 0, 0} : kinds_[trade.take];
  if (trade.give_count > held(trade.give, from)) return std::nullopt;
  if (trade.take >= 0 && trade.take_count > held(trade.take, trade.partner)) return std::nullopt;
  const std::int64_t bytes = trade.give_count * given.memory_bytes - trade.take_count * taken.memory_bytes;
  if (bytes > 0 && bytes > room(trade.partner)) return std::nullopt;
  if (bytes < 0 && -bytes > room(from)) return std::nullopt;
  const std::int64_t time = trade.give_count * given.time_us - trade.take_count * taken.time_us;
  return std::max(load_[from] - time, load_[trade.partner] + time);
}

void Leveller::apply(std::size_t from, const Trade& trade) {
  const auto move = [&](int kind, std::int64_t count, std::size_t out_of, std::size_t into) {
    if (kind < 0) return;
    const Kind& it = kinds_[kind];
    auto& counts = solution_.x[it.group][it.option];
    counts[out_of] -= count;
    counts[into] += count;
    load_[out_of] -= count * it.time_us;
    load_[into] += count * it.time_us;
    memory_[out_of] -= count * it.memory_bytes;
    memory_[into] += count * it.memory_bytes;
  };
  move(trade.give, trade.give_count, from, trade.partner);
  move(trade.take, trade.take_count, trade.partner, from);
}

bool Leveller::shed_memory(std::int64_t work) {
  const int kinds = static_cast<int>(kinds_.size());
  while (work > 0) {
    const std::size_t fullest = std::max_element(memory_.begin(), memory_.end()) - memory_.begin();
    const std::int64_t over = -room(fullest);
    if (over <= 0) return true;
    Trade best;
    std::int64_t best_excess = over, best_load = std::numeric_limits<std::int64_t>::max();
    for (std::size_t partner = 0; partner < memory_.size(); ++partner) {
      if (partner == fullest || room(partner) <= 0) continue;
      for (int give = 0; give < kinds; ++give) {
        if (held(give, fullest) == 0) continue;
        for (int take = -1; take < kinds; ++take) {
          --work;
          if (take == give || (take >= 0 && held(take, partner) == 0)) continue;
          const std::int64_t bytes = kinds_[give].memory_bytes - (take < 0 ? 0 : kinds_[take].memory_bytes);
          if (bytes <= 0) continue;
          std::int64_t count = std::min(held(give, fullest), room(partner) / bytes);
          if (take >= 0) count = std::min(count, held(take, partner));
          count = std::min(count, (over + bytes - 1) / bytes);
          if (count <= 0) continue;
          const std::int64_t excess = std::max<std::int64_t>(0, over - count * bytes);
          const std::int64_t time = kinds_[give].time_us - (take < 0 ? 0 : kinds_[take].time_us);
          const std::int64_t load = std::max(load_[fullest] - count * time, load_[partner] + count * time);
          if (excess < best_excess || (excess == best_excess && load < best_load)) {
            best = {give, take, partner, count, take < 0 ? 0 : count};
            best_excess = excess;
            best_load = load;
          }
        }
      }
    }
    if (best.give_count == 0) return false;
    apply(fullest, best);
  }
  return room(std::max_element(memory_.begin(), memory_.end()) - memory_.begin()) >= 0;
}

std::int64_t Leveller::level_load(std::int64_t target_us, std::int64_t work) {
  const int kinds = static_cast<int>(kinds_.size());
  std::vector<std::size_t> order(load_.size());
  while (true) {
    const std::size_t fullest = std::max_element(load_.begin(), load_.end()) - load_.begin();
    if (load_[fullest] <= target_us || work <= 0) break;
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t partners = std::min(kPartners, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(partners), order.end(),
                      [&](std::size_t a, std::size_t b) { return load_[a] != load_[b] ? load_[a] < load_[b] : a < b; });
    work -= static_cast<std::int64_t>(order.size()) / 4;
    Trade best;
    std::int64_t best_load = load_[fullest];
    for (std::size_t p = 0; p < partners; ++p) {
      const std::size_t partner = order[p];
      const std::int64_t difference = load_[fullest] - load_[partner];
      const auto consider = [&](const Trade& trade) {
        if (trade.give_count < 1 || trade.take_count < 0) return;
        const std::optional<std::int64_t> load = load_after(fullest, trade);
        if (load && *load < best_load) best_load = *load, best = trade;
      };
      for (int give = 0; give < kinds && difference > 1; ++give) {
        const std::int64_t at_most = held(give, fullest);
        if (at_most == 0) continue;
        const Kind& given = kinds_[give];
        const std::int64_t free = std::max<std::int64_t>(0, room(partner));
        for (int take = -1; take < kinds; ++take) {
          --work;
          if (take == give || (take >= 0 && held(take, partner) == 0)) continue;
          const Kind taken = take < 0 ? Kind{0, 0, 0, 0} : kinds_[take];
          // One against one, as often as brings both to the middle.
          if (const std::int64_t time = given.time_us - taken.time_us; time > 0) {
            const std::int64_t middle = std::min(at_most, difference / 2 / time);
            for (const std::int64_t count : {middle, middle + 1}) {
              consider({give, take, partner, count, take < 0 ? 0 : count});
            }
          }
          // Where the partner's memory is full: back comes what makes room, in pieces of less time a byte.
          if (take < 0 || taken.memory_bytes == 0) {
            if (given.memory_bytes > 0) consider({give, -1, partner, std::min(at_most, free / given.memory_bytes), 0});
            continue;
          }
          const double net = static_cast<double>(given.time_us) - static_cast<double>(taken.time_us) *
                                                                      static_cast<double>(given.memory_bytes) /
                                                                      static_cast<double>(taken.memory_bytes);
          if (net <= 0) continue;
          const auto middle = static_cast<std::int64_t>(
              std::min(static_cast<double>(at_most), static_cast<double>(difference) / 2 / net));
          for (const std::int64_t count : {std::int64_t{1}, middle, middle + 1}) {
            const std::int64_t missing = std::max<std::int64_t>(0, count * given.memory_bytes - free);
            consider({give, take, partner, count, (missing + taken.memory_bytes - 1) / taken.memory_bytes});
          }
        }
      }
    }
    if (best.give_count == 0) break;
    apply(fullest, best);
  }
  return *std::max_element(load_.begin(), load_.end());
}

}  // namespace zellige
