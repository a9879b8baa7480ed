// SPDX-License-Identifier: Apache-2.0
#include "plan/fitted_work.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace zellige {
namespace {

std::vector<WorkPoint> points(const std::vector<double>& lengths, const std::function<double(double)>& time) {
  std::vector<WorkPoint> all;
  for (const double length : lengths) all.push_back({length, time(length)});
  return all;
}

const std::vector<double> kLengths = {448, 1024, 3600, 8160, 63'960, 147'600};

TEST(FittedWork, GammaIsFoundAgain) {
  for (const double gamma : {0.05, 0.4, 1.0, 3.0}) {
    for (const int width : {1536, 3072}) {
      const double d = width;
      const auto time = [&](double l) { return 7e-10 * (24 * l * d * d + gamma * 4 * l * l * d); };
      EXPECT_NEAR(fit_gamma(points(kLengths, time), width), gamma, 1e-9 * gamma);
    }
  }
}

TEST(FittedWork, GammaIsTheLeastSquaresOneWhenPointsDisagree) {
  // Lengths 1, 2, 3 and times 2, 5, 9: time = a l + b l^2 has the normal equations 14 a + 36 b = 39 and
  // 36 a + 98 b = 103, so a = 1.5 and b = 0.5. With a = k 24 d^2 and b = k gamma 4 d, gamma = 6 d b / a = 2 d.
  const std::vector<WorkPoint> three = {{1, 2}, {2, 5}, {3, 9}};
  EXPECT_NEAR(fit_gamma(three, 1536), 3072, 1e-6);
}

TEST(FittedWork, GammaStaysInRange) {
  EXPECT_EQ(fit_gamma({}, 1536), 1);
  EXPECT_EQ(fit_gamma(points({500}, [](double l) { return l; }), 1536), 1);
  EXPECT_EQ(fit_gamma(points({500, 500}, [](double l) { return l; }), 1536), 1);
  EXPECT_EQ(fit_gamma(points(kLengths, [](double l) { return std::sqrt(l); }), 1536), 0);
  EXPECT_EQ(fit_gamma(points(kLengths, [](double l) { return l * l * l; }), 1536), kLargestGamma);
}

TEST(FittedWork, PowerLawIsFoundAgain) {
  for (const double exponent : {1.0, 1.63, 2.0}) {
    const PowerLaw law = fit_power_law(points(kLengths, [&](double l) { return 0.37 * std::pow(l, exponent); }));
    EXPECT_NEAR(law.exponent, exponent, 1e-12);
    EXPECT_NEAR(law.scale, 0.37, 1e-11);
    EXPECT_NEAR(law(1000), 0.37 * std::pow(1000, exponent), 1e-6);
  }
}

TEST(FittedWork, PowerLawTakesTheMiddleOfLogarithms) {
  // In logarithms to base 10: (2, 2), (3, 5), (4, 5): slope ((-1)(-2) + 0 + (1)(1)) / 2 = 1.5, mean (3, 4).
  const PowerLaw law = fit_power_law(std::vector<WorkPoint>{{1e2, 1e2}, {1e3, 1e5}, {1e4, 1e5}});
  EXPECT_NEAR(law.exponent, 1.5, 1e-12);
  EXPECT_NEAR(law(1e3), 1e4, 1e-6);
}

TEST(FittedWork, PowerLawOfOneLengthIsQuadratic) {
  const PowerLaw law = fit_power_law(std::vector<WorkPoint>{{100, 5}, {100, 5}});
  EXPECT_EQ(law.exponent, 2);
  EXPECT_NEAR(law(100), 5, 1e-9);
  EXPECT_EQ(fit_power_law({}).exponent, 2);
}

}  // namespace
}  // namespace zellige
