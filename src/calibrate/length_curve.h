// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "zellige/profile.h"

namespace zellige {

/// A value at a length, and how sure of it we are.
struct CurveValue {
  double value = 0;
  PriceSource source = PriceSource::measured;  ///< measured, interpolated or extrapolated
  double error = 0;                            ///< expected relative error; 0 where measured
};

/// Times of one configuration over sequence lengths. A transformer's time is a L + b L^2 with rates that change slowly:
/// so time / length is taken as a straight line between neighbouring points, and beyond the ends as the line of the
/// last two, which never falls. The expected error is what leaving out measured points and guessing them from the
/// others gives (the largest near the asked length), growing with the distance beyond the ends.
class LengthCurve {
 public:
  /// Points in any order; of equal lengths the first counts. Lengths and values positive.
  void add(std::int64_t length, double value);
  bool empty() const { return points_.empty(); }
  std::size_t size() const { return points_.size(); }
  /// Needs at least one point. With one point alone time grows like the length below it, like its square above.
  CurveValue at(std::int64_t length) const;

 private:
  struct Point {
    std::int64_t length;
    double value;
  };
  static double guess(const std::vector<Point>& points, std::int64_t length);
  std::vector<Point> points_;  // ascending lengths
};

}  // namespace zellige
