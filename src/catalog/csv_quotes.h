// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace zellige {

/// The line (from 1) of a CSV file on which a quote opens that is never closed; none when all are. Such a quote makes
/// one cell of all that follows, so a reader that accepts it drops rows.
std::optional<std::int64_t> line_of_open_quote(const std::string& path);

}  // namespace zellige
