// SPDX-License-Identifier: Apache-2.0
#include "calibrate/length_curve.h"

#include <algorithm>
#include <cmath>

namespace zellige {
namespace {

constexpr double kUnknown = 0.5;  // expected relative error where no two points can be compared

}  // namespace

void LengthCurve::add(std::int64_t length, double value) {
  const auto place = std::ranges::lower_bound(points_, length, {}, &Point::length);
  if (place != points_.end() && place->length == length) return;
  points_.insert(place, {length, value});
}

double LengthCurve::guess(const std::vector<Point>& points, std::int64_t length) {
  const double x = static_cast<double>(length);
  if (points.size() == 1) {
    const double ratio = x / static_cast<double>(points[0].length);
    return points[0].value * (ratio < 1 ? ratio : ratio * ratio);
  }
  auto right = std::ranges::lower_bound(points, length, {}, &Point::length);
  const bool beyond = right == points.end() || right == points.begin();
  if (right == points.end()) --right;
  if (right == points.begin()) ++right;
  const Point& a = *(right - 1);
  const Point& b = *right;
  const double per_a = a.value / static_cast<double>(a.length), per_b = b.value / static_cast<double>(b.length);
  double slope = (per_b - per_a) / static_cast<double>(b.length - a.length);
  // Beyond the ends a falling line would cross zero: time per token stays what it is at that end.
  const Point& near = length < a.length ? a : b;
  if (beyond) slope = std::max(slope, 0.0);
  const Point& from = beyond ? near : a;
  const double per_from = from.value / static_cast<double>(from.length);
  // Short sequences never cost less a token than half of the shortest measured one's.
  return x * std::max(per_from + slope * (x - static_cast<double>(from.length)), 0.5 * per_from);
}

CurveValue LengthCurve::at(std::int64_t length) const {
  const auto exact = std::ranges::find(points_, length, &Point::length);
  if (exact != points_.end()) return {exact->value, PriceSource::measured, 0};
  CurveValue result;
  result.value = guess(points_, length);
  const bool inside = points_.front().length < length && length < points_.back().length;
  result.source = inside ? PriceSource::interpolated : PriceSource::extrapolated;
  if (points_.size() < 3) {
    result.error = kUnknown;
    return result;
  }
  // Points that can be left out: inside, the neighbours that are no ends; beyond, the end itself.
  const auto right =
      static_cast<std::size_t>(std::ranges::lower_bound(points_, length, {}, &Point::length) - points_.begin());
  std::vector<std::size_t> judged;
  if (inside) {
    for (const std::size_t i : {right - 1, right}) {
      if (i > 0 && i + 1 < points_.size()) judged.push_back(i);
    }
  } else {
    judged.push_back(right == 0 ? 0 : points_.size() - 1);
  }
  for (const std::size_t i : judged) {
    std::vector<Point> others = points_;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    result.error = std::max(result.error, std::abs(guess(others, points_[i].length) / points_[i].value - 1));
  }
  if (!inside) {
    const auto end = static_cast<double>(right == 0 ? points_.front().length : points_.back().length);
    const double distance = std::abs(std::log(static_cast<double>(length) / end));
    result.error *= std::max(1.0, distance / std::log(2.0));
  }
  return result;
}

}  // namespace zellige
