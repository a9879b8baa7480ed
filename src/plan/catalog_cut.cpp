// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "zellige/planner.h"

namespace zellige {
namespace {

/// Sum of squared distances from the mean of items [first, last), in order.
double dispersion(const std::vector<double>& scores, std::size_t first, std::size_t last) {
  double sum = 0;
  for (std::size_t i = first; i < last; ++i) sum += scores[i];
  const double mean = sum / static_cast<double>(last - first);
  double squares = 0;
  for (std::size_t i = first; i < last; ++i) squares += (scores[i] - mean) * (scores[i] - mean);
  return squares;
}

}  // namespace

std::vector<bool> anchor_buckets(const Profile& profile) {
  const auto& buckets = profile.catalog.buckets;
  if (buckets.size() < 2) return std::vector<bool>(buckets.size(), true);  // nothing to cut

  // b_(1) .. b_(B): by whole price, then tokens, then name, so that the order of the file does not matter.
  std::vector<BucketIndex> order(buckets.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](BucketIndex a, BucketIndex b) {
    return std::tuple(profile.whole(a).time, buckets[a].tokens, buckets[a].name) <
           std::tuple(profile.whole(b).time, buckets[b].tokens, buckets[b].name);
  });
  std::vector<double> scores;  // log w_i
  for (const BucketIndex bucket : order)
    scores.push_back(std::log(static_cast<double>(profile.whole(bucket).time.value)));

  // Eq. 4. Sums that differ by rounding only are a tie, and the smallest k wins it.
  constexpr double kTie = 1e-12;
  std::size_t cut = 1;
  double least = dispersion(scores, 0, 1) + dispersion(scores, 1, scores.size());
  for (std::size_t k = 2; k < scores.size(); ++k) {
    const double candidate = dispersion(scores, 0, k) + dispersion(scores, k, scores.size());
    if (candidate < least - kTie * std::max(std::abs(least), std::abs(candidate))) {
      least = candidate;
      cut = k;
    }
  }
  std::vector<bool> is_anchor(buckets.size(), false);
  for (std::size_t i = cut; i < order.size(); ++i) is_anchor[order[i]] = true;
  return is_anchor;
}

}  // namespace zellige
