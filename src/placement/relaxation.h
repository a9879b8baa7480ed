// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "placement/pattern_doubt.h"

namespace zellige {

/// The most that a kind's pieces can be worth each, steps spread over what they need, rounded up.
Wide best_value(const PatternQuestion::Kind& kind);

/// The linear relaxation of some kinds of pieces as a function of the room in load: concave, by its corners. In
/// integers.
class Relaxation {
 public:
  using Kind = PatternQuestion::Kind;

  /// @param shift         worths are in units of 2^-shift of a value
  /// @param most_room_us  the most that it will be asked for
  Relaxation(int shift, std::int64_t most_room_us) : shift_(shift), most_room_us_(most_room_us) {}

  /// Adds kinds of one group of which `most` pieces may be taken together, worth value - price x need each.
  void add(const Kind* begin, const Kind* end, std::int64_t most, Wide price);
  /// After the last add().
  void finish();

  /// Whether it is worth `aim` or more; exactly.
  bool reaches(Wide aim, std::int64_t room_us) const;
  /// What it is worth, nearly.
  double about(std::int64_t room_us) const;

 private:
  struct Step {
    std::int64_t time_us;
    Wide worth;
    std::int64_t most;
  };
  struct Corner {
    Wide time_us, worth;
  };
  std::vector<Corner>::const_iterator corner_above(std::int64_t room_us) const;

  int shift_;
  std::int64_t most_room_us_;
  std::vector<Step> steps_;
  std::vector<Corner> corners_;
};

}  // namespace zellige
