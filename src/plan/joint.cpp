// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/json.h"
#include "plan/anchor.h"
#include "plan/finish.h"
#include "plan/own_anchor.h"
#include "plan/settings.h"
#include "plan/two_stage.h"
#include "zellige/error.h"

namespace zellige {
namespace {

class Joint final : public Planner {
 public:
  Joint(std::string method, Form form) : method_(std::move(method)), form_(form) {}
  std::string_view name() const override { return method_; }

  Plan plan(const Batch& batch, const Profile& profile, const PlanOptions& options,
            std::stop_token stop) const override {
    check_options(options);
    refuse_layout("plan." + method_, options);
    const Deadline deadline = deadline_of(options, std::move(stop));
    const std::vector<BucketIndex> buckets = match_buckets(batch, profile);
    std::string why_not;
    const std::shared_ptr<const cp::Solver> solver = cp::Solver::find(options.ortools, why_not);
    if (!solver) {
      throw Error(Code::solver, "plan." + method_, "method " + in_quotes(method_) + " needs CP-SAT. " + why_not);
    }
    const Problem unreduced =
        make_problem(batch, profile, buckets, std::vector<bool>(profile.catalog.buckets.size(), true), options.menu,
                     options.load_model);
    Plan plan;
    plan.method = method_;
    plan.solver = "cp-sat";
    if (std::string reason = why_infeasible(unreduced, batch, profile); !reason.empty()) {
      finish_without(plan, PlanStatus::infeasible, std::move(reason), batch, profile, options, deadline);
      return plan;
    }
    const Problem whole = reduced(unreduced);
    AnchorSettings settings;
    settings.form = form_;
    settings.fall_back = false;  // a reference answers for its solver, not for the start that it was given
    AnchorResult result = place_anchors(whole, solver.get(), settings, options, deadline);
    plan.certificate = result.certificate;
    prove_bounds(plan.certificate, whole, profile, options, deadline);
    if (result.status != AnchorResult::Status::solved) {
      finish_without(plan, result.plan_status(), std::move(result.reason), batch, profile, options, deadline);
      return plan;
    }
    plan.certified = result.is_certified();
    if (result.balanced) plan.certificate.anchor_placement = rank_contents(whole, *result.balanced, profile);
    std::vector<Assignment> assignments(batch.sequences.size());
    assign(whole, result.solution, assignments);
    finish_with(plan, std::move(assignments), batch, profile, whole, options, deadline);
    return plan;
  }

 private:
  std::string method_;
  Form form_;
};

}  // namespace

std::unique_ptr<Planner> make_joint(std::string method, Form form) {
  return std::make_unique<Joint>(std::move(method), form);
}

}  // namespace zellige
