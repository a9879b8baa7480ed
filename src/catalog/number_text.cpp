// SPDX-License-Identifier: Apache-2.0
#include "catalog/number_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace zellige {
namespace {

bool equal_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
    if (c != lower[i]) return false;
  }
  return true;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "H:M:S.f" or "M:S.f": only the last part may have a fraction.
std::optional<double> clock_seconds(std::string_view text) {
  double seconds = 0;
  int parts = 0;
  for (bool last = false; !last; ++parts) {
    const auto colon = text.find(':');
    last = colon == std::string_view::npos;
    const std::string_view part = text.substr(0, colon);
    if (part.empty() || !is_digit(part[0]) || parts == 3) return std::nullopt;
    if (!last && part.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
    const auto value = decimal(part);
    if (!value) return std::nullopt;
    seconds = seconds * 60 + *value;
    if (!last) text.remove_prefix(colon + 1);
  }
  if (parts < 2) return std::nullopt;
  return seconds;
}

std::optional<double> iso_seconds(std::string_view text) {
  if (!text.starts_with("PT") || text.size() == 2) return std::nullopt;
  text.remove_prefix(2);
  double seconds = 0;
  constexpr std::array<std::pair<char, double>, 3> kUnits = {{{'H', 3600.0}, {'M', 60.0}, {'S', 1.0}}};
  for (const auto& [letter, unit] : kUnits) {
    const auto at = text.find(letter);
    if (at == std::string_view::npos) continue;
    if (at == 0 || !is_digit(text[0])) return std::nullopt;
    const auto value = decimal(text.substr(0, at));
    if (!value) return std::nullopt;
    seconds += *value * unit;
    text.remove_prefix(at + 1);
  }
  return text.empty() ? std::optional(seconds) : std::nullopt;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<double> decimal(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> decimal_or_ratio(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return decimal(text);
  const auto above = decimal(text.substr(0, slash));
  const auto below = decimal(text.substr(slash + 1));
  if (!above || !below || *below <= 0 || std::floor(*above) != *above || std::floor(*below) != *below) {
    return std::nullopt;
  }
  return *above / *below;
}

std::optional<double> duration_seconds(std::string_view text) {
  if (const auto plain = decimal(text)) return plain;
  return text.starts_with('P') ? iso_seconds(text) : clock_seconds(text);
}

std::optional<double> span_seconds(std::string_view text) {
  if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  const auto comma = text.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  std::array<double, 2> times{};
  for (int i = 0; i < 2; ++i) {
    std::string_view part = trimmed(i == 0 ? text.substr(0, comma) : text.substr(comma + 1));
    if (part.size() < 2 || part.front() != part.back() || (part.front() != '\'' && part.front() != '"')) {
      return std::nullopt;
    }
    const auto seconds = clock_seconds(part.substr(1, part.size() - 2));
    if (!seconds) return std::nullopt;
    times[i] = *seconds;
  }
  return times[1] - times[0];
}

bool says_nothing(std::string_view text) {
  return text.empty() || equal_ignoring_case(text, "nan") || equal_ignoring_case(text, "none") ||
         equal_ignoring_case(text, "null");
}

}  // namespace zellige
