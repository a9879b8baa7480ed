// SPDX-License-Identifier: Apache-2.0
#include "plan/relax.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "base/json.h"
#include "plan/bounds.h"
#include "plan/greedy.h"
#include "plan/what_if.h"

namespace zellige {
namespace {

constexpr std::int64_t kEffort = 60'000;  // steps of list scheduling for one question
constexpr std::int64_t kMostTimesRanks = 64;

/// The smallest step in 1 .. most that holds, when larger ones hold as well; none when `most` does not.
std::optional<std::int64_t> smallest(std::int64_t most, const std::function<bool(std::int64_t)>& holds) {
  std::int64_t low = 0, high = 1;  // low does not hold
  while (!holds(std::min(high, most))) {
    if (high >= most) return std::nullopt;
    low = high;
    high *= 2;
  }
  high = std::min(high, most);
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

class Relaxations {
 public:
  Relaxations(const Batch& batch, const Profile& profile, const PlanOptions& options, const Deadline& deadline)
      : batch_(batch), profile_(profile), options_(options), deadline_(deadline) {
    buckets_ = match_buckets(batch, profile);
    problem_ = problem(batch.ranks, options.menu, profile);
  }

  std::string text() {
    std::vector<std::string> found;
    const auto add = [&](std::string words) {
      if (!words.empty()) found.push_back(std::move(words));
    };
    add(fewer_tokens());
    add(more_ranks());
    add(more_memory());
    add(other_menu());
    add(higher_degrees());
    add(checkpointing());
    if (found.empty()) return "";
    std::string all = "It would fit ";
    for (std::size_t i = 0; i < found.size(); ++i) all.append(i == 0 ? "" : "; or ").append(found[i]);
    return all;
  }

 private:
  Problem problem(int ranks, Menu menu, const Profile& profile) const {
    Batch larger = batch_;
    larger.ranks = ranks;
    return make_problem(larger, profile, buckets_, std::vector<bool>(profile.catalog.buckets.size(), true), menu);
  }

  bool fits(const Problem& unreduced) const {
    if (deadline_.is_over()) return false;
    const Problem tried = reduced(unreduced);
    if (std::any_of(tried.groups.begin(), tried.groups.end(), [](const Group& g) { return g.options.empty(); })) {
      return false;
    }
    if (tried.groups.empty()) return true;
    if (memory_is_refuted(tried)) return false;
    return greedy_balance(tried, kEffort, deadline_, {.sand = {}, .enough_us = kNoLoadLimit}).has_value();
  }

  std::string bucket_name(const Group& group) const { return in_quotes(profile_.catalog.buckets[group.bucket].name); }

  std::string fewer_tokens() const {
    std::int64_t least_tokens = 0, sequences = 0;
    std::optional<std::size_t> best;
    for (std::size_t g = 0; g < problem_.groups.size(); ++g) {
      const std::int64_t length = profile_.catalog.buckets[problem_.groups[g].bucket].tokens.value;
      std::int64_t most = problem_.groups[g].count();
      if (best) most = std::min(most, (least_tokens - 1) / length);
      if (most < 1) continue;
      const auto count = smallest(most, [&](std::int64_t gone) {
        Problem less = problem_;
        less.groups[g].members.resize(static_cast<std::size_t>(problem_.groups[g].count() - gone));
        if (less.groups[g].members.empty()) less.groups.erase(less.groups.begin() + static_cast<std::ptrdiff_t>(g));
        return fits(less);
      });
      if (!count) continue;
      best = g;
      sequences = *count;
      least_tokens = *count * length;
    }
    if (!best) return "";
    const Group& group = problem_.groups[*best];
    return "without " + std::to_string(sequences) + " of the " + std::to_string(group.count()) +
           " sequences of bucket " + bucket_name(group) + ", " + std::to_string(least_tokens) + " tokens";
  }

  std::string more_ranks() const {
    const auto more = smallest(batch_.ranks * (kMostTimesRanks - 1), [&](std::int64_t ranks) {
      return fits(problem(batch_.ranks + static_cast<int>(ranks), options_.menu, profile_));
    });
    if (!more) return "";
    return "on " + std::to_string(batch_.ranks + *more) + " ranks instead of " + std::to_string(batch_.ranks);
  }

  std::string more_memory() const {
    // In steps of a thousandth of the cap: bytes would only look exact.
    const std::int64_t step = std::max<std::int64_t>(1, problem_.memory_cap_bytes / 1000);
    const auto steps = smallest(64'000, [&](std::int64_t count) {
      Problem roomier = problem_;
      roomier.memory_cap_bytes += count * step;
      return fits(roomier);
    });
    if (!steps) return "";
    return "with " + std::to_string(*steps * step) + " bytes more on every rank";
  }

  std::string other_menu() const {
    if (options_.menu == Menu::all || !fits(problem(batch_.ranks, Menu::all, profile_))) return "";
    return "with the menu of all degrees, not only powers of two";
  }

  std::string higher_degrees() const {
    int highest = 1;
    for (const Group& group : problem_.groups) {
      const Tokens length = profile_.catalog.buckets[group.bucket].tokens;
      for (const Configuration config : menu(profile_.catalog.model, length, batch_.ranks, options_.menu)) {
        if (profile_.find(group.bucket, config) == nullptr) highest = std::max(highest, config.degree());
      }
    }
    if (highest == 1) return "";
    const Profile wider = what_if(profile_, {.ranks = batch_.ranks});
    if (!fits(problem(batch_.ranks, options_.menu, wider))) return "";
    return "with prices of the legal configurations that the profile lacks, up to degree " + std::to_string(highest) +
           " (needs estimated)";
  }

  std::string checkpointing() const {
    if (profile_.key.checkpointing) return "";
    const Profile lighter = what_if(profile_, {.checkpointing = true});
    return fits(problem(batch_.ranks, options_.menu, lighter)) ? "with activation checkpointing (needs estimated)" : "";
  }

  const Batch& batch_;
  const Profile& profile_;
  const PlanOptions& options_;
  const Deadline& deadline_;
  std::vector<BucketIndex> buckets_;
  Problem problem_;
};

}  // namespace

std::string what_would_fit(const Batch& batch, const Profile& profile, const PlanOptions& options,
                           const Deadline& deadline) {
  if (deadline.is_over()) return "";
  return Relaxations(batch, profile, options, deadline).text();
}

}  // namespace zellige
