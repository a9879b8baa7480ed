// SPDX-License-Identifier: Apache-2.0
#include "report/markup.h"

#include <gtest/gtest.h>

#include "zellige/error.h"

namespace zellige {
namespace {

TEST(Markup, EscapesTextAndAttributes) {
  Markup page;
  page.open("a", {{"b", "x\"<&>'y"}});
  page.text("1 < 2 & 3 > 2");
  page.element("c", {}, "</a><script>");
  page.empty("d", {{"e", ""}});
  page.close();
  EXPECT_EQ(std::move(page).take(),
            "<a b=\"x&quot;&lt;&amp;&gt;&#39;y\">1 &lt; 2 &amp; 3 &gt; 2<c>&lt;/a&gt;&lt;script&gt;</c>\n<d "
            "e=\"\"/>\n</a>\n");
}

TEST(Markup, ReplacesWhatXmlCannotHold) {
  EXPECT_EQ(escaped(std::string("a\0b\x1b[31m\x7f", 9)), "a\\u0000b\\u001b[31m\\u007f");
  EXPECT_EQ(escaped("tab\tline\n\u6f22\u5b57"), "tab\tline\n\u6f22\u5b57");
}

TEST(Markup, NoticesWhatDoesNotNest) {
  Markup open;
  open.open("a");
  EXPECT_THROW(std::move(open).take(), Error);
  Markup closed;
  EXPECT_THROW(closed.close(), Error);
}

}  // namespace
}  // namespace zellige
