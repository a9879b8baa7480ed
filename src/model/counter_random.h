// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <string_view>

#include <ATen/core/PhiloxRNGEngine.h>

namespace zellige {

/// Random numbers addressed by (stream, row): any row can be made without those before it, on any rank.
/// Philox 4x32-10 (Salmon et al. 2011) keyed by the stream, its upper counter half set to the row.
class CounterRandom {
 public:
  CounterRandom(std::uint64_t stream, std::uint64_t row) : engine_(stream, row, 0) {}

  /// Uniform in the open interval (0, 1), 32 bits.
  double unit() { return (engine_() + 0.5) * 0x1p-32; }

  /// Fills with standard normal values, two from each pair of uniform ones (Box-Muller).
  void normal(std::span<double> values) {
    for (std::size_t i = 0; i < values.size(); i += 2) {
      const double radius = std::sqrt(-2 * std::log(unit()));
      const double angle = 2 * std::numbers::pi * unit();
      values[i] = radius * std::cos(angle);
      if (i + 1 < values.size()) values[i + 1] = radius * std::sin(angle);
    }
  }

 private:
  at::Philox4_32 engine_;
};

/// The stream of one purpose: 64 bits of SHA-256 over all that it depends on.
std::uint64_t random_stream(std::uint64_t seed, std::string_view purpose, std::int64_t step, std::string_view id);

}  // namespace zellige
