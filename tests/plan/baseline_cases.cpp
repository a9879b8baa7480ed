// SPDX-License-Identifier: Apache-2.0
#include "baseline_cases.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "zellige/check.h"
#include "zellige/error.h"

namespace zellige::testing {

Profile ruled_profile(const std::vector<std::int64_t>& lengths, int largest_degree, const CostRule& rule,
                      std::int64_t cap_bytes, const std::string& model) {
  Profile profile;
  profile.catalog.model = model_preset(model);
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    Bucket bucket;
    bucket.name = "b" + std::to_string(b);
    bucket.height = 16;
    bucket.width = static_cast<int>(16 * lengths[b]);
    bucket.tokens = {lengths[b]};
    profile.catalog.buckets.push_back(bucket);
  }
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    std::vector<Price> prices;
    for (const Configuration config : menu(profile.catalog.model, {lengths[b]}, largest_degree, Menu::all)) {
      const std::optional<Cost> cost = rule(lengths[b], config);
      if (!cost) continue;
      Price price;
      price.config = config;
      price.time = {cost->time_us};
      price.memory = {cost->memory_bytes};
      prices.push_back(price);
    }
    profile.set_prices(static_cast<BucketIndex>(b), prices);
  }
  profile.memory_usable = {cap_bytes};
  return profile;
}

Cost quadratic_cost(std::int64_t tokens, Configuration configuration) {
  const std::int64_t degree = configuration.degree();
  const std::int64_t whole = tokens * 36'864 / 1000 + tokens * tokens * 4 / 1000;
  return {std::max<std::int64_t>(1, whole * (98 + 2 * degree) / (100 * degree)), (tokens + degree - 1) / degree};
}

CostRule random_cost_rule(std::uint64_t seed) {
  return [seed](std::int64_t tokens, Configuration c) -> std::optional<Cost> {
    const auto draw = [&](std::uint64_t what, std::int64_t least, std::uint64_t range) {
      RandomEngine engine(seed * 1'000'003 + static_cast<std::uint64_t>(tokens) * 1009 + what);
      return least + static_cast<std::int64_t>(draw_below(engine, range));
    };
    const auto config = static_cast<std::uint64_t>(c.q * 17 + c.h * 257 + c.k * 4099);
    const std::int64_t need = tokens * draw(1, 20, 180) / 100;  // of the whole sequence
    const std::int64_t time = c.is_whole() ? tokens : tokens * draw(config, 90, 60) / (100 * c.degree());
    const std::int64_t memory = c.is_whole() ? need : need * draw(config + 1, 100, 30) / (100 * c.degree());
    return Cost{std::max<std::int64_t>(1, time), std::max<std::int64_t>(1, memory)};
  };
}

Batch batch_of(const Profile& profile, const std::vector<int>& buckets, int ranks) {
  Batch batch;
  batch.ranks = ranks;
  batch.catalog = profile.catalog;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    batch.sequences.push_back({"s" + std::to_string(i), static_cast<BucketIndex>(buckets[i]), ""});
  }
  return batch;
}

void expect_good_plan(const Plan& plan, const Batch& batch, const Profile& profile) {
  ASSERT_TRUE(plan.has_placement()) << plan.method << ": " << plan.reason;
  for (const Finding& finding : check(plan, batch, profile)) {
    ADD_FAILURE() << plan.solver << ": " << name(finding.what) << ": " << finding.message;
  }
  EXPECT_EQ(plan.solver.substr(0, plan.method.size()), plan.method);
  ASSERT_TRUE(plan.certificate.makespan_bound.has_value()) << plan.solver;
  EXPECT_EQ(plan.status == PlanStatus::optimal, *plan.certificate.makespan_bound == plan.makespan) << plan.solver;
  EXPECT_FALSE(plan.certified);
  EXPECT_FALSE(plan.certificate.anchor_load || plan.certificate.anchor_bound || plan.certificate.anchor_status);
  EXPECT_FALSE(plan.certificate.split_count || plan.certificate.split_bound || plan.certificate.split_status);
}

void expect_no_plan(const Plan& plan, const Batch& batch, const Profile& profile, const std::string& part) {
  EXPECT_FALSE(plan.has_placement()) << plan.solver;
  EXPECT_THAT(plan.reason, ::testing::HasSubstr(part));
  EXPECT_TRUE(plan.placement.sequences.empty());
  for (const Finding& finding : check(plan, batch, profile)) {
    ADD_FAILURE() << plan.solver << ": " << name(finding.what) << ": " << finding.message;
  }
}

std::string why_not_disjoint(const Placement& placement) {
  std::map<std::vector<Rank>, Configuration> groups;
  std::map<Rank, std::vector<Rank>> group_of;
  for (const PlacedSequence& sequence : placement.sequences) {
    std::vector<Rank> ranks = sequence.ranks;
    std::sort(ranks.begin(), ranks.end());
    const auto [group, is_new] = groups.try_emplace(ranks, sequence.config);
    if (!is_new && group->second != sequence.config) return sequence.id + ": its group has two configurations";
    for (const Rank rank : ranks) {
      if (group_of.try_emplace(rank, ranks).first->second != ranks) {
        return sequence.id + ": rank " + std::to_string(rank) + " is in two groups";
      }
    }
  }
  return {};
}

std::string input_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == Code::input ? error.what() : "code " + std::string(name(error.code()));
  }
  return "no error";
}

}  // namespace zellige::testing
