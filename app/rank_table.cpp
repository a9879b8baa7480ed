// SPDX-License-Identifier: Apache-2.0
#include "rank_table.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "numbers.h"
#include "table.h"

namespace zellige::app {
namespace {

// The columns of one rank, or the same quantile of each.
struct Row {
  Microseconds load;
  Microseconds exchange;
  Bytes memory;
  Tokens tokens;
};

std::vector<std::string> cells(std::string name, const Row& row, const Profile& profile) {
  const double of_cap = static_cast<double>(row.memory.value) / static_cast<double>(profile.memory_cap().value);
  return {std::move(name),
          seconds(row.load),
          seconds(row.exchange),
          gibibytes(row.memory),
          fmt::format("{:.1f}%", 100 * of_cap),
          grouped(row.tokens.value)};
}

// The smallest value that at least this part of all values does not exceed.
template <class Quantity>
Quantity quantile(std::vector<Quantity> values, int per_cent) {
  const std::size_t count = (values.size() * static_cast<std::size_t>(per_cent) + 99) / 100;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(count == 0 ? 0 : count - 1);
  std::nth_element(values.begin(), at, values.end(), [](auto a, auto b) { return a.value < b.value; });
  return *at;
}

}  // namespace

void print_ranks(const Score& score, const Profile& profile, int most) {
  const auto ranks = static_cast<std::int64_t>(score.load.size());
  Table table(
      {ranks > most ? "of " + plural(ranks, "rank") : "rank", "load", "exchange", "memory", "of the cap", "tokens"});
  if (ranks > most) {
    const std::pair<const char*, int> quantiles[] = {
        {"least", 0}, {"10%", 10}, {"median", 50}, {"90%", 90}, {"most", 100}};
    for (const auto& [name, per_cent] : quantiles) {
      table.add(cells(name,
                      {quantile(score.load, per_cent), quantile(score.exchange, per_cent),
                       quantile(score.memory, per_cent), quantile(score.tokens, per_cent)},
                      profile));
    }
  } else {
    for (std::size_t r = 0; r < score.load.size(); ++r) {
      table.add(
          cells(std::to_string(r), {score.load[r], score.exchange[r], score.memory[r], score.tokens[r]}, profile));
    }
  }
  table.print();
}

}  // namespace zellige::app
