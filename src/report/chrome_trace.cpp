// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "report/stacks.h"
#include "zellige/report.h"

namespace zellige {
namespace {

OrderedJson named(const char* what, int rank, OrderedJson arguments) {
  return {{"name", what}, {"ph", "M"}, {"pid", 0}, {"tid", rank}, {"args", std::move(arguments)}};
}

}  // namespace

std::string chrome_trace(const Plan& plan) {
  OrderedJson events = OrderedJson::array();
  const std::string title = printable(plan.method + (plan.has_placement() ? "" : ": " + plan.reason));
  events.push_back(named("process_name", 0, {{"name", title}}));
  if (plan.has_placement()) {
    // The engine keeps whole sequences first, then chunks by decreasing degree: the reverse of a bar's two parts.
    const std::vector<Stack> of_ranks = stacks(plan.placement, swatches({plan}), plan.load_model);
    for (std::size_t i = 0; i < of_ranks.size(); ++i) {
      const int rank = static_cast<int>(i);
      events.push_back(named("thread_name", rank, {{"name", "rank " + std::to_string(rank)}}));
      events.push_back(named("thread_sort_index", rank, {{"sort_index", rank}}));
      std::int64_t at = 0;
      for (const bool whole : {true, false}) {
        for (const Part& part : of_ranks[i]) {
          const PlacedSequence& sequence = plan.placement.sequences[static_cast<std::size_t>(part.sequence)];
          if (sequence.config.is_whole() != whole) continue;
          events.push_back({{"name", printable(sequence.id)},
                            {"cat", name(sequence.kind)},
                            {"ph", "X"},
                            {"ts", at},
                            {"dur", part.time.value},
                            {"pid", 0},
                            {"tid", rank},
                            {"args",
                             {{"bucket", printable(sequence.bucket)},
                              {"tokens", sequence.tokens.value},
                              {"tokens_here", part.tokens.value},
                              {"config", text(sequence.config)},
                              {"ranks", sequence.ranks},
                              {"memory_bytes", part.memory.value}}}});
          at += part.time.value;
        }
      }
    }
  }
  const OrderedJson trace = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return trace.dump() + "\n";
}

}  // namespace zellige
