// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/json.h"
#include "placement/check_parts.h"

namespace zellige {

std::vector<std::optional<std::size_t>> match_sequences(const Plan& plan, const Batch& batch, Findings& findings) {
  const auto& placed = plan.placement.sequences;
  const auto& wanted = batch.sequences;
  std::vector<std::optional<std::size_t>> in_batch(placed.size());
  bool same = placed.size() == wanted.size();
  for (std::size_t i = 0; same && i < placed.size(); ++i) same = placed[i].id == wanted[i].id;
  if (same) {
    for (std::size_t i = 0; i < placed.size(); ++i) in_batch[i] = i;
    return in_batch;
  }

  const auto wrong = [&](const std::string& id, const std::string& what) {
    findings.add(Violation::wrong_batch, "sequence " + in_quotes(id) + " " + what);
  };
  std::unordered_map<std::string_view, std::size_t> by_id;
  for (std::size_t i = 0; i < wanted.size(); ++i) by_id.emplace(wanted[i].id, i);
  std::vector<bool> seen(wanted.size());
  std::size_t last = 0;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const auto found = by_id.find(placed[i].id);
    if (found == by_id.end()) {
      wrong(placed[i].id, "is not in the batch");
      continue;
    }
    const std::size_t at = found->second;
    in_batch[i] = at;
    if (seen[at]) {
      wrong(placed[i].id, "comes twice");
      continue;
    }
    seen[at] = true;
    if (at < last) wrong(placed[i].id, "comes after " + in_quotes(wanted[last].id) + "; in the batch it comes before");
    last = std::max(last, at);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!seen[i]) wrong(wanted[i].id, "of the batch is not in the plan");
  }
  return in_batch;
}

}  // namespace zellige
