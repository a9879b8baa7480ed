// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json.h"
#include "zellige/anchor_proof.h"

namespace zellige {

/// `certificate.duals` of a plan. Fields that are empty or zero are left out of the nodes.
OrderedJson to_json(const AnchorProof& proof);

/// Errors: Code::input, naming file, field and value.
AnchorProof read_anchor_proof(const JsonValue& value);

}  // namespace zellige
