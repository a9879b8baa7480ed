// SPDX-License-Identifier: Apache-2.0
#include "plan/own/bin_completion.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace zellige::own {
namespace {

constexpr double kWorthTolerance = 1e-7;

}  // namespace

BinCompletion::Outcome BinCompletion::pack(const Task& task, std::int64_t work_limit) {
  pieces_.clear();
  patterns_.clear();
  failed_.clear();
  stopped_ = false;
  work_end_ = work_ + work_limit;
  load_limit_us_ = task.load_limit_us;
  load_spare_ = task.load_limit_us * task.ranks;
  memory_spare_ = model_.memory_cap_bytes * task.ranks;
  std::int64_t exchange_spare = load_spare_;
  worth_spare_ = task.ranks;
  has_worth_ = !task.worth.empty();
  for (int t = 0; t < model_.num_types(); ++t) {
    if (task.pieces[t] == 0) continue;
    const PieceType& type = model_.types[t];
    Piece piece{t,
                type.time_us,
                type.memory_bytes,
                type.exchange_us,
                task.most[t],
                task.pieces[t],
                has_worth_ ? task.worth[t] : 0};
    if (type.load_us() > load_limit_us_ || piece.left > piece.most * task.ranks) return Outcome::none;
    load_spare_ -= piece.left * piece.time_us;
    exchange_spare -= piece.left * piece.exchange_us;
    memory_spare_ -= piece.left * piece.memory_bytes;
    worth_spare_ -= static_cast<double>(piece.left) * piece.worth;
    pieces_.push_back(piece);
  }
  std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
    return std::tuple(-a.time_us, -a.memory_bytes, a.type) < std::tuple(-b.time_us, -b.memory_bytes, b.type);
  });
  chosen_.assign(pieces_.size(), 0);
  if (load_spare_ < 0 || memory_spare_ < 0 || exchange_spare < 0 || worth_spare_ < -kWorthTolerance)
    return Outcome::none;
  if (place_rank(task.ranks)) {
    std::reverse(patterns_.begin(), patterns_.end());
    return Outcome::packed;
  }
  return stopped_ ? Outcome::out_of_work : Outcome::none;
}

std::uint64_t BinCompletion::state_hash(int ranks_left) const {
  std::uint64_t hash = static_cast<std::uint64_t>(ranks_left) * 0x9E3779B97F4A7C15u;
  for (const Piece& piece : pieces_) {
    hash ^= static_cast<std::uint64_t>(piece.left);
    hash *= 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  }
  return hash;
}

/// Fills the ranks that are left. On success patterns_ gets their patterns, the last rank's first.
bool BinCompletion::place_rank(int ranks_left) {
  std::size_t first = 0;
  while (first < pieces_.size() && pieces_[first].left == 0) ++first;
  if (first == pieces_.size()) {
    const Pattern empty{std::vector<std::int32_t>(model_.num_types(), 0), 0, 0};
    patterns_.insert(patterns_.end(), static_cast<std::size_t>(ranks_left), empty);
    return true;
  }
  if (ranks_left == 0) return false;
  const std::uint64_t hash = state_hash(ranks_left);
  if (failed_.contains(hash)) return false;
  // Pieces of before are gone from the spare sums only once the rank is closed, so the nested choice starts at zero.
  if (choose(first, ranks_left, {}, true)) return true;
  if (!stopped_) failed_.insert(hash);
  return false;
}

