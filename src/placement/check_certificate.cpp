// SPDX-License-Identifier: Apache-2.0
#include "placement/check_parts.h"

namespace zellige {
namespace {

bool is_known(PlanStatus status) {
  switch (status) {
    case PlanStatus::optimal:
    case PlanStatus::feasible:
    case PlanStatus::infeasible:
    case PlanStatus::timeout:
    case PlanStatus::unknown: return true;
  }
  return false;
}

bool is_known(SolveStatus status) {
  switch (status) {
    case SolveStatus::optimal:
    case SolveStatus::feasible:
    case SolveStatus::infeasible:
    case SolveStatus::timeout: return true;
  }
  return false;
}

std::string shown(const std::optional<Microseconds>& time) { return time ? std::to_string(time->value) : "null"; }
std::string shown(const std::optional<int>& count) { return count ? std::to_string(*count) : "null"; }

class CertificateCheck {
 public:
  CertificateCheck(const Plan& plan, const Recomputed& recomputed, Findings& findings)
      : plan_(plan), certificate_(plan.certificate), recomputed_(recomputed), findings_(findings) {}

  bool run() {
    check_status();
    if (!check_range()) return false;
    check_anchor_round();
    check_split_round();
    check_makespan_bound();
    return true;
  }

 private:
  void wrong_status(const std::string& message) { findings_.add(Violation::wrong_status, message); }
  void false_bound(const std::string& message) { findings_.add(Violation::false_bound, message); }

  void check_status() {
    if (!is_known(plan_.status)) wrong_status("status is number " + std::to_string(static_cast<int>(plan_.status)));
    check_solve_status("anchor_status", certificate_.anchor_status);
    check_solve_status("split_status", certificate_.split_status);
    if (plan_.has_placement()) {
      if (!plan_.reason.empty()) wrong_status("a reason is given although there is a plan: " + plan_.reason);
    } else {
      if (plan_.reason.empty()) wrong_status("reason is empty; without a plan it must say what is over");
      if (!plan_.placement.sequences.empty()) {
        wrong_status("there are " + std::to_string(plan_.placement.sequences.size()) +
                     " sequences although the status says that there is no plan");
      }
    }
    const bool proved =
        certificate_.anchor_status == SolveStatus::optimal && certificate_.split_status == SolveStatus::optimal;
    if (plan_.certified && !proved) {
      wrong_status("certified is true; that needs anchor_status and split_status to be optimal");
    }
    if (plan_.has_placement() && !plan_.certified && proved) {
      wrong_status("certified is false although anchor_status and split_status are optimal");
    }
    if (plan_.solve_time.value < 0) wrong_status("solve_us is " + std::to_string(plan_.solve_time.value));
  }

  void check_solve_status(const std::string& field, const std::optional<SolveStatus>& status) {
    if (!status) return;
    if (!is_known(*status)) wrong_status(field + " is number " + std::to_string(static_cast<int>(*status)));
    if (plan_.has_placement() && *status == SolveStatus::infeasible) {
      wrong_status(field + " is infeasible, yet the plan places all anchors");
    }
  }

  bool check_range() {
    bool good = true;
    const auto check = [&](const char* field, bool negative, const std::string& value) {
      if (!negative) return;
      good = false;
      false_bound(std::string("certificate.").append(field) + " is " + value + "; it can't be negative");
    };
    const auto negative = [](const auto& time) { return time && time->value < 0; };
    check("anchor_load_us", negative(certificate_.anchor_load), shown(certificate_.anchor_load));
    check("anchor_bound_us", negative(certificate_.anchor_bound), shown(certificate_.anchor_bound));
    check("makespan_bound_us", negative(certificate_.makespan_bound), shown(certificate_.makespan_bound));
    check("split_count", certificate_.split_count.value_or(0) < 0, shown(certificate_.split_count));
    check("split_bound", certificate_.split_bound.value_or(0) < 0, shown(certificate_.split_bound));
    return good;
  }

  void check_anchor_round() {
    const auto& [load, bound] = std::pair(certificate_.anchor_load, certificate_.anchor_bound);
    if (load && bound && *bound > *load) {
      false_bound("anchor_bound_us is " + shown(bound) + ", above anchor_load_us " + shown(load) +
                  ", which is reached");
    }
    if (certificate_.anchor_status == SolveStatus::optimal && (!load || !bound || *bound < *load)) {
      false_bound("anchor_status is optimal; that needs anchor_bound_us " + shown(bound) + " to equal anchor_load_us " +
                  shown(load));
    }
  }

  void check_split_round() {
    const auto& [count, bound] = std::pair(certificate_.split_count, certificate_.split_bound);
    if (plan_.has_placement()) {
      if (count && *count != recomputed_.split_count) {
        findings_.add(Violation::wrong_split_count, "certificate.split_count is " + shown(count) +
                                                        "; the plan splits " + std::to_string(recomputed_.split_count) +
                                                        " sequences");
      }
      if (bound && *bound > recomputed_.split_count) {
        false_bound("split_bound is " + shown(bound) + "; the plan splits only " +
                    std::to_string(recomputed_.split_count) + " sequences");
      }
    } else if (count && bound && *bound > *count) {
      false_bound("split_bound is " + shown(bound) + ", above split_count " + shown(count) + ", which is reached");
    }
    if (certificate_.split_status == SolveStatus::optimal && (!count || !bound || *bound < *count)) {
      false_bound("split_status is optimal; that needs split_bound " + shown(bound) + " to equal split_count " +
                  shown(count));
    }
  }

  void check_makespan_bound() {
    if (!plan_.has_placement()) return;
    const auto& bound = certificate_.makespan_bound;
    if (plan_.status == PlanStatus::optimal && !bound) {
      false_bound("status is optimal; that needs makespan_bound_us, which is null");
    }
    if (!bound || !recomputed_.sums_known) return;
    if (bound->value > recomputed_.makespan_us) {
      false_bound("makespan_bound_us is " + shown(bound) + "; the plan reaches " + text(recomputed_.makespan_us));
    }
    if (plan_.status == PlanStatus::optimal && bound->value < recomputed_.makespan_us) {
      false_bound("status is optimal; that needs makespan_bound_us " + shown(bound) + " to equal the makespan " +
                  text(recomputed_.makespan_us));
    }
  }

  const Plan& plan_;
  const Certificate& certificate_;
  const Recomputed& recomputed_;
  Findings& findings_;
};

}  // namespace

bool check_certificate(const Plan& plan, const Recomputed& recomputed, Findings& findings) {
  return CertificateCheck(plan, recomputed, findings).run();
}

}  // namespace zellige
