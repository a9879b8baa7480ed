// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <vector>

#include "base/json.h"
#include "placement/check_parts.h"

namespace zellige {
namespace {

struct Change {
  std::string what;
  std::function<void(Placement&)> undo;
};

/// Single changes that a digest can give away: of exec, whose few values can all be tried, and of what the batch knows.
std::vector<Change> changes(const Plan& plan, const Batch& batch) {
  const ExecOptions& exec = plan.placement.exec;
  const auto shown = [](bool value) { return value ? "true" : "false"; };
  std::vector<Change> list;
  const auto add = [&list](std::string what, std::function<void(Placement&)> undo) {
    list.push_back({std::move(what), std::move(undo)});
  };
  add(std::string("exec.overlap ").append(shown(!exec.overlap)),
      [](Placement& p) { p.exec.overlap = !p.exec.overlap; });
  add(std::string("exec.keep_kv ").append(shown(!exec.keep_kv)),
      [](Placement& p) { p.exec.keep_kv = !p.exec.keep_kv; });
  const std::string other = exec.engine == "paper" ? "coalesced" : "paper";
  add("exec.engine " + other, [other](Placement& p) { p.exec.engine = other; });
  constexpr int kUsualWaves = 16;
  for (int waves = 1; waves <= kUsualWaves; ++waves) {
    if (waves != exec.waves)
      add("exec.waves " + std::to_string(waves), [waves](Placement& p) { p.exec.waves = waves; });
  }
  const auto& placed = plan.placement.sequences;
  if (placed.size() == batch.sequences.size()) {
    add("the batch's ids", [&batch](Placement& p) {
      for (std::size_t i = 0; i < p.sequences.size(); ++i) p.sequences[i].id = batch.sequences[i].id;
    });
    add("the batch's tokens", [&batch](Placement& p) {
      for (std::size_t i = 0; i < p.sequences.size(); ++i) {
        p.sequences[i].tokens = batch.bucket_of(static_cast<SequenceIndex>(i)).tokens;
      }
    });
  }
  constexpr std::size_t kMostSplit = 64;
  std::size_t num_split = 0;
  for (std::size_t i = 0; i < placed.size() && num_split < kMostSplit; ++i) {
    if (std::is_sorted(placed[i].ranks.begin(), placed[i].ranks.end())) continue;
    ++num_split;
    add("the ranks of sequence " + in_quotes(placed[i].id) + " in ascending order",
        [i](Placement& p) { std::sort(p.sequences[i].ranks.begin(), p.sequences[i].ranks.end()); });
  }
  return list;
}

std::string explained(const Plan& plan, const Batch& batch) {
  constexpr std::size_t kMostSequences = 20'000;  // a digest of so many takes some ten milliseconds
  if (plan.placement.sequences.size() <= kMostSequences) {
    for (const Change& change : changes(plan, batch)) {
      Placement before = plan.placement;
      change.undo(before);
      if (digest(before) == plan.stated_digest) return "it is the digest of this plan with " + change.what;
    }
  }
  return "a sequence's id, tokens, config or ranks, or exec, was changed after it was written, or the batch is of "
         "another model";
}

}  // namespace

void check_digests(const Plan& plan, const Batch& batch, const Profile& profile, Findings& findings) {
  if (const std::string right = digest(profile); plan.profile_digest != right) {
    findings.add(Violation::wrong_profile,
                 "profile_digest is " + in_quotes(plan.profile_digest) + "; this profile's is " + in_quotes(right));
  }
  if (plan.stated_digest.empty()) return;
  if (const std::string right = digest(plan.placement); plan.stated_digest != right) {
    findings.add(Violation::wrong_digest, "digest is " + in_quotes(plan.stated_digest) + "; the plan's is " +
                                              in_quotes(right) + ": " + explained(plan, batch));
  }
}

}  // namespace zellige
