// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace zellige::testing {

/// Checks documents against docs/schema/. Knows the words that our schemas use (type, const, enum, required,
/// properties, additionalProperties, items, minItems, maxItems, minimum, minLength, $ref, $defs) and refuses a schema
/// that uses another.
/// Returns the first violation, "PATH: what", or empty.
std::string why_not_schema(const nlohmann::json& document, const std::string& schema_file);

}  // namespace zellige::testing
