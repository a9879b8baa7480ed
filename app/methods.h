// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "zellige/batch.h"
#include "zellige/placement.h"
#include "zellige/planner.h"
#include "zellige/profile.h"

namespace zellige::app {

/// The methods that `compare` takes when it is not told: those that answer within seconds.
std::vector<std::string> default_methods();

/// The method in "method" or "method:layout".
std::string method_name(const std::string& method);

/// Refuses, before anything is planned, what names no method, a layout that is empty or for a method that takes none,
/// and a method that comes twice. Errors: Code::input.
void check_methods(const std::vector<std::string>& methods);
/// Errors: Code::input for a layout (empty: none) given to a method that takes none.
void refuse_unused_layout(const std::string& method, const std::string& layout);

/// Plans the batch by every method and checks each plan. A method may name a layout: "knapformer:g3n1+g1n1". A method
/// that can't run here (its solver is missing) gives a plan without placement and a reason. Errors: Code::input for a
/// method that is none, before anything is planned.
std::vector<Plan> plan_by_methods(const std::vector<std::string>& methods, const Batch& batch, const Profile& profile,
                                  const PlanOptions& options, std::stop_token stop);

/// Prints one row a method, then the reasons of those without a plan.
void print_methods(const std::vector<Plan>& plans, const Profile& profile);

}  // namespace zellige::app
