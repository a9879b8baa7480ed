// SPDX-License-Identifier: Apache-2.0
#include "train/step_source.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "zellige/check.h"
#include "zellige/error.h"

namespace zellige {
namespace {

// Token counts depend on strides and patch: the rules must have been written for a model of the same ones.
BucketRules rules_for(const TrainConfig& config) {
  BucketRules rules = read_rules(config.data.rules);
  const ModelGeometry& wanted = config.model;
  if (rules.model.vae_stride != wanted.vae_stride || rules.model.patch != wanted.patch ||
      rules.model.text != wanted.text) {
    throw Error(Code::input, "train",
                "the rules of " + in_quotes(config.data.rules) + " are for model " + in_quotes(rules.model.name) +
                    ", whose VAE strides, patch or place of text are not those of " + in_quotes(wanted.name) +
                    ", which is to be trained");
  }
  rules.model = wanted;
  return rules;
}

Profile load_profile(const TrainConfig& config, const Catalog& catalog) {
  const auto built_in = built_in_profile_names();
  if (std::ranges::find(built_in, config.plan.profile) != built_in.end()) {
    return built_in_profile(config.plan.profile, catalog, config.run.checkpointing, config.ranks.count);
  }
  return read_profile(config.plan.profile);
}

}  // namespace

void require_sound(const PlannedStep& step, const Profile& profile, int number) {
  const Plan& plan = step.plan;
  const std::string which = "step " + std::to_string(number) + ", method " + plan.method;
  if (!plan.has_placement()) {
    throw Error(plan.status == PlanStatus::timeout ? Code::timeout : Code::infeasible, "train.plan",
                which + ": no plan (" + std::string(name(plan.status)) + "): " + plan.reason);
  }
  const std::vector<Finding> findings = check(plan, step.batch, profile);
  if (findings.empty()) return;
  std::string list;
  for (const Finding& finding : findings) list += "\n  " + std::string(name(finding.what)) + ": " + finding.message;
  throw Error(Code::internal, "train.check", which + ": the checker refuses the plan:" + list);
}

StepSource::StepSource(const TrainConfig& config, const TrainHooks& hooks)
    : config_(config),
      hooks_(hooks),
      manifest_(read_manifest(config.data.manifest)),
      on_run_stop_(hooks.stop, [this] { stop_.request_stop(); }) {
  const BucketRules rules = rules_for(config);
  samples_ = apply_rules(manifest_, rules);
  profile_ = load_profile(config, samples_.catalog);
  DrawOptions options;
  options.ranks = config.ranks.count;
  options.tokens_per_rank = config.batch.tokens_per_rank;
  options.video_share = config.batch.video_share.value_or(rules.video_share);
  options.seed = config.batch.seed;
  drawer_ = std::make_unique<BatchDrawer>(manifest_, samples_, options);
  planner_ = make_planner(config.plan.method);
}

StepSource::~StepSource() {
  stop_.request_stop();
  if (ahead_.valid()) ahead_.wait();
}

std::shared_ptr<const PlannedStep> StepSource::get(int step) {
  const std::lock_guard lock(mutex_);
  if (step != made_ && !error_) {
    made_ = step;
    try {
      newest_ = take(step);
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  if (error_) std::rethrow_exception(error_);
  return newest_;
}

void StepSource::rethrow_error() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

/// The step that the thread made, or made here when it is the first; and starts the thread on the next one.
std::shared_ptr<const PlannedStep> StepSource::take(int step) {
  std::shared_ptr<const PlannedStep> planned = ahead_.valid() ? ahead_.get() : make(step);
  if (planned == nullptr || hooks_.stop.stop_requested()) return nullptr;
  if (hooks_.planned) hooks_.planned(step, planned->batch, planned->plan, profile_);
  if (hooks_.stop.stop_requested()) return nullptr;
  ahead_ = std::async(std::launch::async, [this, step] { return make(step + 1); });
  return planned;
}

std::shared_ptr<const PlannedStep> StepSource::make(int step) {
  if (step >= config_.run.steps || stop_.stop_requested()) return nullptr;
  auto planned = std::make_shared<PlannedStep>();
  planned->batch = drawer_->next();
  PlanOptions options = config_.plan.options;
  options.ortools = hooks_.ortools;
  planned->plan = planner_->plan(planned->batch, profile_, options, stop_.get_token());
  if (stop_.stop_requested() && !planned->plan.has_placement()) return nullptr;
  require_sound(*planned, profile_, step);
  return stop_.stop_requested() ? nullptr : planned;
}

}  // namespace zellige
