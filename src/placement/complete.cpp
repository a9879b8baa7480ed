// SPDX-License-Identifier: Apache-2.0
#include "placement/rank_sums.h"
#include "zellige/placement.h"

namespace zellige {

void complete(Plan& plan, const Batch& batch, const Profile& profile) {
  std::int64_t whole_us = 0;
  for (const BucketIndex bucket : match_buckets(batch, profile))
    add_checked(whole_us, profile.whole(bucket).time.value);
  plan.floor = {whole_us / batch.ranks};
  plan.profile_digest = digest(profile);

  check_load_model(plan.load_model);
  if (!plan.has_placement()) plan.placement.sequences.clear();
  const PriceLookup prices(profile);
  for (PlacedSequence& sequence : plan.placement.sequences) {
    const Price& price = prices.price(sequence);
    sequence.time = price.time;
    sequence.memory = price.memory;
    sequence.exchange = plan.load_model.is_overlapped() ? price.exchange : Microseconds{0};
  }
  RankSums sums = rank_sums(plan.placement, prices, plan.load_model);
  plan.makespan = sums.makespan;
  plan.split_count = sums.split_count;
  plan.load = plan.has_placement() ? std::move(sums.load) : std::vector<Microseconds>();
  plan.memory = plan.has_placement() ? std::move(sums.memory) : std::vector<Bytes>();
}

}  // namespace zellige
