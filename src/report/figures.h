// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zellige/units.h"

namespace zellige {

/// Numbers as people read them, the same in every language setting.
std::string decimal(double value, int digits);   ///< 0.5, 2 -> "0.50"
std::string shortest(double value, int digits);  ///< at most so many digits after the point: "0.5", "12"
std::string grouped(std::int64_t value);         ///< 1234567 -> "1,234,567"
std::string percent(double ratio);               ///< 0.0153 -> "1.53%"
std::string readable(Microseconds time);         ///< "3.564 s", "75.5 ms", "12 us"
std::string readable(Bytes size);                ///< "4.45 GiB"
std::string counted(std::int64_t count, std::string_view noun);  ///< "1 split", "3 splits"

/// A unit for an axis: a value v reads as v / size, followed by name.
struct Unit {
  double size = 1;
  std::string_view name;
};
Unit time_unit(double most_us);
Unit byte_unit(double most_bytes);
Unit token_unit(double most_tokens);
/// `value` in `unit` with three significant digits, e.g. "69.8 s".
std::string in_unit(double value, Unit unit);

/// Round values from `low` to `high` (both finite, low < high), about `about` of them, ascending.
std::vector<double> ticks(double low, double high, int about);

}  // namespace zellige
