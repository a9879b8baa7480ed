// SPDX-License-Identifier: Apache-2.0
#include "plan/own/pattern_lp.h"

#include <algorithm>
#include <cmath>

namespace zellige::own {
namespace {

/// How long pricing goes on after a pattern that helps, looking for a better one.
constexpr std::size_t kCandidates = 12;
constexpr std::int64_t kWorkAfterFound = 1'000;

std::int64_t divided_up(std::int64_t value, std::int64_t by) {
  return value >= 0 ? (value + by - 1) / by : -((-value) / by);
}

}  // namespace

PieceValues piece_values(const Model& model, const Question& question, const Multipliers& multipliers) {
  PieceValues values;
  values.piece.resize(model.num_types());
  for (int g = 0; g < model.num_groups(); ++g) {
    std::int64_t sequence = multipliers.group[g];
    for (int t = model.first[g]; t < model.first[g + 1]; ++t) {
      sequence += multipliers.tail[t];
      const PieceType& type = model.types[t];
      const std::int64_t worth = sequence - (type.degree > 1 ? multipliers.split : 0);
      values.piece[t] = divided_up(worth * model.unit, type.degree);
    }
  }
  for (std::size_t h = 0; h < question.holders.size(); ++h) {
    if (multipliers.holders[h] == 0) continue;
    const HolderLimit& limit = question.holders[h];
    values.steps.push_back({limit.type, limit.at_least, multipliers.holders[h] * model.unit});
  }
  return values;
}

Wide128 total_value(const Model& model, const Question& question, const Multipliers& multipliers) {
  Wide128 total = 0;
  for (int g = 0; g < model.num_groups(); ++g) {
    total += static_cast<Wide128>(multipliers.group[g]) * model.count[g];
  }
  const auto limited = [](std::int64_t multiplier, std::int64_t least, std::int64_t most) {
    return static_cast<Wide128>(multiplier) * (multiplier > 0 ? least : most);
  };
  for (int t = 0; t < model.num_types(); ++t) {
    total += limited(multipliers.tail[t], question.box.least[t], question.box.most[t]);
  }
  for (std::size_t h = 0; h < question.holders.size(); ++h) {
    total += limited(multipliers.holders[h], question.holders[h].least, question.holders[h].most);
  }
  return total * model.unit;
}

PatternLp::PatternLp(const Model& model, PatternSearch& search) : model_(model), search_(search) {
  // As many pieces of one type as a rank may hold: every group can be covered from the start.
  for (int t = 0; t < model.num_types(); ++t) {
    for (const std::int64_t pieces : {std::int64_t{1}, model.count[model.group_of(t)]}) {
      const PieceType& type = model.types[t];
      std::int64_t most = pieces;
      if (type.memory_bytes > 0) most = std::min(most, model.memory_cap_bytes / type.memory_bytes);
      if (most < 1) continue;
      Pattern pattern{std::vector<std::int32_t>(model.num_types(), 0), most * type.time_us, most * type.memory_bytes,
                      most * type.exchange_us};
      pattern.pieces[t] = static_cast<std::int32_t>(most);
      add_pattern(pattern);
    }
  }
}

void PatternLp::add_pattern(const Pattern& pattern) {
  PoolPattern entry{pattern, {}, std::vector<double>(model_.num_types(), 0), 0};
  for (int g = 0; g < model_.num_groups(); ++g) {
    double worth = 0;
    for (int t = model_.first[g + 1] - 1; t >= model_.first[g]; --t) {
      if (pattern.pieces[t] > 0) {
        entry.pieces.emplace_back(t, pattern.pieces[t]);
        const double part = static_cast<double>(pattern.pieces[t]) / model_.types[t].degree;
        worth += part;
        if (model_.types[t].degree > 1) entry.split += part;
      }
      entry.tail[t] = worth;
    }
  }
  pool_.push_back(std::move(entry));
}

void PatternLp::make_rows(const Question& question) {
  rows_.clear();
  for (int g = 0; g < model_.num_groups(); ++g) {
    rows_.push_back({Row::Kind::group, g, true, static_cast<double>(model_.count[g])});
  }
  for (int t = 0; t < model_.num_types(); ++t) {
    const int g = model_.group_of(t);
    if (t == model_.first[g]) continue;
    const auto least = static_cast<double>(question.box.least[t]);
    const auto most = static_cast<double>(question.box.most[t]);
    // A bound that follows from a neighbour's needs no row of its own.
    const bool least_follows = t + 1 < model_.first[g + 1] && question.box.least[t + 1] == question.box.least[t];
    const bool most_follows = question.box.most[t - 1] == question.box.most[t];
    if (least > 0 && !least_follows) rows_.push_back({Row::Kind::tail, t, true, least});
    if (most > 0 && !most_follows) rows_.push_back({Row::Kind::tail, t, false, most});
  }
  for (std::size_t h = 0; h < question.holders.size(); ++h) {
    const HolderLimit& limit = question.holders[h];
    if (limit.least > 0) {
      rows_.push_back({Row::Kind::holders, static_cast<int>(h), true, static_cast<double>(limit.least)});
    }
    if (limit.most < model_.ranks) {
      rows_.push_back({Row::Kind::holders, static_cast<int>(h), false, static_cast<double>(limit.most)});
    }
  }
  if (question.splits_most) {
    rows_.push_back({Row::Kind::split, 0, false, static_cast<double>(*question.splits_most)});
  }
}

bool PatternLp::is_allowed(const PoolPattern& entry, const Question& question, std::int64_t load_limit_us) const {
  if (entry.pattern.load_us() > load_limit_us) return false;
  int group = -1;
  std::int64_t taken = 0, first_most = 0;
  // pieces come group by group, from the last type of a group to the first.
  for (const auto& [t, pieces] : entry.pieces) {
    const int g = model_.group_of(t);
    if (g != group) {
      group = g;
      taken = 0;
      first_most = model_.count[g];
    }
    const bool is_last = t + 1 == model_.first[g + 1];
    const std::int64_t entry_most = model_.count[g] - (is_last ? 0 : question.box.least[t + 1]);
    const auto count = static_cast<std::int64_t>(pieces);
    taken += count;
    if (taken > question.box.most[t] || taken > first_most) return false;
    // All pieces of types <= t, this one's and those to come.
    std::int64_t rest = 0;
    for (int lower = t; lower >= model_.first[g]; --lower) rest += entry.pattern.pieces[lower];
    if (rest > entry_most) return false;
  }
  return true;
}

double PatternLp::coefficient(const Row& row, const PoolPattern& entry, const Question& question) const {
  switch (row.kind) {
    case Row::Kind::group: return entry.tail[model_.first[row.index]];
    case Row::Kind::tail: return entry.tail[row.index];
    case Row::Kind::split: return entry.split;
    case Row::Kind::holders: break;
  }
  const HolderLimit& limit = question.holders[row.index];
  return entry.pattern.pieces[limit.type] >= limit.at_least ? 1 : 0;
}

Multipliers PatternLp::rounded(const Question& question) const {
  Multipliers result{std::vector<std::int64_t>(model_.num_groups(), 0),
                     std::vector<std::int64_t>(model_.num_types(), 0),
                     std::vector<std::int64_t>(question.holders.size(), 0), 0};
  // Integers so large that rounding is far below what matters, so small that the sums of a pattern stay below 2^50.
  double largest = 1;
  std::int64_t pieces = 1;
  const std::vector<double>& duals = lp_.duals();
  for (const double dual : duals) largest = std::max(largest, std::fabs(dual));
  for (const std::int64_t count : model_.count) pieces += count;
  const double most =
      std::min(0x1.0p44, 0x1.0p50 / (largest * static_cast<double>(pieces) * static_cast<double>(rows_.size())));
  // JSON readers hold integers up to 2^53 exactly.
  const double scale = std::min(most / static_cast<double>(model_.unit), 0x1.0p52 / largest);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    std::int64_t value = std::llround(duals[i] * scale);
    value = rows_[i].is_cover ? std::max<std::int64_t>(0, value) : std::min<std::int64_t>(0, value);
    switch (rows_[i].kind) {
      case Row::Kind::group: result.group[rows_[i].index] = value; break;
      case Row::Kind::tail: result.tail[rows_[i].index] += value; break;
      case Row::Kind::holders: result.holders[rows_[i].index] += value; break;
      case Row::Kind::split: result.split = -value; break;
    }
  }
  return result;
}

