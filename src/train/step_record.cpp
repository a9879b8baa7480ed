// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/json.h"
#include "zellige/trainer.h"

namespace zellige {

std::string json_line(const StepRecord& record) {
  OrderedJson json;
  json["step"] = record.step;
  json["loss"] = record.loss;
  json["gradient_norm"] = record.gradient_norm;
  json["data"] = record.data;
  json["sequences"] = record.sequences;
  json["method"] = record.method;
  json["solver"] = record.solver;
  json["status"] = name(record.status);
  json["split_count"] = record.split_count;
  json["makespan_us"] = record.makespan.value;
  json["predicted_us"] = record.predicted.value;
  json["measured_us"] = record.measured.value;
  json["planning_us"] = record.planning.value;
  Bytes all_gather, ulysses, ring;
  Microseconds waiting;
  OrderedJson ranks = OrderedJson::array();
  for (const RankRecord& rank : record.ranks) {
    waiting = std::max(waiting, rank.waiting);
    all_gather += rank.all_gather;
    ulysses += rank.ulysses;
    ring += rank.ring;
    ranks.push_back({{"tokens", rank.tokens.value},
                     {"predicted_us", rank.predicted.value},
                     {"measured_us", rank.measured.value},
                     {"computing_us", rank.computing.value},
                     {"waiting_us", rank.waiting.value},
                     {"waiting_a_us", rank.waiting_a.value},
                     {"waiting_ring_us", rank.waiting_ring.value},
                     {"waiting_b_us", rank.waiting_b.value},
                     {"all_gather_bytes", rank.all_gather.value},
                     {"ulysses_bytes", rank.ulysses.value},
                     {"ring_bytes", rank.ring.value},
                     {"collectives", rank.collectives}});
  }
  json["waiting_us"] = waiting.value;
  json["all_gather_bytes"] = all_gather.value;
  json["ulysses_bytes"] = ulysses.value;
  json["ring_bytes"] = ring.value;
  json["ranks"] = std::move(ranks);
  return json.dump();
}

}  // namespace zellige
