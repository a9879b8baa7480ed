// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace zellige::own {

// Anchor Placement (Eq. 7) as the own solver sees it: numbers only. docs/concepts/own_solver.md says how it is solved.

/// One option of a group: what each of `degree` ranks pays. A rank's load is the larger of its sums of time and of
/// exchange.
struct OptionCost {
  int degree = 1;                 // lambda_{g,j}
  std::int64_t time_us = 0;       // p_{g,j}
  std::int64_t memory_bytes = 0;  // m_{g,j}
  std::int64_t exchange_us = 0;
};

/// `count` interchangeable sequences.
struct GroupCosts {
  std::int64_t count = 0;  // n_g
  std::vector<OptionCost> options;
};

struct AnchorProblem {
  int ranks = 1;                      // N
  std::int64_t memory_cap_bytes = 0;  // M_cap
  std::vector<GroupCosts> groups;     // E
};

/// A kind of piece: what one rank holds of a sequence that takes some option.
struct PieceType {
  int group = 0;   ///< in Model
  int option = 0;  ///< in AnchorProblem's group
  int degree = 1;
  std::int64_t time_us = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t exchange_us = 0;

  std::int64_t load_us() const { return std::max(time_us, exchange_us); }
};

/// The problem made ready: options that fit the cap and are not dominated, in an order that searches use.
struct Model {
  int ranks = 1;
  std::int64_t memory_cap_bytes = 0;
  std::vector<PieceType> types;           ///< group by group; in a group by degree, then dearest first
  std::vector<int> first;                 ///< [groups + 1] types of group g are first[g] .. first[g + 1] - 1
  std::vector<int> first_split;           ///< [groups] first type of a degree above 1
  std::vector<std::int64_t> count;        ///< [groups] n_g
  std::vector<int> source;                ///< [groups] index in AnchorProblem
  std::int64_t unit = 1;                  ///< a sequence of value v makes pieces of value ceil(v unit / degree)
  bool has_group_without_option = false;  ///< then nothing can be placed

  int num_groups() const { return static_cast<int>(count.size()); }
  int num_types() const { return static_cast<int>(types.size()); }
  int group_of(int type) const { return types[type].group; }
};

/// Groups without sequences are left out; groups whose dearest piece is dearest come first.
Model make_model(const AnchorProblem& problem);

/// The unit in which pieces' values are integers: the least common multiple of the degrees, or 2^24 where that is more.
std::int64_t value_unit(const std::vector<int>& degrees);

/// How many sequences of a group take its options from `type` on: least and most. What branching decides.
/// @note  at the first type of a group both are n_g
struct Box {
  std::vector<std::int64_t> least;  ///< [types]
  std::vector<std::int64_t> most;   ///< [types]
};
Box whole_box(const Model& model);
/// Makes every bound follow from its neighbours (the counts fall along a group). False when nothing is left.
bool tighten(const Model& model, Box& box);

/// How many sequences take each type: [types].
using TypeCounts = std::vector<std::int64_t>;

/// What one rank holds: pieces of each type. At most count[g] pieces of a group, as no rank meets a sequence twice.
struct Pattern {
  std::vector<std::int32_t> pieces;  ///< [types]
  std::int64_t time_us = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t exchange_us = 0;

  std::int64_t load_us() const { return std::max(time_us, exchange_us); }
};

/// Patterns of all ranks.
struct Packing {
  TypeCounts counts;              // z
  std::vector<Pattern> patterns;  ///< [ranks]

  std::int64_t largest_load() const;
};

std::int64_t num_split(const Model& model, const TypeCounts& counts);  // K

}  // namespace zellige::own
