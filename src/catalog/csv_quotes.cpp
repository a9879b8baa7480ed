// SPDX-License-Identifier: Apache-2.0
#include "catalog/csv_quotes.h"

#include <fstream>
#include <vector>

namespace zellige {

std::optional<std::int64_t> line_of_open_quote(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(1 << 20);
  bool cell_begins = true;  // a quote opens only there; elsewhere it is a character as any other
  bool quoted = false;
  bool quote_before = false;  // in a quoted cell: a second one makes it a character, anything else closes the cell
  bool first = true;
  std::int64_t line = 1;
  std::int64_t opened = 0;
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    const char* at = block.data();
    const char* end = at + file.gcount();
    if (first && file.gcount() >= 3 && std::string_view(at, 3) == "\xEF\xBB\xBF") at += 3;
    first = false;
    for (; at != end; ++at) {
      const char c = *at;
      if (c == '\n') ++line;
      if (quoted) {
        if (c == '"') {
          quote_before = !quote_before;
          continue;
        }
        if (!quote_before) continue;
        quoted = quote_before = false;
      } else if (c == '"' && cell_begins) {
        quoted = true;
        opened = line;
        cell_begins = false;
        continue;
      }
      cell_begins = c == ',' || c == '\n' || c == '\r';
    }
  }
  if (quoted && !quote_before) return opened;
  return std::nullopt;
}

}  // namespace zellige
