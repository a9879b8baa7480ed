// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json.h"
#include "zellige/catalog.h"

namespace zellige {

/// Reads a catalog that stands alone or is embedded in a batch or a profile (then with its own format and version).
/// Errors: Code::input naming source, field and value: unknown, missing, wrong type or out of range; a bucket's name
/// twice; a size that makes no whole patches; tokens that do not follow from the size.
Catalog catalog_from(const JsonValue& value);
ModelGeometry model_from(const JsonValue& value);

/// Writes with the keys in the order of the design's examples.
OrderedJson to_json(const Catalog& catalog);
OrderedJson to_json(const ModelGeometry& model);

}  // namespace zellige
