// SPDX-License-Identifier: Apache-2.0
#include "catalog/number_text.h"

#include <gtest/gtest.h>

#include "zellige/text.h"

namespace zellige {
namespace {

TEST(NumberText, Decimals) {
  EXPECT_EQ(decimal("330"), 330.0);
  EXPECT_EQ(decimal("330.0"), 330.0);
  EXPECT_EQ(decimal("-1.5"), -1.5);
  EXPECT_EQ(decimal("1e3"), 1000.0);
  for (const char* wrong : {"", " 1", "1 ", "1,5", "1.5.2", "inf", "-inf", "nan", "0x10", "+5", "12a", "1e999",
                            "\xEF\xBC\x91\xEF\xBC\x92"}) {
    EXPECT_EQ(decimal(wrong), std::nullopt) << wrong;
  }
}

TEST(NumberText, Ratios) {
  EXPECT_DOUBLE_EQ(decimal_or_ratio("30000/1001").value(), 29.97002997002997);
  EXPECT_EQ(decimal_or_ratio("25/1"), 25.0);
  EXPECT_EQ(decimal_or_ratio("0/1"), 0.0);
  EXPECT_EQ(decimal_or_ratio("23.976"), 23.976);
  for (const char* wrong : {"/", "30/", "/1001", "30/0", "30/-1", "2.5/1", "30/1/1", "30 / 1"}) {
    EXPECT_EQ(decimal_or_ratio(wrong), std::nullopt) << wrong;
  }
}

TEST(NumberText, Durations) {
  EXPECT_EQ(duration_seconds("PT00H00M13S"), 13.0);
  EXPECT_EQ(duration_seconds("PT00H01M00S"), 60.0);
  EXPECT_EQ(duration_seconds("PT1H2M3.5S"), 3723.5);
  EXPECT_EQ(duration_seconds("PT90S"), 90.0);
  EXPECT_EQ(duration_seconds("1:30:42"), 5442.0);
  EXPECT_EQ(duration_seconds("2:05.25"), 125.25);
  EXPECT_EQ(duration_seconds("6.88"), 6.88);
  for (const char* wrong :
       {"PT", "P1D", "PTS", "PT1S2M", "PT-1S", "PT1X", "1:2:3:4", ":30", "1:", "1.5:30", "1:-3", "abc"}) {
    EXPECT_EQ(duration_seconds(wrong), std::nullopt) << wrong;
  }
}

TEST(NumberText, Spans) {
  EXPECT_NEAR(span_seconds("['0:00:11.200', '0:00:17.933']").value(), 6.733, 1e-9);
  EXPECT_EQ(span_seconds("[\"0:00:10\",\"0:01:00\"]"), 50.0);
  EXPECT_EQ(span_seconds("['0:00:20', '0:00:10']"), -10.0);
  for (const char* wrong : {"", "[]", "['0:00:11']", "0:00:11, 0:00:17", "['0:00:11', '0:00:17'", "[0:00:11, 0:00:17]",
                            "['0:00:11', '0:00:17', '0:00:20']", "['x', 'y']"}) {
    EXPECT_EQ(span_seconds(wrong), std::nullopt) << wrong;
  }
}

TEST(NumberText, SaysNothing) {
  for (const char* nothing : {"", "nan", "NaN", "NAN", "None", "null"}) EXPECT_TRUE(says_nothing(nothing)) << nothing;
  for (const char* something : {"0", "none of it", "nano", "-"}) EXPECT_FALSE(says_nothing(something)) << something;
}

TEST(NumberText, Utf8) {
  for (const char* good : {"", "plain",
                           "\xC3\x9Cn\xC3\xAF"
                           "code",
                           "\xE6\x96\x87\xE6\x9C\xAC", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(first_bad_utf8(good), std::nullopt) << good;
  }
  EXPECT_EQ(first_bad_utf8("ab\xFF"), 2u);
  EXPECT_EQ(first_bad_utf8("\xC3"), 0u);              // cut short
  EXPECT_EQ(first_bad_utf8("a\xC0\xAF"), 1u);         // overlong
  EXPECT_EQ(first_bad_utf8("\xE0\x80\xAF"), 0u);      // overlong
  EXPECT_EQ(first_bad_utf8("\xED\xA0\x80"), 0u);      // half of a surrogate pair
  EXPECT_EQ(first_bad_utf8("\xF4\x90\x80\x80"), 0u);  // above U+10FFFF
  EXPECT_EQ(first_bad_utf8("x\xE6\x96z"), 1u);
}

}  // namespace
}  // namespace zellige
