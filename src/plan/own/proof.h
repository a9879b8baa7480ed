// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/own/pattern_lp.h"

namespace zellige::own {

/// A proof that something cannot be: a tree whose inner nodes divide all placements in two, and whose leaves carry
/// multipliers that refute what is left (docs/concepts/own_solver.md). Node 0 is the root; children come after parents.
struct ProofNode {
  enum class Kind {
    leaf,
    tail,    ///< the sequences of a group that take their options from `type` on: <= limit, or >= limit + 1
    holders  ///< ranks that hold at_least or more pieces of `type`: <= limit, or >= limit + 1
  } kind = Kind::leaf;
  int type = 0;
  std::int32_t at_least = 1;
  std::int64_t limit = 0;
  int below = -1, above = -1;        ///< nodes
  Multipliers multipliers;           ///< leaf
  std::vector<HolderLimit> holders;  ///< leaf: what multipliers.holders go with
};
using Proof = std::vector<ProofNode>;

}  // namespace zellige::own
