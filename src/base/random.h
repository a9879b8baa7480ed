// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace zellige {

/// Random draws that are the same with every standard library: std::mt19937_64 is fixed by the standard, its
/// distributions are not (formats.md, "Random draws").
using RandomEngine = std::mt19937_64;

/// Uniform in 0 .. bound - 1 (bound > 0), by rejecting the incomplete last interval.
inline std::uint64_t draw_below(RandomEngine& engine, std::uint64_t bound) {
  const std::uint64_t rejected = (0 - bound) % bound;  // 2^64 mod bound: so many values would be drawn once too often
  while (true) {
    const std::uint64_t value = engine();
    if (value >= rejected) return value % bound;
  }
}

/// Uniform in [0, 1) with 53 bits.
inline double draw_unit(RandomEngine& engine) { return static_cast<double>(engine() >> 11) * 0x1.0p-53; }

/// Fisher-Yates from the back.
template <class T>
void shuffle(std::vector<T>& items, RandomEngine& engine) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[draw_below(engine, i)]);
}

}  // namespace zellige
