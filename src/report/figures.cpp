// SPDX-License-Identifier: Apache-2.0
#include "report/figures.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace zellige {
namespace {

constexpr std::array kTimeUnits = {Unit{1e6, "s"}, Unit{1e3, "ms"}, Unit{1, "us"}};
constexpr std::array kByteUnits = {Unit{1024.0 * 1024 * 1024 * 1024, "TiB"}, Unit{1024.0 * 1024 * 1024, "GiB"},
                                   Unit{1024.0 * 1024, "MiB"}, Unit{1024.0, "KiB"}, Unit{1, "B"}};
constexpr std::array kTokenUnits = {Unit{1e9, "G"}, Unit{1e6, "M"}, Unit{1e3, "K"}, Unit{1, ""}};

/// The largest unit of which there is at least one; the smallest for less.
template <std::size_t N>
Unit fitting(const std::array<Unit, N>& units, double value) {
  const auto found = std::find_if(units.begin(), units.end(), [&](Unit unit) { return value >= unit.size; });
  return found == units.end() ? units.back() : *found;
}

}  // namespace

std::string decimal(double value, int digits) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  std::array<char, 512> buffer;
  const auto written =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, digits);
  std::string text(buffer.data(), written.ptr);
  // A rounded zero has no sign.
  if (text.find_first_not_of("-0.") == std::string::npos && text.front() == '-') text.erase(0, 1);
  return text;
}

std::string shortest(double value, int digits) {
  std::string text = decimal(value, digits);
  if (text.find('.') == std::string::npos) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string percent(double ratio) { return decimal(100 * ratio, std::abs(ratio) < 10 ? 2 : 0) + "%"; }

std::string readable(Microseconds time) {
  const Unit unit = time_unit(static_cast<double>(time.value));
  const int digits = unit.size == 1e6 ? 3 : unit.size == 1 ? 0 : 1;
  return decimal(static_cast<double>(time.value) / unit.size, digits).append(" ").append(unit.name);
}

std::string readable(Bytes size) {
  const Unit unit = byte_unit(static_cast<double>(size.value));
  return decimal(static_cast<double>(size.value) / unit.size, unit.size == 1 ? 0 : 2).append(" ").append(unit.name);
}

std::string counted(std::int64_t count, std::string_view noun) {
  return grouped(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

Unit time_unit(double most_us) { return fitting(kTimeUnits, most_us); }
Unit byte_unit(double most_bytes) { return fitting(kByteUnits, most_bytes); }
Unit token_unit(double most_tokens) { return fitting(kTokenUnits, most_tokens); }

std::string in_unit(double value, Unit unit) {
  const double scaled = value / unit.size;
  const int digits = std::abs(scaled) >= 100 ? 0 : std::abs(scaled) >= 10 ? 1 : 2;
  std::string text = decimal(scaled, digits);
  if (!unit.name.empty()) text.append(unit.name.size() > 1 || unit.name == "s" ? " " : "").append(unit.name);
  return text;
}

std::vector<double> ticks(double low, double high, int about) {
  const double rough = (high - low) / std::max(about, 1);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> values;
  const double first = std::ceil(low / step - 1e-9);
  // Counted, since steps below the values' own precision would never get past `high`.
  for (int i = 0; i <= 4 * about && (first + i) * step <= high + 1e-9 * step; ++i) values.push_back((first + i) * step);
  return values;
}

}  // namespace zellige
