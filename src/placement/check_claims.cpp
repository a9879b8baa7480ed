// SPDX-License-Identifier: Apache-2.0
#include "placement/check_claims.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "placement/anchor_certificate.h"

namespace zellige {
namespace {

constexpr std::array<std::string_view, 7> kBaselines = {"naive",  "adaptiveload", "usp",     "knapformer",
                                                        "flexsp", "megatron",     "disjoint"};

/// The solvers that a method's plans can come from; empty for a baseline, whose solver is itself and its layout.
std::vector<std::string_view> solvers_of(std::string_view method) {
  if (method == "zellige" || method == "two-stage") return {"own", "cp-sat", "greedy"};
  if (method == "zellige-no-ecf") return {"cp-sat", "greedy"};
  if (method == "joint" || method == "joint-no-ecf") return {"cp-sat"};
  return {};
}

/// floor(1001 load / 1000): round 2 may use loads that much.
Wide with_slack(std::int64_t load_us) { return Wide{load_us} * 1001 / 1000; }

constexpr std::int64_t kUnlimited = std::int64_t{1} << 62;
std::int64_t narrowed(Wide load_us) { return static_cast<std::int64_t>(std::min(load_us, Wide{kUnlimited})); }

std::string shown(const std::optional<int>& count) { return count ? std::to_string(*count) : "null"; }

class ClaimCheck {
 public:
  ClaimCheck(const Plan& plan, const Batch& batch, const Profile& profile, const std::vector<BucketIndex>& bucket_of,
             const std::vector<bool>& is_anchor, const Recomputed& recomputed, Findings& findings)
      : plan_(plan),
        certificate_(plan.certificate),
        batch_(batch),
        profile_(profile),
        bucket_of_(bucket_of),
        is_anchor_(is_anchor),
        recomputed_(recomputed),
        findings_(findings),
        choice_(choice()),
        anchors_(instance_of(batch, profile, bucket_of, is_anchor, choice_, plan.load_model)) {
    if (plan.has_placement() && recomputed.sums_known) {
      plan_anchor_load_ = *std::max_element(recomputed.anchor_load_us.begin(), recomputed.anchor_load_us.end());
    }
  }

  void run() {
    check_method();
    duals_prove_load_ = check_anchor_proof(plan_, batch_, profile_, bucket_of_, is_anchor_, findings_);
    duals_prove_makespan_ = check_makespan_proof(plan_, batch_, profile_, bucket_of_, findings_);
    check_anchor_load();
    check_anchor_bound();
    check_split_limit();
    check_split_bound();
    check_makespan_bound();
    check_infeasible();
  }

 private:
  void unproved(const std::string& field, const std::string& claim, const std::string& instead) {
    const std::string known = instead.empty() ? "" : "; " + instead;
    if (plan_.solver == "cp-sat" && is_ours()) {
      findings_.leave_unverified(field, claim + ", stated by solver cp-sat and not verified" + known);
      return;
    }
    if (is_foreign()) {
      findings_.leave_unverified(field, claim + ", stated by method " + in_quotes(plan_.method) +
                                            ", which is none of ours, and not verified" + known);
      return;
    }
    findings_.add(Violation::unproved_claim, claim + ", which nothing proves" + known);
  }
  void unproved_bound(const std::string& field, std::int64_t value, const ProofInstance& instance) {
    unproved(field, field + " is " + std::to_string(value),
             "the bounds that need no proof reach " + std::to_string(recomputed_load_bound(instance, value)));
  }

  bool is_ours() const { return !solvers_of(plan_.method).empty(); }
  /// By a library user's own Planner: what it claims is believed no more, and held against it no less, than CP-SAT's.
  bool is_foreign() const {
    return !is_ours() && std::find(kBaselines.begin(), kBaselines.end(), plan_.method) == kBaselines.end();
  }

  /// The smallest menu that has the plan's options: bounds are about its placements.
  Choice choice() const {
    if (certificate_.duals) return certificate_.duals->menu == Menu::all ? Choice::all : Choice::powers_of_two;
    Choice choice = Choice::powers_of_two;
    for (const PlacedSequence& sequence : plan_.placement.sequences) {
      const Configuration config = sequence.config;
      const Wide degree = Wide{config.q} * config.h * config.k;
      if (degree < 1 || degree > batch_.ranks) continue;  // illegal, which is said elsewhere
      if (is_chosen(choice, config.degree())) continue;
      choice = is_chosen(Choice::all, config.degree()) ? Choice::all : Choice::priced;
    }
    return choice;
  }

