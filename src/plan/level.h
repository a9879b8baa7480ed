// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/count_solution.h"

namespace zellige {

/// Moves whole sequences between ranks: the part of repair that changes nothing but where fillers and whole anchors
/// run. Takes the fullest rank and gives a partner some of its whole sequences, maybe against others, as long as that
/// leaves both below what the fullest had. First in bytes until no rank is over the memory cap, then in load until the
/// largest is at most a target. Deterministic: the only limit is a count of pairs looked at.
class Leveller {
 public:
  /// @param solution  all sequences placed; ranks may be over the cap
  Leveller(const Problem& problem, CountSolution& solution);

  /// Returns whether every rank keeps the memory cap afterwards.
  bool shed_memory(std::int64_t work);
  /// Returns the largest load afterwards. Never raises it, and never breaks the cap where it was kept.
  std::int64_t level_load(std::int64_t target_us, std::int64_t work);

  const std::vector<std::int64_t>& load() const { return load_; }
  const std::vector<std::int64_t>& memory() const { return memory_; }

 private:
  struct Kind {
    std::size_t group, option;
    std::int64_t time_us, memory_bytes;
  };
  /// So many of kind `give` go from one rank to the other, and so many of `take` come back (-1: none).
  struct Trade {
    int give = -1, take = -1;
    std::size_t partner = 0;
    std::int64_t give_count = 0, take_count = 0;
  };
  std::int64_t held(int kind, std::size_t rank) const;
  /// The larger load of both after a trade; none when one of them lacks the pieces or the room.
  std::optional<std::int64_t> load_after(std::size_t from, const Trade& trade) const;
  void apply(std::size_t from, const Trade& trade);
  std::int64_t room(std::size_t rank) const { return problem_.memory_cap_bytes - memory_[rank]; }

  const Problem& problem_;
  CountSolution& solution_;
  std::vector<Kind> kinds_;
  std::vector<std::int64_t> load_, memory_;
};

}  // namespace zellige
