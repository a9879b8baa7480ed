// SPDX-License-Identifier: Apache-2.0
#include "brute_force.h"

#include <algorithm>
#include <bit>

namespace zellige::testing {
namespace {

struct Search {
  const std::vector<std::vector<const Price*>>& choices;
  std::int64_t cap_bytes;
  const std::function<void(const Outcome&)>& visit;
  const LoadModel& model;
  Outcome current;                                       // load_us: prices alone
  std::vector<std::int64_t> exchange_us{}, hidden_us{};  // [ranks]

  Outcome outcome() const {
    Outcome result = current;
    if (model.kind == LoadModel::Kind::additive) return result;
    for (std::size_t r = 0; r < exchange_us.size(); ++r) {
      result.load_us[r] = std::max(current.load_us[r] - hidden_us[r], exchange_us[r]);
    }
    return result;
  }
  /// Of one price: so much of its exchange is hidden, but for the last microsecond.
  std::int64_t hidden(const Price& price) const {
    return std::min(price.exchange.value * model.hidden_per_mille / 1000, price.time.value - 1);
  }

  void place(std::size_t sequence) {
    if (sequence == choices.size()) {
      visit(outcome());
      return;
    }
    const auto ranks = static_cast<int>(current.load_us.size());
    for (const Price* price : choices[sequence]) {
      const int degree = price->config.q * price->config.h * price->config.k;
      for (unsigned set = 0; set < (1u << ranks); ++set) {
        if (std::popcount(set) != degree) continue;
        bool fits = true;
        for (int r = 0; r < ranks; ++r) {
          if ((set >> r & 1) == 0) continue;
          current.load_us[r] += price->time.value;
          exchange_us[r] += price->exchange.value;
          hidden_us[r] += hidden(*price);
          current.memory_bytes[r] += price->memory.value;
          fits = fits && current.memory_bytes[r] <= cap_bytes;
        }
        current.splits += degree > 1;
        if (fits) place(sequence + 1);
        current.splits -= degree > 1;
        for (int r = 0; r < ranks; ++r) {
          if ((set >> r & 1) == 0) continue;
          current.load_us[r] -= price->time.value;
          exchange_us[r] -= price->exchange.value;
          hidden_us[r] -= hidden(*price);
          current.memory_bytes[r] -= price->memory.value;
        }
      }
    }
  }
};

}  // namespace

std::int64_t Outcome::largest_load() const { return *std::max_element(load_us.begin(), load_us.end()); }

void for_each_placement(const Batch& batch, const Profile& profile, const std::vector<bool>& wanted, Menu which,
                        const std::function<void(const Outcome&)>& visit, const LoadModel& model) {
  std::vector<std::vector<const Price*>> choices;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    if (!wanted[i]) continue;
    const Bucket& bucket = batch.bucket_of(static_cast<SequenceIndex>(i));
    const auto profile_bucket = *profile.catalog.find(bucket.name);
    choices.emplace_back();
    for (const Price& price : profile.menu(profile_bucket)) {
      const int degree = price.config.q * price.config.h * price.config.k;
      if (which == Menu::powers_of_two && (degree & (degree - 1)) != 0) continue;
      if (degree <= batch.ranks) choices.back().push_back(&price);
    }
  }
  Search search{choices, profile.memory_usable.value - profile.memory_base.value, visit, model, {}};
  search.current.load_us.resize(batch.ranks);
  search.current.memory_bytes.resize(batch.ranks);
  search.exchange_us.resize(batch.ranks);
  search.hidden_us.resize(batch.ranks);
  search.place(0);
}

std::optional<Optimum> brute_force(const Batch& batch, const Profile& profile, const std::vector<bool>& wanted,
                                   Menu which, const std::function<std::int64_t(std::int64_t)>& limit_of,
                                   const LoadModel& model) {
  std::optional<Optimum> best;
  for_each_placement(
      batch, profile, wanted, which,
      [&](const Outcome& outcome) {
        const std::int64_t load = outcome.largest_load();
        if (!best || load < best->load_us) best = Optimum{load, 0, 0};
      },
      model);
  if (!best) return best;
  best->limit_us = limit_of(best->load_us);
  best->splits = static_cast<int>(batch.sequences.size());
  for_each_placement(
      batch, profile, wanted, which,
      [&](const Outcome& outcome) {
        if (outcome.largest_load() <= best->limit_us) best->splits = std::min(best->splits, outcome.splits);
      },
      model);
  return best;
}

std::int64_t a_thousandth_more(std::int64_t load_us) { return 1001 * load_us / 1000; }

}  // namespace zellige::testing
