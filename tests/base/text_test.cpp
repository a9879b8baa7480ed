// SPDX-License-Identifier: Apache-2.0
#include "zellige/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zellige {
namespace {

using ::testing::HasSubstr;

TEST(Text, WhatIsPrintableStaysAsItIs) {
  for (const char* text : {"", "clip-7", "a b'c\"\\<>", "\u00e9\u6f22\u5b57", "\U0001F600", "\u00a0\u200d"}) {
    EXPECT_EQ(why_not_printable(text), "") << text;
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Text, WhatIsNotIsNamedAndEscaped) {
  const struct {
    std::string text, why, shown;
  } cases[] = {
      {"a\x1b[31m", "U+001B at byte 2", "a\\u001b[31m"},
      {"a\nb", "U+000A at byte 2", "a\\u000ab"},
      {std::string("\0", 1), "U+0000 at byte 1", "\\u0000"},
      {"\x7f", "U+007F", "\\u007f"},
      {"\u009b", "U+009B", "\\u009b"},
      {"\u202ex", "U+202E", "\\u202ex"},
      {"\u2066", "U+2066", "\\u2066"},
      {"\u2028", "U+2028", "\\u2028"},
      {"\U000E0041", "U+E0041", "\\u{e0041}"},
      {"a\xff", "byte 2 is no UTF-8", "a\\xff"},
      {"\xe6\x96", "byte 1 is no UTF-8", "\\xe6\\x96"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(why_not_printable(c.text), HasSubstr(c.why));
    EXPECT_EQ(printable(c.text), c.shown);
    EXPECT_EQ(why_not_printable(printable(c.text)), "") << "the escape itself is printable";
  }
  EXPECT_EQ(printable_lines("a\nb\x1b"), "a\nb\\u001b");
}

TEST(Text, EveryByteIsEitherKeptOrEscaped) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string shown = printable(std::string(1, static_cast<char>(byte)));
    EXPECT_EQ(shown.size() == 1, byte >= 0x20 && byte < 0x7f) << byte;
  }
}

TEST(Text, QuotesAreCutBetweenCharacters) {
  std::string text(79, 'x');
  text += "\u6f22";  // bytes 80 to 82
  EXPECT_EQ(in_quotes(text), "'" + std::string(79, 'x') + "...'");
  EXPECT_EQ(in_quotes("a\nb"), "'a\\u000ab'");
  EXPECT_EQ(joined({"a", "b\n"}), "a, b\\u000a");
}

}  // namespace
}  // namespace zellige
