// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/option.h"

namespace zellige {

/// A placement up to the names of group members: how many members of each group take each option, and how many of those
/// run on each rank. Valid when sum_j z[g][j] = n_g, 0 <= x[g][j][r] <= z[g][j] and sum_r x[g][j][r] = degree *
/// z[g][j]; then, and only then, it decodes into rank sets of `degree` distinct ranks.
struct CountSolution {
  std::vector<std::vector<std::int64_t>> z;               ///< [group][option]  // z_{g,j}, Eq. 5
  std::vector<std::vector<std::vector<std::int64_t>>> x;  ///< [group][option][rank]  // eta_{g,j,r}, Eq. 6

  /// Zeros of the problem's shape.
  explicit CountSolution(const Problem& problem);
  CountSolution() = default;
};

std::vector<std::int64_t> rank_times(const Problem& problem, const CountSolution& solution);
std::vector<std::int64_t> rank_exchanges(const Problem& problem, const CountSolution& solution);  ///< zeros: additive
std::vector<std::int64_t> rank_loads(const Problem& problem, const CountSolution& solution);   ///< the larger  // L_r
std::vector<std::int64_t> rank_memory(const Problem& problem, const CountSolution& solution);  // H_r
std::int64_t largest_load(const Problem& problem, const CountSolution& solution);
std::int64_t num_split(const Problem& problem, const CountSolution& solution);  // K

/// Renames the ranks so that solutions which differ by the names of ranks become one: ranks that share the widest and
/// dearest options come first, side by side. Prices do not depend on ranks, so nothing else changes.
CountSolution canonical(const Problem& problem, const CountSolution& solution);

/// The option of one member of a group and its ranks, ascending.
struct MemberPlacement {
  int option = 0;  ///< in Group::options
  std::vector<Rank> ranks;
};

/// DecodeECF (Alg. 1 line 9): gives every member of every group an option and a rank set: [group][member]. Members get
/// options in the order of Group::options. Rank sets are runs of consecutive ranks where the counts allow it, aligned
/// ones first; the rest follows the wrap-around rule: lay the slots of the option out rank by rank and give slot i to
/// sequence i mod z. A rank has at most z slots, so it meets no sequence twice.
std::vector<std::vector<MemberPlacement>> decode(const Problem& problem, const CountSolution& solution);

}  // namespace zellige
