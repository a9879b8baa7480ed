// SPDX-License-Identifier: Apache-2.0
#include "placement/relaxation.h"

#include <algorithm>

namespace zellige {
namespace {

Wide divided_up(Wide value, Wide by) { return value >= 0 ? (value + by - 1) / by : -(-value / by); }

}  // namespace

Wide best_value(const PatternQuestion::Kind& kind) {
  Wide best = kind.value;
  for (const auto& step : kind.steps) {
    Wide sum = 0;
    for (const auto& [least, bonus] : kind.steps) sum += least <= step.first ? bonus : 0;
    best = std::max(best, kind.value + divided_up(sum, step.first));
  }
  return best;
}

void Relaxation::add(const Kind* begin, const Kind* end, std::int64_t most, Wide price) {
  std::int64_t time_us = 0;
  Wide worth = 0;
  while (true) {  // the hull from the origin, by steepest steps
    std::int64_t step_us = 0;
    Wide step = 0;
    for (const Kind* kind = begin; kind != end; ++kind) {
      const std::int64_t more_us = kind->time_us - time_us;
      const Wide more = (best_value(*kind) << shift_) - price * kind->memory_bytes - worth;
      if (more <= 0 || more_us < 0 || (more_us == 0 && time_us > 0)) continue;
      if (step == 0 || more * step_us > step * more_us || (more * step_us == step * more_us && more > step)) {
        step_us = more_us, step = more;
      }
    }
    if (step == 0 || most <= 0) return;
    steps_.push_back({step_us, step, step_us > 0 ? std::min(most, most_room_us_ / step_us + 1) : most});
    time_us += step_us;
    worth += step;
  }
}

void Relaxation::finish() {
  std::sort(steps_.begin(), steps_.end(),
            [](const Step& a, const Step& b) { return a.worth * b.time_us > b.worth * a.time_us; });
  Wide time_us = 0, worth = 0;
  corners_.assign(1, {0, 0});
  for (const Step& step : steps_) {
    time_us += Wide{step.time_us} * step.most;
    worth += step.worth * step.most;
    corners_.push_back({time_us, worth});
  }
}

bool Relaxation::reaches(Wide aim, std::int64_t room_us) const {
  if (aim <= 0) return true;
  const auto above = corner_above(room_us);
  const Corner& below = *(above - 1);
  if (above == corners_.end() || aim <= below.worth) return aim <= below.worth;
  return (aim - below.worth) * (above->time_us - below.time_us) <=
         (above->worth - below.worth) * (room_us - below.time_us);
}

double Relaxation::about(std::int64_t room_us) const {
  const auto above = corner_above(room_us);
  const Corner& below = *(above - 1);
  if (above == corners_.end()) return static_cast<double>(below.worth);
  return static_cast<double>(below.worth) + static_cast<double>(above->worth - below.worth) *
                                                static_cast<double>(room_us - below.time_us) /
                                                static_cast<double>(above->time_us - below.time_us);
}

std::vector<Relaxation::Corner>::const_iterator Relaxation::corner_above(std::int64_t room_us) const {
  return std::upper_bound(corners_.begin(), corners_.end(), Wide{room_us},
                          [](Wide room, const Corner& corner) { return room < corner.time_us; });
}

}  // namespace zellige
