// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace zellige {

/// A whole number of one unit. Different units do not mix; a product or a ratio is taken on `.value` where it is meant.
/// Arithmetic is plain 64-bit: sums over a batch stay far below its range (readers refuse single values above 2^53).
template <class Unit>
struct Quantity {
  std::int64_t value = 0;

  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value -= other.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, std::int64_t times) { return {a.value * times}; }
};

using Microseconds = Quantity<struct MicrosecondsUnit>;
using Bytes = Quantity<struct BytesUnit>;
using Tokens = Quantity<struct TokensUnit>;

/// A rank of the world group, 0 .. world size - 1.
using Rank = std::int32_t;
/// A position in a batch (the global placement order), from 0.
using SequenceIndex = std::int32_t;
/// A position in a catalog's list of buckets, from 0.
using BucketIndex = std::int32_t;

}  // namespace zellige
