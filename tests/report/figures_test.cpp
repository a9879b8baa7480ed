// SPDX-License-Identifier: Apache-2.0
#include "report/figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"

namespace zellige {
namespace {

TEST(Figures, ReadAsPeopleWriteThem) {
  EXPECT_EQ(decimal(0.125, 2), "0.12");
  EXPECT_EQ(decimal(-0.0001, 2), "0.00");
  EXPECT_EQ(decimal(-1.5, 1), "-1.5");
  EXPECT_EQ(decimal(std::nan(""), 1), "nan");
  EXPECT_EQ(decimal(-INFINITY, 1), "-inf");
  EXPECT_EQ(shortest(12.500, 3), "12.5");
  EXPECT_EQ(shortest(100, 3), "100");
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(percent(0.0153), "1.53%");
  EXPECT_EQ(percent(-0.0181), "-1.81%");
  EXPECT_EQ(percent(240.8603), "24086%");
  EXPECT_EQ(readable(Microseconds{3564339}), "3.564 s");
  EXPECT_EQ(readable(Microseconds{75524}), "75.5 ms");
  EXPECT_EQ(readable(Microseconds{12}), "12 us");
  EXPECT_EQ(readable(Microseconds{0}), "0 us");
  EXPECT_EQ(readable(Bytes{4783104000}), "4.45 GiB");
  EXPECT_EQ(readable(Bytes{0}), "0 B");
  EXPECT_EQ(readable(Bytes{std::int64_t{3} << 40}), "3.00 TiB");
  EXPECT_EQ(counted(1, "split"), "1 split");
  EXPECT_EQ(counted(1705, "image"), "1,705 images");
  EXPECT_EQ(in_unit(69'813'000, time_unit(69'813'000)), "69.8 s");
  EXPECT_EQ(in_unit(350'000, token_unit(350'000)), "350K");
}

TEST(Ticks, AreRoundAndInRange) {
  EXPECT_EQ(ticks(0, 100, 5), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(ticks(0, 1, 4), (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
  RandomEngine random(7);
  for (int i = 0; i < 2000; ++i) {
    const double low = (draw_unit(random) - 0.5) * std::pow(10, 12 * draw_unit(random) - 6);
    const double high = low + draw_unit(random) * std::pow(10, 12 * draw_unit(random) - 6);
    SCOPED_TRACE(std::to_string(low) + " to " + std::to_string(high));
    const std::vector<double> values = ticks(low, high, 5);
    ASSERT_GE(values.size(), 2u);
    ASSERT_LE(values.size(), 11u);
    const double slack = 1e-6 * (high - low);
    EXPECT_GE(values.front(), low - slack);
    EXPECT_LE(values.back(), high + slack);
  }
}

TEST(Ticks, EndWhereTheRangeIsBelowTheValuesPrecision) {
  EXPECT_LE(ticks(1e9, std::nextafter(1e9, 2e9), 5).size(), 21u);
  EXPECT_LE(ticks(-1e299, 1e299, 5).size(), 21u);
}

}  // namespace
}  // namespace zellige
