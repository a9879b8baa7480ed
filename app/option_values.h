// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <CLI/CLI.hpp>

namespace zellige::app {

/// Checks for CLI::Option::check that say what is given and what would be right. The option's own conversion comes
/// after them and can't fail any more.

/// A whole number, least .. most, in decimal digits.
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);
/// A finite number, or least < number <= most with `above`.
CLI::Validator number_between(double least, double most);
CLI::Validator number_above(double least, double most);
/// Any name of a file but an empty one (which a variable that is not set leaves behind).
CLI::Validator file_name();

inline constexpr std::uint64_t kMostInt = std::numeric_limits<std::int32_t>::max();
inline constexpr std::uint64_t kMostLong = std::uint64_t{1} << 53;  ///< as in our files
inline constexpr std::uint64_t kMostRanks = 1 << 16;                ///< of a batch
inline constexpr double kMostSeconds = 1e6;                         ///< a time limit of eleven days is none

}  // namespace zellige::app
