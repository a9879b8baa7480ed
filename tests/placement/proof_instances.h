// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "placement/anchor_certificate.h"

/// Small instances, and whether anything keeps a limit, by trying everything.
namespace zellige::proof_instances {

inline std::int64_t below(RandomEngine& engine, std::int64_t bound) {
  return static_cast<std::int64_t>(draw_below(engine, static_cast<std::uint64_t>(bound)));
}

inline ProofInstance random_instance(RandomEngine& engine) {
  ProofInstance instance;
  instance.ranks = 1 + static_cast<int>(below(engine, 4));
  instance.memory_cap_bytes = 30 + below(engine, 60);
  const int groups = 1 + static_cast<int>(below(engine, 2));
  for (int g = 0; g < groups; ++g) {
    std::vector<ProofInstance::Option> options;
    for (int degree = 1; degree <= instance.ranks; degree *= 2) {
      options.push_back({{degree, 1, 1}, degree, 1 + below(engine, 40) / degree, below(engine, 30)});
    }
    instance.groups.push_back({1 + below(engine, 3), needed_options(options, instance.memory_cap_bytes)});
  }
  return instance;
}

/// Gives split options an exchange, often more than their time.
inline void add_exchanges(ProofInstance& instance, RandomEngine& engine) {
  for (auto& group : instance.groups) {
    for (auto& option : group.options) {
      if (option.degree > 1 && below(engine, 4) > 0) option.exchange_us = option.time_us * below(engine, 30) / 10;
    }
  }
}

/// Whether any placement at all keeps the limits: every sequence, every option, every set of ranks.
inline bool some_placement(const ProofInstance& instance, std::int64_t load_limit, std::int64_t splits_most) {
  std::vector<std::int64_t> load(instance.ranks, 0), exchange(instance.ranks, 0), memory(instance.ranks, 0);
  std::vector<int> sequences;
  for (std::size_t g = 0; g < instance.groups.size(); ++g) {
    sequences.insert(sequences.end(), static_cast<std::size_t>(instance.groups[g].count), static_cast<int>(g));
  }
  const auto place = [&](auto& self, std::size_t index, std::int64_t splits) -> bool {
    if (splits > splits_most) return false;
    if (index == sequences.size()) return true;
    for (const auto& option : instance.groups[sequences[index]].options) {
      for (unsigned set = 0; set < (1u << instance.ranks); ++set) {
        if (__builtin_popcount(set) != option.degree) continue;
        bool fits = true;
        for (int r = 0; r < instance.ranks; ++r) {
          if ((set >> r & 1) == 0) continue;
          load[r] += option.time_us, exchange[r] += option.exchange_us, memory[r] += option.memory_bytes;
          fits &= load[r] <= load_limit && exchange[r] <= load_limit && memory[r] <= instance.memory_cap_bytes;
        }
        const bool done = fits && self(self, index + 1, splits + (option.degree > 1));
        for (int r = 0; r < instance.ranks; ++r) {
          if ((set >> r & 1) == 0) continue;
          load[r] -= option.time_us, exchange[r] -= option.exchange_us, memory[r] -= option.memory_bytes;
        }
        if (done) return true;
      }
    }
    return false;
  };
  return place(place, 0, 0);
}

}  // namespace zellige::proof_instances
