// SPDX-License-Identifier: Apache-2.0
#include "testing/random_placement.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/random.h"

namespace zellige::oracle {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(draw_below(engine_, static_cast<std::uint64_t>(most - least + 1)));
  }
  bool once_in(int n) { return between(1, n) == 1; }
  template <class T>
  const T& pick(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(items.size()) - 1))];
  }
  /// `count` distinct ones of `ranks`, in any order.
  std::vector<Rank> some_of(std::vector<Rank> ranks, int count) {
    shuffle(ranks, engine_);
    ranks.resize(static_cast<std::size_t>(count));
    return ranks;
  }
  template <class T>
  void shuffle_all(std::vector<T>& items) {
    shuffle(items, engine_);
  }

 private:
  RandomEngine engine_;
};

std::vector<int> divisors(int n) {
  std::vector<int> found;
  for (int d = 1; d <= n; ++d) {
    if (n % d == 0) found.push_back(d);
  }
  return found;
}

}  // namespace

std::vector<Configuration> configurations_up_to(int max_degree, int heads, int kv_heads) {
  std::vector<Configuration> found;
  for (int degree = 1; degree <= max_degree; ++degree) {
    for (const int h : divisors(degree)) {
      if (heads % h != 0 || kv_heads % h != 0) continue;
      for (const int q : divisors(degree / h)) found.push_back({q, h, degree / h / q});
    }
  }
  return found;
}

Placement make_placement(int ranks, int heads, int kv_heads, int head_dim, const std::vector<PlacementEntry>& entries) {
  Placement placement;
  placement.ranks = ranks;
  placement.model.name = "test";
  placement.model.heads = heads;
  placement.model.kv_heads = kv_heads;
  placement.model.head_dim = head_dim;
  placement.model.layers = 1;
  placement.model.ffn = 4 * heads * head_dim;
  placement.model.vae_stride = {1, 1, 1};
  placement.model.patch = {1, 1, 1};
  for (const PlacementEntry& entry : entries) {
    PlacedSequence placed;
    placed.id = std::string("s").append(std::to_string(placement.sequences.size()));
    placed.bucket = std::to_string(entry.tokens);
    placed.tokens = {entry.tokens};
    placed.config = entry.config;
    placed.ranks = entry.ranks;
    placement.sequences.push_back(placed);
  }
  return placement;
}

Placement random_placement(std::uint64_t seed, const RandomPlacementOptions& options) {
  Dice dice(seed);
  const int ranks = static_cast<int>(dice.between(options.min_ranks, options.max_ranks));
  const int heads = dice.pick(options.heads);
  const int kv_heads = options.grouped_kv && dice.once_in(3) ? dice.pick(divisors(heads)) : heads;

  std::vector<Rank> working(static_cast<std::size_t>(ranks));
  std::iota(working.begin(), working.end(), 0);
  if (options.idle_ranks && ranks > 1 && dice.once_in(3)) {
    working = dice.some_of(working, static_cast<int>(dice.between(1, ranks - 1)));
  }
  const int num_working = static_cast<int>(working.size());

  std::vector<PlacementEntry> entries;
  const std::vector<Configuration> legal =
      configurations_up_to(std::min(options.max_degree, num_working), heads, kv_heads);
  if (legal.size() > 1) {
    const std::vector<Configuration> split(legal.begin() + 1, legal.end());
    const auto count = dice.between(options.min_split, options.max_split);
    while (static_cast<std::int64_t>(entries.size()) < count) {
      const Configuration config = dice.pick(split);
      const std::int64_t longest = std::max<std::int64_t>(options.max_tokens, config.degree());
      // Every fourth is as short as can be: one token a chunk, or nearly.
      const std::int64_t tokens = dice.once_in(4)
                                      ? std::min<std::int64_t>(config.degree() + dice.between(0, 1), longest)
                                      : dice.between(config.degree(), longest);
      entries.push_back({tokens, config, dice.some_of(working, config.degree())});
    }
  }
  const std::int64_t menu_of_lengths = dice.between(1, 4);  // few lengths, so that whole sequences form groups
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < menu_of_lengths; ++i) lengths.push_back(dice.between(1, options.max_tokens));
  const auto num_whole = dice.between(options.min_whole, options.max_whole);
  for (std::int64_t i = 0; i < num_whole; ++i) entries.push_back({dice.pick(lengths), {1, 1, 1}, {dice.pick(working)}});
  dice.shuffle_all(entries);

  Placement placement = make_placement(ranks, heads, kv_heads, dice.pick(options.head_dims), entries);
  placement.exec.waves = static_cast<int>(dice.between(1, options.max_waves));
  placement.exec.keep_kv = dice.once_in(2);
  return placement;
}

}  // namespace zellige::oracle
