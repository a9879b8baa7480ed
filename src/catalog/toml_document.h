// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace zellige {

/// Reads a TOML file into the same strict form as our JSON files: every refusal names file, table, key and value, and
/// unknown keys are refused. Dates become strings. Errors: Code::input naming the file, and line and column of what is
/// no TOML.
JsonDocument toml_document(const std::string& path);

/// Refuses any key of a table that is not among `known`, with the nearest known one. Optional keys are known too, which
/// JsonObject::finish can't tell.
void expect_keys(const JsonValue& table, const std::vector<std::string>& known);

}  // namespace zellige
