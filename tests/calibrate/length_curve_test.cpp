// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "calibrate/length_curve.h"

namespace zellige {
namespace {

double law(double length) { return 3 * length + 2e-3 * length * length; }

TEST(LengthCurve, MeasuredPointsAreThemselves) {
  LengthCurve curve;
  curve.add(4000, 7);
  curve.add(256, 1);
  curve.add(256, 99);  // of equal lengths the first counts
  EXPECT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve.at(256).value, 1);
  EXPECT_EQ(curve.at(4000).value, 7);
  EXPECT_EQ(curve.at(4000).source, PriceSource::measured);
  EXPECT_EQ(curve.at(4000).error, 0);
}

TEST(LengthCurve, ATransformersLawIsMetInsideAndBeyond) {
  LengthCurve curve;
  for (const std::int64_t length : {256, 1560, 8160, 63960}) curve.add(length, law(static_cast<double>(length)));
  for (const std::int64_t length : {300, 4000, 30000}) {
    const CurveValue value = curve.at(length);
    EXPECT_NEAR(value.value / law(static_cast<double>(length)), 1, 1e-9) << length;
    EXPECT_EQ(value.source, PriceSource::interpolated);
    EXPECT_LT(value.error, 1e-9);
  }
  for (const std::int64_t length : {128, 147600, 334560}) {
    const CurveValue value = curve.at(length);
    EXPECT_NEAR(value.value / law(static_cast<double>(length)), 1, 1e-9) << length;
    EXPECT_EQ(value.source, PriceSource::extrapolated);
    EXPECT_LT(value.error, 1e-9);
  }
}

TEST(LengthCurve, TheErrorIsThatOfLeavingAPointOut) {
  // One point is 20% off the law: guesses beside it must say so, and where it is left out they are 17% off.
  LengthCurve curve;
  curve.add(1000, law(1000));
  curve.add(2000, 1.2 * law(2000));
  curve.add(3000, law(3000));
  curve.add(9000, law(9000));
  EXPECT_NEAR(curve.at(1500).error, 1 - 1 / 1.2, 1e-9);
  EXPECT_GT(curve.at(2500).error, 0.1);
}

TEST(LengthCurve, FarBeyondTheEndIsLessSure) {
  LengthCurve curve;
  curve.add(1000, law(1000));
  curve.add(2000, 1.1 * law(2000));
  curve.add(4000, law(4000));
  EXPECT_GT(curve.at(40000).error, curve.at(5000).error);
  EXPECT_GT(curve.at(5000).error, 0);
}

TEST(LengthCurve, NeverFallsBelowZeroNorShrinksWithLength) {
  LengthCurve curve;  // time per token falls: fixed costs of short sequences
  curve.add(256, 1000);
  curve.add(1024, 2000);
  double last = 0;
  for (const std::int64_t length : {16, 64, 256, 512, 1024, 4096, 100000}) {
    const double value = curve.at(length).value;
    EXPECT_GT(value, last) << length;
    last = value;
  }
  EXPECT_GT(curve.at(512).error, 0) << "two points can't be checked against each other";
}

}  // namespace
}  // namespace zellige