  void check_method() {
    const auto wrong = [&](const std::string& message) { findings_.add(Violation::wrong_method, message); };
    if (std::find(kBaselines.begin(), kBaselines.end(), plan_.method) != kBaselines.end()) {
      if (plan_.solver != plan_.method && !plan_.solver.starts_with(plan_.method + " ")) {
        wrong("solver is " + in_quotes(plan_.solver) + "; that of a plan by " + plan_.method + " is " +
              in_quotes(plan_.method) + ", with or without a layout");
      }
      return;
    }
    const auto solvers = solvers_of(plan_.method);
    if (solvers.empty()) {  // somebody else's planner: any name will do
      if (plan_.method.empty()) wrong("method is empty; it must name the planner that made the plan");
      if (plan_.solver.empty())
        wrong("solver is empty; that of a plan by " + in_quotes(plan_.method) + " must have a name");
      return;
    }
    if (std::find(solvers.begin(), solvers.end(), plan_.solver) != solvers.end()) return;
    std::string known;
    for (const std::string_view solver : solvers) known.append(known.empty() ? "" : " or ").append(solver);
    wrong("solver is " + in_quotes(plan_.solver) + "; that of a plan by " + plan_.method + " is " + known);
  }

  void wrong_anchors(const std::string& message) { findings_.add(Violation::wrong_anchors, message); }

  /// anchor_load is reached by the plan's own anchors, or by the placement that the certificate carries.
  void check_anchor_load() {
    std::optional<Wide> shown_us = plan_anchor_load_;
    if (!certificate_.anchor_placement.empty()) {
      Wide load_us = 0;
      if (const std::string why = why_no_witness(plan_, batch_, profile_, bucket_of_, is_anchor_, choice_, load_us);
          !why.empty()) {
        wrong_anchors("certificate.anchor_placement: " + why);
        return;
      }
      shown_us = shown_us ? std::min(*shown_us, load_us) : load_us;
    }
    if (!certificate_.anchor_load) return;
    const std::int64_t stated_us = certificate_.anchor_load->value;
    if (!shown_us) {
      if (plan_.has_placement()) return;  // nobody can say what the plan's loads are
      findings_.leave_unverified("anchor_load_us", "anchor_load_us is " + std::to_string(stated_us) +
                                                       "; there is no plan and no anchor_placement that shows it");
      return;
    }
    if (stated_us == *shown_us) return;
    wrong_anchors("anchor_load_us is " + std::to_string(stated_us) +
                  "; the least that the plan or certificate.anchor_placement shows is " + text(*shown_us));
  }

  void check_anchor_bound() {
    const auto& bound = certificate_.anchor_bound;
    if (!bound || bound->value <= 0) return;
    if (plan_anchor_load_ && bound->value > *plan_anchor_load_) {
      findings_.add(Violation::false_bound, "anchor_bound_us is " + std::to_string(bound->value) +
                                                "; the plan's anchors reach " + text(*plan_anchor_load_));
      return;
    }
    if (certificate_.duals || refutes_load(anchors_, bound->value - 1)) return;  // duals have been judged
    unproved_bound("anchor_bound_us", bound->value, anchors_);
  }

  /// The load limit that round 2 was for, none where that can't be said.
  std::optional<Wide> split_limit() const {
    if (certificate_.duals) return certificate_.duals->split_limit.value;
    if (!certificate_.anchor_bound) return std::nullopt;
    const Wide limit = with_slack(certificate_.anchor_bound->value);
    const bool is_kept = !plan_anchor_load_ || *plan_anchor_load_ <= limit;
    if (is_kept || !certificate_.anchor_load || certificate_.split_status == SolveStatus::optimal) return limit;
    return with_slack(certificate_.anchor_load->value);
  }

