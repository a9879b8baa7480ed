// SPDX-License-Identifier: Apache-2.0
#include "option_values.h"

#include <charconv>
#include <cmath>

#include <fmt/core.h>

#include "numbers.h"
#include "zellige/text.h"

namespace zellige::app {
namespace {

template <class Number>
bool parse(const std::string& text, Number& into) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, into);
  return error == std::errc() && rest == end;
}

CLI::Validator number(double least, double most, bool above) {
  const std::string range = fmt::format("{} {} to {}", above ? "above" : "from", least, most);
  return CLI::Validator(
      [=](std::string& text) {
        double value = 0;
        const bool fits =
            parse(text, value) && std::isfinite(value) && value <= most && (above ? value > least : value >= least);
        return fits ? std::string() : fmt::format("{} is not a number {}", in_quotes(text), range);
      },
      fmt::format("NUMBER {}", range));
}

}  // namespace

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  const std::string range = fmt::format("from {} to {}", least, most);
  return CLI::Validator(
      [=](std::string& text) {
        std::uint64_t value = 0;
        const bool fits = parse(text, value) && value >= least && value <= most;
        return fits ? std::string() : fmt::format("{} is not a whole number {}", in_quotes(text), range);
      },
      fmt::format("N {}", range));
}

CLI::Validator number_between(double least, double most) { return number(least, most, false); }
CLI::Validator number_above(double least, double most) { return number(least, most, true); }

CLI::Validator file_name() {
  return CLI::Validator(
      [](std::string& text) {
        return text.empty() ? std::string("the name of a file must not be empty") : std::string();
      },
      "FILE");
}

}  // namespace zellige::app
