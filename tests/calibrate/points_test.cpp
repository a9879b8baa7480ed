// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/points.h"
#include "zellige/error.h"

namespace zellige {
namespace {

Points example() {
  Points points;
  points.of = "sha256:1";
  points.depth = 1;
  points.fixed_us = 12.5;
  points.token_us = 0.25;
  points.slack_bytes = 77;
  points.points = {{Tokens{256}, {1, 2, 1}, 8, 31.75, 2.5, 0.01, 3, 4096}, {Tokens{1560}, {}, 1, 1e6, 0, 0.5, 1, 1}};
  points.checks = {{Tokens{256}, {}, 4, 100.5, 99.25}};
  return points;
}

TEST(Points, SurviveTheFile) {
  const Points points = example();
  const Points read = points_from(points_json(points), "sha256:1");
  EXPECT_EQ(points_json(read), points_json(points));
  EXPECT_EQ(read.points, points.points);
  EXPECT_EQ(read.fixed_us, points.fixed_us);
  EXPECT_FALSE(read.gradient_sync_us);
  EXPECT_EQ(read.find(Tokens{256}, {1, 2, 1})->sequences, 8);
  EXPECT_EQ(read.find(Tokens{256}, {2, 1, 1}), nullptr);
}

TEST(Points, OfAnotherRunAreRefused) {
  try {
    points_from(points_json(example()), "sha256:2");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::input);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("sha256:2"));
  }
  EXPECT_THROW(points_from("{}", "sha256:1"), Error);
  EXPECT_THROW(points_from("", "sha256:1"), Error);
}

TEST(Points, IdentityIsOfAllThatTheyDependOn) {
  CalibrateOptions options;
  options.catalog.model = model_preset("tiny");
  ProfileKey key;
  key.device = "a";
  const std::string one = identity_of(options, key, 1);
  EXPECT_EQ(one, identity_of(options, key, 1));
  EXPECT_NE(one, identity_of(options, key, 2));
  key.torch = "3";
  EXPECT_NE(one, identity_of(options, key, 1));
  key.torch = "";
  options.text_dim = 5;
  EXPECT_NE(one, identity_of(options, key, 1));
}

}  // namespace
}  // namespace zellige
