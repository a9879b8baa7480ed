// SPDX-License-Identifier: Apache-2.0
#include "plan/option.h"

#include <algorithm>
#include <tuple>

#include "base/json.h"
#include "plan/wide.h"
#include "zellige/error.h"

namespace zellige {
namespace {

std::vector<Option> priced_options(const Profile& profile, BucketIndex bucket, int ranks, Menu which,
                                   const LoadModel& model) {
  const Tokens length = profile.catalog.buckets[bucket].tokens;
  std::vector<Option> options;
  for (const Configuration config : menu(profile.catalog.model, length, ranks, which)) {
    const Price* price = profile.find(bucket, config);
    if (price == nullptr) continue;
    const Charge charged = charge(*price, model);
    options.push_back({config, config.degree(), charged.time.value, price->memory.value, charged.exchange.value});
  }
  return options;
}

/// Sums of prices and needs are taken in 64 bits everywhere below: refuses a batch for which that is too little.
void refuse_giants(const Problem& problem, const Profile& profile) {
  constexpr Wide kLimit = static_cast<Wide>(1) << 62;
  Wide time = 0;
  Wide memory = 0;
  for (const Group& group : problem.groups) {
    Wide dearest = 0;
    Wide largest = 0;
    for (const Option& option : group.options) {
      dearest = std::max(dearest, static_cast<Wide>(option.load_us()) * option.degree);
      largest = std::max(largest, static_cast<Wide>(option.memory_bytes) * option.degree);
    }
    time += dearest * group.count();
    memory += largest * group.count();
    if (time >= kLimit || memory >= kLimit) {
      throw Error(Code::input, "plan.problem",
                  "the " + std::to_string(group.count()) + " sequences of bucket " +
                      in_quotes(profile.catalog.buckets[group.bucket].name) + " bring the batch's total " +
                      (time >= kLimit ? "time_us" : "memory_bytes") +
                      " over 2^62; check the unit of the profile's prices");
    }
  }
}

bool dominates(const Option& a, const Option& b) {
  return a.degree <= b.degree && a.time_us <= b.time_us && a.exchange_us <= b.exchange_us &&
         a.memory_bytes <= b.memory_bytes;
}

}  // namespace

std::int64_t Problem::num_sequences() const {
  std::int64_t total = 0;
  for (const Group& group : groups) total += group.count();
  return total;
}

Problem make_problem(const Batch& batch, const Profile& profile, std::span<const BucketIndex> buckets,
                     const std::vector<bool>& wanted, Menu menu, const LoadModel& model) {
  Problem problem;
  problem.ranks = batch.ranks;
  problem.memory_cap_bytes = profile.memory_cap().value;
  std::vector<int> group_of(profile.catalog.buckets.size(), -1);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const BucketIndex bucket = buckets[i];
    if (!wanted[bucket]) continue;
    if (group_of[bucket] < 0) {
      group_of[bucket] = static_cast<int>(problem.groups.size());
      problem.groups.push_back({bucket, {}, priced_options(profile, bucket, batch.ranks, menu, model)});
    }
    problem.groups[group_of[bucket]].members.push_back(static_cast<SequenceIndex>(i));
  }
  // By price and name rather than by first occurrence: permuting a batch then changes nothing for the solver.
  std::sort(problem.groups.begin(), problem.groups.end(), [&](const Group& a, const Group& b) {
    const auto key = [&](const Group& group) {
      return std::tuple(-profile.whole(group.bucket).time.value,
                        std::string_view(profile.catalog.buckets[group.bucket].name));
    };
    return key(a) < key(b);
  });
  refuse_giants(problem, profile);
  return problem;
}

Problem reduced(const Problem& problem) {
  Problem result{problem.ranks, problem.memory_cap_bytes, {}};
  for (const Group& group : problem.groups) {
    Group kept{group.bucket, group.members, {}};
    for (std::size_t j = 0; j < group.options.size(); ++j) {
      const Option& option = group.options[j];
      bool needed = option.memory_bytes <= problem.memory_cap_bytes;
      for (std::size_t other = 0; needed && other < group.options.size(); ++other) {
        if (other == j || !dominates(group.options[other], option)) continue;
        // Of two options that dominate each other (equal in all four) the first stays.
        needed = dominates(option, group.options[other]) && j < other;
      }
      if (needed) kept.options.push_back(option);
    }
    result.groups.push_back(std::move(kept));
  }
  return result;
}

std::string why_never_fits(const Problem& problem, const Batch& batch, const Profile& profile) {
  for (const Group& group : problem.groups) {
    const auto smallest =
        std::min_element(group.options.begin(), group.options.end(),
                         [](const Option& a, const Option& b) { return a.memory_bytes < b.memory_bytes; });
    if (smallest->memory_bytes <= problem.memory_cap_bytes) continue;
    return "sequence " + in_quotes(batch.sequences[group.members.front()].id) + " (bucket " +
           in_quotes(profile.catalog.buckets[group.bucket].name) + ", " + std::to_string(group.count()) +
           " in the batch) fits no rank: its smallest option, " + text(smallest->config) + ", needs " +
           std::to_string(smallest->memory_bytes) + " bytes on each of its ranks, " +
           std::to_string(smallest->memory_bytes - problem.memory_cap_bytes) + " over the memory cap of " +
           std::to_string(problem.memory_cap_bytes);
  }
  return "";
}

}  // namespace zellige
