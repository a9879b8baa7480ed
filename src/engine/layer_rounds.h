// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "engine/step_plan.h"

namespace zellige {

/// Runs one pass of a layer in the order of its collectives (schedule.h): exchanges are posted as early as the plan
/// says, the first `first` of `calls` whole calls run before the first round, beside its A, the others beside the last
/// B.
/// @param layer  post(exchange), finish(exchange), run_whole(begin, end), and of a round open, compute and close
template <class Layer>
void run_rounds(Layer& layer, const PassPlan& pass, std::size_t first, std::size_t calls) {
  const std::vector<Round>& rounds = pass.rounds;
  if (!rounds.empty()) layer.post(rounds.front().a);
  layer.run_whole(0, first);
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    const Round& round = rounds[r];
    if (r > 0 && !round.a_is_early) layer.post(round.a);
    layer.open(round);
    layer.finish(round.a);
    if (r + 1 < rounds.size() && rounds[r + 1].a_is_early) layer.post(rounds[r + 1].a);
    layer.compute(round);
    if (r > 0) layer.finish(rounds[r - 1].b);
    layer.post(round.b);
    layer.close(round);
  }
  layer.run_whole(first, calls);
  if (!rounds.empty()) layer.finish(rounds.back().b);
}

}  // namespace zellige
