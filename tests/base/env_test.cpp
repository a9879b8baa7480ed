// SPDX-License-Identifier: Apache-2.0
#include "zellige/env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "zellige/error.h"

namespace zellige {
namespace {

class EnvTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"ZELLIGE_ORTOOLS", "WORLD_SIZE", "MASTER_PORT"}) unsetenv(name);
  }
};

TEST_F(EnvTest, ReadsWhatIsSetAndLeavesTheRestUnset) {
  setenv("ZELLIGE_ORTOOLS", "none", 1);
  setenv("WORLD_SIZE", "8", 1);
  setenv("MASTER_PORT", "", 1);
  const Env env = Env::from_process();
  EXPECT_EQ(env.ortools, "none");
  EXPECT_EQ(env.world_size, 8);
  EXPECT_EQ(env.master_port, std::nullopt) << "an empty variable is an unset one";
}

TEST_F(EnvTest, RefusesWhatIsNoNumberByName) {
  for (const char* wrong : {"eight", "8x", "-1", "8.0", "99999999999"}) {
    setenv("WORLD_SIZE", wrong, 1);
    try {
      Env::from_process();
      FAIL() << wrong << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::input);
      EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("WORLD_SIZE"), ::testing::HasSubstr(wrong)));
    }
  }
}

}  // namespace
}  // namespace zellige
