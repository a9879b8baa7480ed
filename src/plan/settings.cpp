// SPDX-License-Identifier: Apache-2.0
#include "plan/settings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/json.h"
#include "plan/wide.h"
#include "zellige/error.h"
#include "zellige/schedule.h"

namespace zellige {
namespace {

void require(bool holds, const char* option, const std::string& value, const char* right) {
  if (holds) return;
  throw Error(Code::input, "plan.options", std::string(option) + " is " + value + "; it must be " + right);
}

}  // namespace

void check_options(const PlanOptions& options) {
  require(options.time_limit_s >= 0 && std::isfinite(options.time_limit_s), "time_limit_s",
          std::to_string(options.time_limit_s), "a number of seconds, 0 or more");
  require(options.work_limit >= 0 && std::isfinite(options.work_limit), "work_limit",
          std::to_string(options.work_limit), "0 (none) or more");
  require(options.workers >= 1 && options.workers <= 1024, "workers", std::to_string(options.workers),
          "between 1 and 1024");
  require(options.epsilon >= 0 && options.epsilon <= 1, "epsilon", std::to_string(options.epsilon),
          "between 0 and 1 (0.001: loads may exceed the best by 0.1%)");
  require(options.exec.engine == "coalesced" || options.exec.engine == "paper", "exec.engine",
          in_quotes(options.exec.engine), "'coalesced' or 'paper'");
  require(options.exec.waves >= 1 && options.exec.waves <= kMaxWaves, "exec.waves", std::to_string(options.exec.waves),
          ("between 1 and " + std::to_string(kMaxWaves)).c_str());
  check_load_model(options.load_model);
}

void refuse_layout(const std::string& where, const PlanOptions& options) {
  if (options.layout.empty()) return;
  throw Error(Code::input, where, "layout " + in_quotes(options.layout) + ": this method takes none; leave it empty");
}

Deadline deadline_of(const PlanOptions& options, std::stop_token stop) {
  const bool is_timed = options.work_limit == 0;
  return Deadline(is_timed ? options.time_limit_s : std::numeric_limits<double>::infinity(), std::move(stop));
}

cp::Parameters cp_parameters(const PlanOptions& options, const Deadline& deadline, double share) {
  cp::Parameters parameters;
  parameters.workers = options.workers;
  parameters.seed = static_cast<std::int32_t>(options.seed % 2147483647u);
  parameters.work_limit = options.work_limit;
  // Wall time would undo what a work limit is for: the same plan on every rank.
  if (options.work_limit == 0) parameters.wall_limit_s = std::max(1e-3, deadline.remaining_s() * share);
  return parameters;
}

std::int64_t relaxed_load(std::int64_t load_us, double epsilon) {
  constexpr std::int64_t kBillion = 1'000'000'000;
  const std::int64_t slack = std::llround(epsilon * kBillion);
  return static_cast<std::int64_t>(static_cast<Wide>(load_us) * (kBillion + slack) / kBillion);
}

}  // namespace zellige
