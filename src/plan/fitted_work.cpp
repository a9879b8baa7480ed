// SPDX-License-Identifier: Apache-2.0
#include "plan/fitted_work.h"

#include <algorithm>
#include <cmath>

namespace zellige {
namespace {

bool one_length(std::span<const WorkPoint> points) {
  return std::all_of(points.begin(), points.end(),
                     [&](const WorkPoint& point) { return point.tokens == points.front().tokens; });
}

}  // namespace

std::vector<WorkPoint> whole_prices(const Profile& profile) {
  std::vector<WorkPoint> points;
  for (BucketIndex bucket = 0; bucket < static_cast<BucketIndex>(profile.catalog.buckets.size()); ++bucket) {
    points.push_back({static_cast<double>(profile.catalog.buckets[bucket].tokens.value),
                      static_cast<double>(profile.whole(bucket).time.value)});
  }
  return points;
}

double fit_gamma(std::span<const WorkPoint> points, int width) {
  if (one_length(points)) return 1;
  // Normal equations of time = a x + b y with x = 24 l d^2 and y = 4 l^2 d, each scaled to 1 at the longest sequence so
  // that the determinant keeps its digits.
  const double d = width;
  double longest = 0;
  for (const WorkPoint& point : points) longest = std::max(longest, point.tokens);
  double xx = 0, xy = 0, yy = 0, xt = 0, yt = 0;
  for (const WorkPoint& point : points) {
    const double x = point.tokens / longest;
    const double y = x * x;
    xx += x * x, xy += x * y, yy += y * y;
    xt += x * point.time_us, yt += y * point.time_us;
  }
  const double determinant = xx * yy - xy * xy;
  const double a = (xt * yy - yt * xy) / determinant;
  const double b = (yt * xx - xt * xy) / determinant;
  if (b <= 0) return 0;              // no attention term: the constrained optimum has it at 0
  if (a <= 0) return kLargestGamma;  // attention alone
  const double per_x = a / (24 * longest * d * d);
  const double per_y = b / (4 * longest * longest * d);
  return std::min(per_y / per_x, kLargestGamma);
}

double PowerLaw::operator()(double tokens) const { return scale * std::pow(tokens, exponent); }

PowerLaw fit_power_law(std::span<const WorkPoint> points) {
  if (points.empty()) return {1, 2};
  const auto count = static_cast<double>(points.size());
  double mean_x = 0, mean_y = 0;
  for (const WorkPoint& point : points) {
    mean_x += std::log(point.tokens) / count;
    mean_y += std::log(point.time_us) / count;
  }
  if (one_length(points)) return {std::exp(mean_y - 2 * mean_x), 2};
  double xx = 0, xy = 0;
  for (const WorkPoint& point : points) {
    const double x = std::log(point.tokens) - mean_x;
    xx += x * x;
    xy += x * (std::log(point.time_us) - mean_y);
  }
  const double exponent = xy / xx;
  return {std::exp(mean_y - exponent * mean_x), exponent};
}

}  // namespace zellige
