// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zellige/catalog.h"
#include "zellige/units.h"

namespace zellige {

/// Why no placement of a batch's anchors is better than claimed, in integers that anyone can verify
/// (docs/concepts/own_solver.md). Written as `certificate.duals` of a plan.
///
/// A leaf gives every sequence a value, by its bucket and the option that it takes; a piece of degree d carries 1/d of
/// it. All pieces together lie on `ranks` ranks, so some rank holds the mean value or more. When no set of pieces that
/// one rank may hold (load below the bound, memory within the cap) is worth that much, no placement exists.
/// A branch parts all placements in two by a count; its two subtrees follow it, "at most" first.
///
/// Sand: where `counted` is given, a rank may hold any fraction of the pieces of the buckets from there on. A leaf then
/// carries prices of load and memory at which no such piece is worth more than it costs, so that what counted pieces
/// leave of a rank is worth at most its price (docs/concepts/makespan_bound.md).
struct AnchorProof {
  /// An option of one of the buckets.
  struct OptionRef {
    int bucket = 0;  ///< in `buckets`
    Configuration config;
    bool operator==(const OptionRef&) const = default;
  };
  /// Value of the sequences of the bucket that take this option or a later one (by degree, then dearest first).
  /// Positive: they are at least so many as the branches above say; negative: at most so many.
  struct OptionValue {
    OptionRef option;
    std::int64_t value = 0;
    bool operator==(const OptionValue&) const = default;
  };
  /// Value of a rank that holds `pieces` or more pieces of the option; the sign as above.
  struct HolderValue {
    OptionRef option;
    int pieces = 1;
    std::int64_t value = 0;
    bool operator==(const HolderValue&) const = default;
  };
  /// What a microsecond and a byte cost, in units of 2^-kPriceShift of a value of a piece; neither is negative.
  struct Prices {
    std::int64_t per_us = 0, per_byte = 0;
    bool operator==(const Prices&) const = default;
  };
  static constexpr int kPriceShift = 20;
  struct Node {
    enum class Kind {
      leaf,
      sequences,  ///< branch: sequences of the bucket that take `option` or a later one: <= at_most, or more
      holders     ///< branch: ranks that hold `pieces` or more pieces of `option`: <= at_most, or more
    } kind = Kind::leaf;
    OptionRef option;
    int pieces = 1;
    std::int64_t at_most = 0;
    std::vector<std::int64_t> sequence_values;  ///< leaf: [buckets]
    std::vector<OptionValue> option_values;
    std::vector<HolderValue> holder_values;
    std::int64_t split_value = 0;  ///< leaf: what a split sequence is worth less; >= 0
    std::vector<Prices> prices;    ///< leaf of a proof with sand: each alone is enough where it serves
    bool operator==(const Node&) const = default;
  };

  Menu menu = Menu::powers_of_two;
  std::vector<std::string> buckets;  ///< of the sequences that it is about, by name
  std::vector<Node> load;            ///< no placement has all loads below anchor_bound; empty: the bound is 0
  Microseconds split_limit;          ///< load limit of round 2
  std::vector<Node> split;           ///< no placement at loads <= split_limit splits fewer than split_bound; empty: 0
  std::optional<int> counted;        ///< buckets whose pieces are counted one by one; those after them are sand

  bool operator==(const AnchorProof&) const = default;
};

}  // namespace zellige
