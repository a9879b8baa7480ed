// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stop_token>

#include "plan/cp_model.h"
#include "plan/deadline.h"
#include "zellige/planner.h"

namespace zellige {

/// Refuses options that make no sense (Code::input), naming the option and its value.
void check_options(const PlanOptions& options);

/// Errors: Code::input when a layout is given, for methods that take none.
/// @param where  "plan.METHOD"
void refuse_layout(const std::string& where, const PlanOptions& options);

/// The deadline of a plan that starts now. A work limit stands alone: wall time would end searches at different places
/// on different ranks.
Deadline deadline_of(const PlanOptions& options, std::stop_token stop);

/// What a solve of CP-SAT may spend: the work limit, or else `share` of the time that is left.
cp::Parameters cp_parameters(const PlanOptions& options, const Deadline& deadline, double share);

/// floor((1 + epsilon) x load_us), the load limit of the second anchor round. Exact: epsilon is taken in whole
/// billionths, so that 1e-3 gives floor(1001 * load_us / 1000).
std::int64_t relaxed_load(std::int64_t load_us, double epsilon);

}  // namespace zellige
