// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "zellige/profile.h"

namespace zellige {

/// A whole sequence's length and its price: what work models are fitted to.
struct WorkPoint {
  double tokens = 0;
  double time_us = 0;
};

/// Whole prices of all buckets of the profile's catalog, in catalog order.
std::vector<WorkPoint> whole_prices(const Profile& profile);

/// gamma of time = k (24 l d^2 + gamma 4 l^2 d), d = `width`, by least squares over the points with k and k * gamma
/// free and neither negative. What attention costs beside the matrix products, a FLOP (KnapFormer).
/// 1 when the points do not tell (fewer than two lengths); at most kLargestGamma, which is attention alone.
double fit_gamma(std::span<const WorkPoint> points, int width);
inline constexpr double kLargestGamma = 1e9;

/// time = scale * tokens^exponent by least squares of the logarithms (AdaptiveLoad's B * S^p, our reading).
struct PowerLaw {
  double scale = 1;
  double exponent = 1;

  double operator()(double tokens) const;
};
/// Exponent 2 when the points do not tell (fewer than two lengths). Times and lengths are positive.
PowerLaw fit_power_law(std::span<const WorkPoint> points);

}  // namespace zellige
