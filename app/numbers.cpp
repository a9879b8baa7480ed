// SPDX-License-Identifier: Apache-2.0
#include "numbers.h"

#include <fmt/core.h>

namespace zellige::app {

std::string seconds(Microseconds time) {
  if (time.value >= 100'000) return fmt::format("{:.3f} s", static_cast<double>(time.value) / 1e6);
  if (time.value >= 1000) return fmt::format("{:.2f} ms", static_cast<double>(time.value) / 1e3);
  return fmt::format("{} us", time.value);
}

std::string gibibytes(Bytes size) {
  const double mebibytes = static_cast<double>(size.value) / (1 << 20);
  return mebibytes >= 1024 || size.value == 0 ? fmt::format("{:.2f} GiB", mebibytes / 1024)
                                              : fmt::format("{:.2f} MiB", mebibytes);
}

std::string percent(double ratio) { return fmt::format("{:+.2f}%", 100 * ratio); }

std::string grouped(std::int64_t number) {
  const std::string digits = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > first && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string plural(std::int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

}  // namespace zellige::app
