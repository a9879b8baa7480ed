// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "zellige/planner.h"

namespace zellige::testing {

/// What one sequence of some length costs each rank under a configuration.
struct Cost {
  std::int64_t time_us = 1;
  std::int64_t memory_bytes = 1;
};
using CostRule = std::function<std::optional<Cost>(std::int64_t tokens, Configuration configuration)>;

/// A profile with a bucket for each length ("b0", "b1", ...), priced by `rule` for every legal configuration up to
/// `largest_degree` (none: no price), for a model of 12 heads unless another is given. Base memory is 0.
Profile ruled_profile(const std::vector<std::int64_t>& lengths, int largest_degree, const CostRule& rule,
                      std::int64_t cap_bytes, const std::string& model = "wan2.1-t2v-1.3b");

/// 24 l d^2 + 4 l^2 d in units that make 10,000 tokens about a second, 2% dearer for each further rank; memory is the
/// tokens of the chunk.
Cost quadratic_cost(std::int64_t tokens, Configuration configuration);

/// Time and memory that say nothing of each other: every length and configuration has its own share of the whole, and
/// every length its own need.
CostRule random_cost_rule(std::uint64_t seed);

/// A batch of one sequence ("s0", "s1", ...) for each entry, which is its bucket.
Batch batch_of(const Profile& profile, const std::vector<int>& buckets, int ranks);

/// Expects a plan, without findings by the checker, with its bound, and without claims that a baseline can't make.
void expect_good_plan(const Plan& plan, const Batch& batch, const Profile& profile);

/// Expects no plan, for a reason that contains `part`, and nothing that contradicts that.
void expect_no_plan(const Plan& plan, const Batch& batch, const Profile& profile, const std::string& part);

/// Why a placement is none of disjoint groups (section III-B): two rank sets overlap without being the same, or a set
/// has two configurations. Empty when it is one.
std::string why_not_disjoint(const Placement& placement);

/// Runs `call` and returns the text of the Code::input error that it throws; "no error" or another code's name if not.
std::string input_error_of(const std::function<void()>& call);

}  // namespace zellige::testing
