// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace zellige {

/// The same text without blanks around it.
std::string_view trimmed(std::string_view text);

/// A plain decimal number: "330", "330.0", "1e3". None for anything else, infinities and NaN too.
std::optional<double> decimal(std::string_view text);

/// A decimal number or a ratio of two whole ones: "29.97", "30000/1001".
std::optional<double> decimal_or_ratio(std::string_view text);

/// A duration in seconds: a decimal number, "H:M:S.f", "M:S", or ISO 8601 with hours, minutes and seconds
/// ("PT00H00M13S").
std::optional<double> duration_seconds(std::string_view text);

/// The length of a span in seconds, written as a Python list of two clock times: "['0:00:11.200', '0:00:17.933']".
/// Negative when it ends before it begins.
std::optional<double> span_seconds(std::string_view text);

/// How data sets write that a number is not known: nothing, "nan" in any case, "none", "null".
bool says_nothing(std::string_view text);

}  // namespace zellige
