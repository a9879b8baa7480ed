// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zellige/units.h"

namespace zellige {

/// So many rank groups of one size: "g3n1" is one group of three ranks.
struct GroupCount {
  int size = 1;   ///< G, ranks of a group
  int count = 1;  ///< groups of this size

  bool operator==(const GroupCount&) const = default;
};

/// Disjoint groups of consecutive ranks, the smallest first: in g3n1+g1n1 rank 0 is alone and ranks 1-3 are together.
struct GroupLayout {
  std::vector<GroupCount> groups;  ///< by rising size, no size twice

  int num_ranks() const;
  int num_groups() const;
  bool operator==(const GroupLayout&) const = default;
};

/// Reads KnapFormer's notation: gGnN joined by "+", in any order.
/// @param where  named in errors
/// Errors: Code::input for anything else, a number below 1 or above `most_ranks`, a size that comes twice, or more
///   ranks than `most_ranks` in all.
GroupLayout parse_group_layout(std::string_view notation, int most_ranks, std::string_view where);

/// Writes the same notation, the largest groups first, as its authors do.
std::string text(const GroupLayout& layout);

/// A group of a layout, spelt out.
struct RankGroup {
  int size = 1;
  Rank first_rank = 0;
};
/// Lists the groups in rank order. `first_rank` shifts them.
std::vector<RankGroup> rank_groups(const GroupLayout& layout, Rank first_rank = 0);

struct LayoutList {
  std::vector<GroupLayout> layouts;
  bool complete = true;
};
/// Lists every layout that covers exactly `num_ranks` ranks with groups of the given sizes, the ones with fewest large
/// groups first (so all single ranks come first). Where there are more than `limit`, the list is not complete: only
/// those that mix at most m sizes, with the largest m for which they are no more than that.
/// @param sizes  rising, starting with 1
LayoutList group_layouts(int num_ranks, std::span<const int> sizes, std::size_t limit);

}  // namespace zellige
