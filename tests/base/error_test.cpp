// SPDX-License-Identifier: Apache-2.0
#include "zellige/error.h"

#include <gtest/gtest.h>

#include "zellige/units.h"
#include "zellige/version.h"

namespace zellige {
namespace {

TEST(Error, NamesWhereAndKeepsItsCode) {
  const Error error(Code::infeasible, "plan.anchor", "sequence 'v1' needs 3 bytes; 2 are there");
  EXPECT_EQ(error.code(), Code::infeasible);
  EXPECT_STREQ(error.what(), "[plan.anchor] sequence 'v1' needs 3 bytes; 2 are there");
}

TEST(Error, CodesAreTheDocumentedExitCodes) {
  const std::pair<Code, const char*> documented[] = {
      {Code::ok, "ok"},           {Code::internal, "internal"},
      {Code::input, "input"},     {Code::infeasible, "infeasible"},
      {Code::timeout, "timeout"}, {Code::solver, "solver"},
      {Code::device, "device"},   {Code::communication, "communication"},
  };
  int expected = 0;
  for (const auto& [code, text] : documented) {
    EXPECT_EQ(static_cast<int>(code), expected++);
    EXPECT_EQ(name(code), text);
  }
}

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};

TEST(Units, DifferentUnitsDoNotMix) {
  EXPECT_TRUE((Addable<Bytes, Bytes>));
  EXPECT_FALSE((Addable<Bytes, Microseconds>));
  EXPECT_FALSE((Addable<Tokens, std::int64_t>));
  EXPECT_EQ((Tokens{3} + Tokens{4} - Tokens{2}) * 10, Tokens{50});
  EXPECT_LT(Microseconds{3}, Microseconds{4});
}

TEST(Version, IsThreeNumbers) { EXPECT_EQ(std::count(version().begin(), version().end(), '.'), 2); }

}  // namespace
}  // namespace zellige
