// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zellige {

/// Text from elsewhere (ids, names, paths) in places where it must not do more than be read: a terminal, a message, a
/// page. Pure functions.

/// What of `text` is not printable, for a message: "byte 7 is no UTF-8", "U+001B at byte 3"; empty when all is.
/// Not printable: what is no UTF-8; control characters (U+0000..U+001F, U+007F..U+009F), so newlines too; separators of
/// lines and paragraphs; marks that change the direction of writing; invisible tags and annotations.
std::string why_not_printable(std::string_view text);

/// The same text with everything that is not printable written as an escape: "\u001b", "\u{e0001}", "\xff".
std::string printable(std::string_view text);
/// Likewise, but newlines stay: for texts of several lines.
std::string printable_lines(std::string_view text);

/// Position of the first byte that is not UTF-8, or none.
std::optional<std::size_t> first_bad_utf8(std::string_view text);

/// For messages: `text`, made printable, in single quotes, cut when very long.
std::string in_quotes(std::string_view text);
/// The candidate closest to `word` by edit distance, empty when none is near: for "did you mean".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
/// "a, b, c", each made printable.
std::string joined(const std::vector<std::string>& words);

}  // namespace zellige