bool BinCompletion::choose(std::size_t index, int ranks_left, const Sums& sums, bool forced) {
  if (++work_ > work_end_) {
    stopped_ = true;
    return false;
  }
  if (index == pieces_.size()) {
    const std::int64_t load_waste = load_limit_us_ - sums.load;
    const std::int64_t memory_waste = model_.memory_cap_bytes - sums.memory;
    const double worth_waste = 1 - sums.worth;
    if (load_waste > load_spare_ || memory_waste > memory_spare_) return false;
    if (has_worth_ && worth_waste > worth_spare_ + kWorthTolerance) return false;
    std::vector<std::int64_t> mine = chosen_;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].left - mine[i] > pieces_[i].most * (ranks_left - 1)) return false;
    }
    for (std::size_t i = 0; i < pieces_.size(); ++i) pieces_[i].left -= mine[i];
    load_spare_ -= load_waste;
    memory_spare_ -= memory_waste;
    worth_spare_ -= worth_waste;
    std::fill(chosen_.begin(), chosen_.end(), 0);
    const bool done = place_rank(ranks_left - 1);
    load_spare_ += load_waste;
    memory_spare_ += memory_waste;
    worth_spare_ += worth_waste;
    for (std::size_t i = 0; i < pieces_.size(); ++i) pieces_[i].left += mine[i];
    chosen_ = mine;
    if (done) {
      Pattern pattern{std::vector<std::int32_t>(model_.num_types(), 0), sums.load, sums.memory, sums.exchange};
      for (std::size_t i = 0; i < pieces_.size(); ++i) {
        pattern.pieces[pieces_[i].type] = static_cast<std::int32_t>(mine[i]);
      }
      patterns_.push_back(std::move(pattern));
    }
    return done;
  }
  // What the rest could still bring.
  std::int64_t reach_load = sums.load, reach_memory = sums.memory;
  double reach_worth = sums.worth;
  for (std::size_t i = index; i < pieces_.size(); ++i) {
    const std::int64_t most = std::min(pieces_[i].left, pieces_[i].most);
    reach_load += most * pieces_[i].time_us;
    reach_memory += most * pieces_[i].memory_bytes;
    reach_worth += static_cast<double>(most) * pieces_[i].worth;
  }
  work_ += static_cast<std::int64_t>(pieces_.size() - index) / 4;
  if (load_limit_us_ - reach_load > load_spare_ || model_.memory_cap_bytes - reach_memory > memory_spare_) return false;
  if (has_worth_ && 1 - reach_worth > worth_spare_ + kWorthTolerance) return false;

  const Piece& piece = pieces_[index];
  std::int64_t most = std::min({piece.left, piece.most, (load_limit_us_ - sums.load) / piece.time_us});
  if (piece.memory_bytes > 0) most = std::min(most, (model_.memory_cap_bytes - sums.memory) / piece.memory_bytes);
  if (piece.exchange_us > 0) most = std::min(most, (load_limit_us_ - sums.exchange) / piece.exchange_us);
  const std::int64_t least = std::max<std::int64_t>(forced ? 1 : 0, piece.left - piece.most * (ranks_left - 1));
  for (std::int64_t count = most; count >= least; --count) {
    chosen_[index] = count;
    const Sums next{sums.load + count * piece.time_us, sums.memory + count * piece.memory_bytes,
                    sums.exchange + count * piece.exchange_us, sums.worth + static_cast<double>(count) * piece.worth};
    if (choose(index + 1, ranks_left, next, false)) {
      return true;
    }
    if (stopped_) break;
  }
  chosen_[index] = 0;
  return false;
}

bool list_schedule(const Model& model, const TypeCounts& counts, Packing& packing) {
  packing.counts = counts;
  packing.patterns.resize(model.ranks);
  for (Pattern& pattern : packing.patterns) {
    pattern.pieces.assign(model.num_types(), 0);
    pattern.time_us = pattern.memory_bytes = pattern.exchange_us = 0;
  }
  return schedule_missing(model, packing);
}

bool schedule_missing(const Model& model, Packing& packing) {
  const TypeCounts& counts = packing.counts;
  TypeCounts missing(model.num_types());
  for (int t = 0; t < model.num_types(); ++t) {
    missing[t] = counts[t] * model.types[t].degree;
    for (const Pattern& pattern : packing.patterns) missing[t] -= pattern.pieces[t];
  }
  std::vector<int> order(model.num_types());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::tuple(-model.types[a].load_us(), a) < std::tuple(-model.types[b].load_us(), b);
  });
  std::vector<int> heap;
  for (const int t : order) {
    if (missing[t] == 0) continue;
    const PieceType& type = model.types[t];
    const auto has_room = [&](int rank) {
      const Pattern& pattern = packing.patterns[rank];
      return pattern.pieces[t] < counts[t] && pattern.memory_bytes + type.memory_bytes <= model.memory_cap_bytes;
    };
    // The load that the next piece would bring a rank to, less what every rank gets alike.
    const auto load = [patterns = packing.patterns.data(), ahead_us = type.exchange_us - type.time_us](int rank) {
      return std::max(patterns[rank].time_us, patterns[rank].exchange_us + ahead_us);
    };
    const auto later = [load](int a, int b) {
      const std::int64_t first = load(a), second = load(b);
      return first != second ? first > second : a > b;
    };
    heap.clear();
    for (int rank = 0; rank < model.ranks; ++rank) {
      if (has_room(rank)) heap.push_back(rank);
    }
    std::make_heap(heap.begin(), heap.end(), later);
    for (std::int64_t left = missing[t]; left > 0; --left) {
      if (heap.empty()) return false;
      std::pop_heap(heap.begin(), heap.end(), later);
      const int rank = heap.back();
      Pattern& pattern = packing.patterns[rank];
      ++pattern.pieces[t];
      pattern.time_us += type.time_us;
      pattern.memory_bytes += type.memory_bytes;
      pattern.exchange_us += type.exchange_us;
      if (has_room(rank)) {
        std::push_heap(heap.begin(), heap.end(), later);
      } else {
        heap.pop_back();
      }
    }
  }
  return true;
}

}  // namespace zellige::own
