// SPDX-License-Identifier: Apache-2.0
#include "zellige/dry_run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/remedy.h"
#include "plan/what_if.h"
#include "zellige/score.h"

namespace zellige {
namespace {

/// What planning said of a composition; the plan itself is gone.
struct Outcome {
  PlanStatus status = PlanStatus::unknown;
  std::string reason;
  Microseconds time;
  Bytes peak;
  int split_count = 0;
};

Outcome outcome_of(const Plan& plan, const Profile& profile) {
  Outcome outcome{plan.status, plan.reason, {}, {}, plan.split_count};
  if (!plan.has_placement()) return outcome;
  const Score scored = score(plan.placement, profile, plan.load_model);
  outcome.time = scored.step;
  outcome.peak = scored.peak;
  return outcome;
}

DryRunStep step_of(std::int64_t number, Batch batch, const Outcome& outcome) {
  DryRunStep step;
  step.number = number;
  step.batch = std::move(batch);
  step.status = outcome.status;
  step.reason = outcome.reason;
  step.time = outcome.time;
  step.peak = outcome.peak;
  step.split_count = outcome.split_count;
  return step;
}

/// Keeps the `most` worst steps, the worst first; of equal ones the earlier. Copies no batch that is not kept.
template <class Value>
void keep_worst(std::vector<DryRunStep>& kept, std::size_t most, std::int64_t number, const Batch& batch,
                const Outcome& outcome, Value DryRunStep::*value, Value of_this) {
  auto place = std::find_if(kept.begin(), kept.end(), [&](const DryRunStep& s) { return s.*value < of_this; });
  if (place == kept.end() && kept.size() >= most) return;
  kept.insert(place, step_of(number, batch, outcome));
  if (kept.size() > most) kept.pop_back();
}

class Epoch {
 public:
  Epoch(const Manifest& manifest, const BucketedSamples& samples, const Profile& profile, const DryRunOptions& options,
        const Deadline& deadline)
      : manifest_(manifest),
        samples_(samples),
        profile_(profile),
        options_(options),
        deadline_(deadline),
        trial_(options, deadline) {}

  /// All steps, without remedies. @param only_whether  ends at the first step without a placement
  DryRun look(const DrawOptions& draw, bool only_whether) const {
    BatchDrawer drawer(manifest_, samples_, draw);
    std::map<std::vector<std::int64_t>, Outcome> known;
    DryRun run;
    run.samples = drawer.first_epoch().samples;
    while (run.drawn < run.samples && !deadline_.is_over()) {
      const Batch batch = drawer.next();
      const Outcome* outcome = find(known, batch);
      if (outcome == nullptr) break;  // cut short while planning: what it said is no answer
      run.drawn = drawer.first_epoch().drawn;
      count(run, batch, *outcome);
      if (only_whether && run.out_of_memory > 0) break;
      if (options_.progress && !only_whether) options_.progress(run.steps, run.drawn, run.samples);
    }
    run.complete = run.drawn == run.samples;
    run.compositions = static_cast<std::int64_t>(known.size());
    return run;
  }

  /// Says of each failing step which samples are to blame and what would help.
  void explain(DryRun& run) const {
    for (DryRunStep& step : run.failing) {
      if (deadline_.is_over()) return;
      const std::vector<BucketIndex> buckets = match_buckets(step.batch, profile_);
      Batch batch = step.batch;
      batch.catalog = profile_.catalog;
      for (std::size_t i = 0; i < buckets.size(); ++i) batch.sequences[i].bucket = buckets[i];
      step.oversized = oversized_samples(batch, profile_, trial_);
      step.remedies = remedies_of(batch, profile_, trial_);
    }
  }

  /// The most tokens a rank with which the whole epoch fits, to a 64th of those asked for.
  void try_fewer_tokens(DryRun& run) const {
    constexpr std::int64_t kParts = 64;
    const std::int64_t tokens = options_.draw.tokens_per_rank.value;
    std::int64_t low = 0, high = kParts;  // parts: low fits (0: nothing known to), high does not
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      DrawOptions fewer = options_.draw;
      fewer.tokens_per_rank.value = std::max<std::int64_t>(1, tokens * middle / kParts);
      const DryRun tried = look(fewer, true);
      if (deadline_.is_over()) return;
      (tried.complete && tried.out_of_memory + tried.undecided == 0 ? low : high) = middle;
    }
    if (low > 0 && tokens * low / kParts > 0) {
      Remedy remedy;
      remedy.kind = Remedy::Kind::fewer_tokens;
      remedy.value = tokens * low / kParts;
      run.remedies.push_back(remedy);
    }
  }

  /// Whether a sample alone can be too much: then no budget helps, as it comes alone.
  bool a_bucket_never_fits(const DryRun& run) const {
    return std::ranges::any_of(run.failing, [](const DryRunStep& step) {
      return std::ranges::any_of(step.oversized, [](const auto& sample) { return sample.over.value > 0; });
    });
  }

 private:
  const Outcome* find(std::map<std::vector<std::int64_t>, Outcome>& known, const Batch& batch) const {
    std::vector<std::int64_t> counts(batch.catalog.buckets.size());
    for (const BatchSequence& sequence : batch.sequences) ++counts[static_cast<std::size_t>(sequence.bucket)];
    const auto place = known.find(counts);
    if (place != known.end()) return &place->second;
    const Plan plan = trial_.plan(batch, profile_, trial_.menu());
    if (deadline_.is_over() && !plan.has_placement()) return nullptr;
    return &known.emplace(std::move(counts), outcome_of(plan, profile_)).first->second;
  }

  void count(DryRun& run, const Batch& batch, const Outcome& outcome) const {
    const std::int64_t number = run.steps++;
    const bool placed = outcome.status == PlanStatus::optimal || outcome.status == PlanStatus::feasible;
    if (placed) {
      run.total_time += outcome.time;
      keep_worst(run.longest, options_.listed, number, batch, outcome, &DryRunStep::time, outcome.time);
      keep_worst(run.largest, options_.listed, number, batch, outcome, &DryRunStep::peak, outcome.peak);
    } else if (outcome.status == PlanStatus::timeout) {
      ++run.undecided;
    } else {
      ++run.out_of_memory;
      if (run.failing.size() < options_.listed) run.failing.push_back(step_of(number, batch, outcome));
    }
  }

  const Manifest& manifest_;
  const BucketedSamples& samples_;
  const Profile& profile_;
  const DryRunOptions& options_;
  const Deadline& deadline_;
  TrialPlanner trial_;
};

}  // namespace

DryRun dry_run(const Manifest& manifest, const BucketedSamples& samples, const Profile& profile,
               const DryRunOptions& options) {
  const Deadline deadline(options.time_limit_s, options.stop);
  const Epoch epoch(manifest, samples, profile, options, deadline);
  DryRun run = epoch.look(options.draw, false);
  epoch.explain(run);
  if (run.out_of_memory > 0 && !epoch.a_bucket_never_fits(run)) epoch.try_fewer_tokens(run);
  run.elapsed_s = deadline.elapsed_s();
  return run;
}

std::string_view name(Remedy::Kind kind) {
  switch (kind) {
    case Remedy::Kind::all_degrees: return "all-degrees";
    case Remedy::Kind::checkpointing: return "checkpointing";
    case Remedy::Kind::more_ranks: return "more-ranks";
    case Remedy::Kind::fewer_frames: return "fewer-frames";
    case Remedy::Kind::smaller_bucket: return "smaller-bucket";
    case Remedy::Kind::fewer_tokens: return "fewer-tokens";
  }
  return "fewer-tokens";
}

}  // namespace zellige