  void check_split_limit() {
    if (!certificate_.split_count || !certificate_.split_status) return;
    if (!plan_.has_placement()) {
      findings_.leave_unverified(
          "split_count", "split_count is " + shown(certificate_.split_count) + "; there is no plan that shows it");
      return;
    }
    const std::optional<Wide> limit = split_limit();
    if (!limit) return;
    if (plan_anchor_load_ && *plan_anchor_load_ > *limit) {
      wrong_anchors("the anchors' largest load is " + text(*plan_anchor_load_) + "; round 2's limit is " +
                    text(*limit));
    }
    if (!certificate_.duals || !certificate_.anchor_bound) return;
    if (*limit < certificate_.anchor_bound->value) {
      wrong_anchors("certificate.duals: split_limit_us is " + text(*limit) + ", below anchor_bound_us " +
                    std::to_string(certificate_.anchor_bound->value));
    }
    const Wide usual = with_slack(certificate_.anchor_bound->value);
    if (*limit < usual || (certificate_.split_status == SolveStatus::optimal && *limit != usual)) {
      findings_.leave_unverified("split_bound", "split_bound " + shown(certificate_.split_bound) +
                                                    " is proved at loads up to split_limit_us " + text(*limit) +
                                                    ", not at 0.1% over anchor_bound_us, " + text(usual));
    }
  }

  void check_split_bound() {
    const auto& bound = certificate_.split_bound;
    if (!bound || *bound <= 0 || certificate_.duals) return;                     // duals have been judged
    if (certificate_.split_count && *bound > *certificate_.split_count) return;  // was said
    const std::optional<Wide> limit = split_limit();
    const std::int64_t known = recomputed_split_bound(anchors_, limit ? narrowed(*limit) : kUnlimited);
    if (known >= *bound) return;
    unproved("split_bound", "split_bound is " + std::to_string(*bound),
             "the bounds that need no proof reach " + std::to_string(known));
  }

  void check_makespan_bound() {
    const auto& bound = certificate_.makespan_bound;
    if (!bound || bound->value <= 0) return;
    if (plan_.has_placement() && recomputed_.sums_known && bound->value > recomputed_.makespan_us) return;  // was said
    if (plan_.status == PlanStatus::feasible && recomputed_.sums_known && bound->value == recomputed_.makespan_us) {
      findings_.add(Violation::wrong_status, "status is feasible although makespan_us equals makespan_bound_us " +
                                                 std::to_string(bound->value) + "; that is optimal");
    }
    if (duals_prove_makespan_ || certificate_.makespan_duals) return;  // those have been judged
    // All anchors are placed, so a bound of their largest load is one of the makespan.
    if (duals_prove_load_ && certificate_.anchor_bound && bound->value <= certificate_.anchor_bound->value) return;
    const ProofInstance all = instance_of(batch_, profile_, bucket_of_, std::vector<bool>(is_anchor_.size(), true),
                                          choice_, plan_.load_model);
    if (refutes_load(all, bound->value - 1)) return;
    unproved_bound("makespan_bound_us", bound->value, all);
  }

  void check_infeasible() {
    const bool anchors = certificate_.anchor_status == SolveStatus::infeasible;
    if (plan_.has_placement() || (!anchors && plan_.status != PlanStatus::infeasible)) return;
    const ProofInstance all = instance_of(batch_, profile_, bucket_of_, std::vector<bool>(is_anchor_.size(), true),
                                          choice_, plan_.load_model);
    if (refutes_memory(anchors ? anchors_ : all)) return;
    unproved(anchors ? "anchor_status" : "status", anchors ? "anchor_status is infeasible" : "status is infeasible",
             "");
  }

  const Plan& plan_;
  const Certificate& certificate_;
  const Batch& batch_;
  const Profile& profile_;
  const std::vector<BucketIndex>& bucket_of_;
  const std::vector<bool>& is_anchor_;
  const Recomputed& recomputed_;
  Findings& findings_;
  Choice choice_;
  ProofInstance anchors_;
  std::optional<Wide> plan_anchor_load_;
  bool duals_prove_load_ = false, duals_prove_makespan_ = false;
};

}  // namespace

void check_claims(const Plan& plan, const Batch& batch, const Profile& profile,
                  const std::vector<BucketIndex>& bucket_of, const std::vector<bool>& is_anchor,
                  const Recomputed& recomputed, Findings& findings) {
  ClaimCheck(plan, batch, profile, bucket_of, is_anchor, recomputed, findings).run();
}

}  // namespace zellige
