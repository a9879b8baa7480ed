// SPDX-License-Identifier: Apache-2.0
#include "zellige/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace zellige {
namespace {

constexpr std::size_t kLongestQuote = 80;

struct CodeRange {
  char32_t first, last;
};

// Unicode's classes Cc, Zl and Zp, and what is invisible and changes how its neighbours are shown.
constexpr std::array kNotPrintable = {
    CodeRange{0x0000, 0x001F}, CodeRange{0x007F, 0x009F}, CodeRange{0x061C, 0x061C},
    CodeRange{0x200E, 0x200F}, CodeRange{0x2028, 0x202E}, CodeRange{0x2066, 0x2069},
    CodeRange{0xFEFF, 0xFEFF}, CodeRange{0xFFF9, 0xFFFB}, CodeRange{0xE0000, 0xE007F}};

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: no UTF-8
};

// The character that starts at `at`.
Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {lead, 1};
  const std::size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  if (lead < 0xC2 || lead > 0xF4 || at + more >= text.size()) return {};
  char32_t code = lead & (0x3Fu >> more);
  for (std::size_t j = 1; j <= more; ++j) {
    if ((byte(at + j) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(at + j) & 0x3Fu);
  }
  const bool overlong = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
  if (overlong || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, more + 1};
}

bool is_printable(char32_t code) {
  return std::none_of(kNotPrintable.begin(), kNotPrintable.end(),
                      [&](CodeRange range) { return code >= range.first && code <= range.last; });
}

// Most texts are plain ASCII, and batches have 100,000 ids.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string formatted(const char* format, unsigned value) {
  std::array<char, 24> buffer{};
  const int size = std::snprintf(buffer.data(), buffer.size(), format, value);
  return {buffer.data(), static_cast<std::size_t>(size)};
}

std::string escaped(std::string_view text, bool keep_newlines) {
  if (is_plain(text)) return std::string(text);
  std::string out;
  out.reserve(text.size() + 16);
  for (std::size_t i = 0; i < text.size();) {
    const Character character = character_at(text, i);
    if (character.bytes == 0) {
      out += formatted("\\x%02x", static_cast<unsigned char>(text[i]));
      ++i;
      continue;
    }
    if (is_printable(character.code) || (keep_newlines && character.code == '\n')) {
      out.append(text.substr(i, character.bytes));
    } else {
      out += formatted(character.code < 0x10000 ? "\\u%04x" : "\\u{%x}", static_cast<unsigned>(character.code));
    }
    i += character.bytes;
  }
  return out;
}

}  // namespace

std::string why_not_printable(std::string_view text) {
  if (is_plain(text)) return "";
  for (std::size_t i = 0; i < text.size();) {
    const Character character = character_at(text, i);
    if (character.bytes == 0) return "byte " + std::to_string(i + 1) + " is no UTF-8";
    if (!is_printable(character.code)) {
      return formatted("U+%04X", static_cast<unsigned>(character.code)) + " at byte " + std::to_string(i + 1);
    }
    i += character.bytes;
  }
  return "";
}

std::string printable(std::string_view text) { return escaped(text, false); }
std::string printable_lines(std::string_view text) { return escaped(text, true); }

std::optional<std::size_t> first_bad_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = character_at(text, i).bytes;
    if (bytes == 0) return i;
    i += bytes;
  }
  return std::nullopt;
}

std::string in_quotes(std::string_view text) {
  std::string_view shown = text.substr(0, kLongestQuote);
  // Never through the middle of a character.
  for (int i = 0; i < 3 && shown.size() < text.size() && (text[shown.size()] & 0xC0) == 0x80; ++i) {
    shown.remove_suffix(1);
  }
  return "'" + printable(shown) + (shown.size() < text.size() ? "...'" : "'");
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + printable(word);
  return out;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j < row.size(); ++j) {
        const std::size_t substitute = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace zellige
