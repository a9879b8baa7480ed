// SPDX-License-Identifier: Apache-2.0
#include "report/example_plans.h"

#include <numeric>

namespace zellige::testing {
namespace {

std::string worked_case(const std::string& name) {
  return std::string(ZELLIGE_SOURCE_DIR) + "/tests/golden/worked_case/" + name;
}

Plan placed(const Batch& batch, const Profile& profile, const std::string& method, bool split) {
  Plan plan;
  plan.method = plan.solver = method;
  plan.status = PlanStatus::feasible;
  plan.placement.ranks = batch.ranks;
  plan.placement.model = batch.catalog.model;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const Bucket& bucket = batch.catalog.buckets[batch.sequences[i].bucket];
    PlacedSequence sequence{
        .id = batch.sequences[i].id, .bucket = bucket.name, .kind = bucket.kind, .tokens = bucket.tokens};
    if (split) {
      sequence.config = {1, 1, batch.ranks};
      sequence.ranks.resize(static_cast<std::size_t>(batch.ranks));
      std::iota(sequence.ranks.begin(), sequence.ranks.end(), 0);
    } else {
      sequence.ranks = {static_cast<Rank>(i % static_cast<std::size_t>(batch.ranks))};
    }
    plan.placement.sequences.push_back(sequence);
  }
  complete(plan, batch, profile);
  return plan;
}

}  // namespace

Profile worked_profile() { return read_profile(worked_case("profile.json")); }
Plan worked_plan() { return read_plan(worked_case("plan.json"), read_batch(worked_case("batch.json"))); }

Batch many_images(int ranks, int count) {
  Batch batch;
  batch.ranks = ranks;
  batch.catalog.model = model_preset("wan2.1-t2v-1.3b");
  batch.catalog.buckets = {{"256p", MediaKind::image, 1, 256, 256, {256}},
                           {"720p10s", MediaKind::video, 161, 720, 1280, {147600}}};
  batch.sequences.push_back({"v0", 1, ""});
  for (int i = 0; i < count; ++i) batch.sequences.push_back({"i" + std::to_string(i), 0, ""});
  return batch;
}

Plan dealt_out(const Batch& batch, const Profile& profile, const std::string& method) {
  return placed(batch, profile, method, false);
}

Plan split_over_all(const Batch& batch, const Profile& profile, const std::string& method) {
  return placed(batch, profile, method, true);
}

Plan failed(const std::string& method, const std::string& reason) {
  Plan plan;
  plan.method = method;
  plan.status = PlanStatus::infeasible;
  plan.reason = reason;
  return plan;
}

}  // namespace zellige::testing
