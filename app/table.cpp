// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <fmt/core.h>

#include "zellige/text.h"

namespace zellige::app {
namespace {

// Columns that a text takes in a terminal, of printable UTF-8: ideographs and the like take two.
std::size_t columns(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t letter = bytes == 1 ? lead : lead & (0x7Fu >> bytes);
    for (std::size_t j = 1; j < bytes && i + j < text.size(); ++j) {
      letter = letter << 6 | (static_cast<unsigned char>(text[i + j]) & 0x3Fu);
    }
    const bool combines = letter >= 0x300 && letter <= 0x36F;
    const bool is_wide = (letter >= 0x1100 && letter <= 0x115F) || (letter >= 0x2E80 && letter <= 0xA4CF) ||
                         (letter >= 0xAC00 && letter <= 0xD7A3) || (letter >= 0xF900 && letter <= 0xFAFF) ||
                         (letter >= 0xFF00 && letter <= 0xFF60) || (letter >= 0x1F300 && letter <= 0x1F64F) ||
                         (letter >= 0x1F900 && letter <= 0x1F9FF) || (letter >= 0x20000 && letter <= 0x3FFFD);
    count += combines ? 0 : is_wide ? 2 : 1;
    i += bytes;
  }
  return count;
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable(cell);
  rows_.push_back(std::move(row));
}

void Table::print() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      const std::string blanks(widths[i] - columns(row[i]), ' ');
      line += i == 0 ? row[i] + blanks : "  " + blanks + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
}

}  // namespace zellige::app