void PatternLp::read() {
  counts_.assign(model_.num_types(), 0);
  shares_.clear();
  last_basis_ = lp_.basis();
  for (const auto& [p, ranks] : lp_.values()) {
    const PoolPattern& entry = pool_[p];
    shares_.push_back({&entry.pattern, ranks});
    for (const auto& [t, pieces] : entry.pieces) counts_[t] += ranks * pieces / model_.types[t].degree;
  }
}

PatternLp::Answer PatternLp::ask(const Question& question, std::int64_t load_limit_us, std::int64_t work_limit) {
  make_rows(question);
  const int size = static_cast<int>(rows_.size());
  const double dear = 1e4 * model_.ranks;
  usable_.clear();
  for (std::size_t p = 0; p < pool_.size(); ++p) {
    if (is_allowed(pool_[p], question, load_limit_us)) usable_.push_back(static_cast<int>(p));
  }
  work_ += static_cast<std::int64_t>(4 * pool_.size());
  std::vector<CoverLp::Row> rows;
  for (const Row& row : rows_) rows.push_back({row.is_cover, row.right});
  lp_.start(std::move(rows), dear);
  const std::int64_t end = work_ + search_.work() + work_limit;
  // What served the last question is likely to serve this one.
  candidates_.clear();
  for (const int p : last_basis_) {
    if (is_allowed(pool_[p], question, load_limit_us)) candidates_.push_back(p);
  }
  std::vector<double> column(size), piece(model_.num_types());
  for (int iteration = 0;; ++iteration) {
    work_ += size * size;
    if (!lp_.has_artificial() && lp_.objective() <= model_.ranks + 1e-9) {
      read();
      return Answer::fits;
    }
    if (iteration > 400 || work_ + search_.work() > end) break;

    int entering = 0;  // 0: none; p + 1: pool; -1 - i: slack
    double best = 1e-9;
    if (const int slack = lp_.entering_slack(); slack >= 0) best = lp_.slack_gain(slack), entering = -1 - slack;
    const std::vector<double>& duals = lp_.duals();
    std::fill(piece.begin(), piece.end(), 0);
    double split_dual = 0;
    bool has_steps = false;
    for (int i = 0; i < size; ++i) {
      switch (rows_[i].kind) {
        case Row::Kind::group: piece[model_.first[rows_[i].index]] += duals[i]; break;
        case Row::Kind::tail: piece[rows_[i].index] += duals[i]; break;
        case Row::Kind::split: split_dual = duals[i]; break;
        case Row::Kind::holders: has_steps = true; break;
      }
    }
    for (int t = 0; t < model_.num_types(); ++t) {
      if (t != model_.first[model_.group_of(t)]) piece[t] += piece[t - 1];
    }
    for (int t = 0; t < model_.num_types(); ++t) {
      if (model_.types[t].degree > 1) piece[t] += split_dual;
    }
    for (int t = 0; t < model_.num_types(); ++t) piece[t] /= model_.types[t].degree;
    const auto gain_of = [&](int p) {
      double value = -1;
      for (const auto& [t, pieces] : pool_[p].pieces) value += piece[t] * pieces;
      if (has_steps) {
        for (int i = 0; i < size; ++i) {
          if (rows_[i].kind == Row::Kind::holders) value += duals[i] * coefficient(rows_[i], pool_[p], question);
        }
      }
      return value;
    };
    // The few patterns that were best at the last look over the whole pool come first.
    for (const int p : candidates_) {
      if (const double value = gain_of(p); value > best) best = value, entering = p + 1;
    }
    work_ += static_cast<std::int64_t>(3 * candidates_.size());
    if (entering <= 0) {
      gains_.clear();
      for (const int p : usable_) {
        if (const double value = gain_of(p); value > 1e-9) gains_.emplace_back(-value, p);
      }
      const std::size_t few = std::min(gains_.size(), kCandidates);
      std::partial_sort(gains_.begin(), gains_.begin() + static_cast<std::ptrdiff_t>(few), gains_.end());
      candidates_.clear();
      for (std::size_t i = 0; i < few; ++i) candidates_.push_back(gains_[i].second);
      if (few > 0 && -gains_[0].first > best) entering = gains_[0].second + 1;
      work_ += static_cast<std::int64_t>(3 * usable_.size());
    }
    if (entering == 0) {
      multipliers_ = rounded(question);
      const PieceValues values = piece_values(model_, question, multipliers_);
      Wide128 total = total_value(model_, question, multipliers_);
      if (question.splits_most) {
        total -= static_cast<Wide128>(multipliers_.split) * model_.unit * *question.splits_most;
      }
      // A rank must be worth the mean: where no pattern is, the question is refuted; else that pattern helps.
      const auto mean = static_cast<std::int64_t>((total - 1) / model_.ranks);
      if (total <= 0) break;
      found_.clear();
      const PatternSearch::Best most = search_.max_value(question.box, values, load_limit_us, mean,
                                                         end - work_ - search_.work(), kWorkAfterFound, &found_);
      if (most.is_exact && found_.empty()) {
        refuting_value_ = mean;
        read();
        return Answer::refuted;
      }
      if (found_.empty()) break;
      // The best pattern, and the few before it: good columns for later, too.
      const std::size_t from = found_.size() > 3 ? found_.size() - 3 : 0;
      for (std::size_t i = from; i < found_.size(); ++i) {
        add_pattern(found_[i]);
        usable_.push_back(static_cast<int>(pool_.size()) - 1);
      }
      const int p = static_cast<int>(pool_.size()) - 1;
      const double value = gain_of(p);
      if (value <= 1e-9) break;  // no column helps: the optimum, above the number of ranks but not provably so
      entering = p + 1;
    }
    if (entering > 0) {
      for (int i = 0; i < size; ++i) column[i] = coefficient(rows_[i], pool_[entering - 1], question);
      lp_.enter(column, entering - 1);
    } else {
      lp_.enter_slack(-1 - entering);
    }
    work_ += size * size;  // the direction
    work_ += size * size;  // the basis
  }
  read();
  return Answer::unclear;
}

}  // namespace zellige::own
