// SPDX-License-Identifier: Apache-2.0
#include "plan/remedy.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "plan/what_if.h"
#include "zellige/error.h"

namespace zellige {
namespace {

constexpr int kMostDoublings = 6;  // of the ranks: 64 times as many

/// Buckets of the batch that fit no rank under any configuration of the menu, ascending.
std::vector<BucketIndex> buckets_too_large(const Batch& batch, const Profile& profile, Menu menu) {
  std::set<BucketIndex> used;
  for (const BatchSequence& sequence : batch.sequences) used.insert(sequence.bucket);
  std::vector<BucketIndex> large;
  for (const BucketIndex bucket : used) {
    const Price* least = least_need(profile, bucket, batch.ranks, menu);
    if (least == nullptr || least->memory > profile.memory_cap()) large.push_back(bucket);
  }
  return large;
}

Batch moved(Batch batch, const Catalog& catalog, BucketIndex from, BucketIndex to) {
  batch.catalog = catalog;
  for (BatchSequence& sequence : batch.sequences) {
    if (sequence.bucket == from) sequence.bucket = to;
  }
  return batch;
}

/// Tries changes of one batch.
class Search {
 public:
  Search(const Batch& batch, const Profile& profile, const TrialPlanner& trial)
      : batch_(batch), profile_(profile), trial_(trial), large_(buckets_too_large(batch, profile, trial.menu())) {}

  std::vector<Remedy> run() {
    try_all_degrees();
    try_checkpointing();
    try_more_ranks();
    // Of several buckets that are too large each would have to shrink: that is no one change.
    if (large_.size() == 1) try_smaller(large_.front());
    return std::move(found_);
  }

 private:
  void try_all_degrees() {
    if (trial_.menu() == Menu::all || trial_.out_of_time()) return;
    const Profile all = what_if(profile_, {.ranks = batch_.ranks});
    if (trial_.fits(batch_, all, Menu::all)) add(Remedy::Kind::all_degrees, 0, all, batch_.ranks, Menu::all);
  }

  void try_checkpointing() {
    if (profile_.key.checkpointing || trial_.out_of_time()) return;
    const Profile checkpointed = what_if(profile_, {.checkpointing = true, .ranks = batch_.ranks});
    if (trial_.fits(batch_, checkpointed, trial_.menu())) {
      add(Remedy::Kind::checkpointing, 0, checkpointed, batch_.ranks, trial_.menu());
    }
  }

  void try_more_ranks() {
    Batch wider = batch_;
    for (int i = 0; i < kMostDoublings && !trial_.out_of_time(); ++i) {
      wider.ranks *= 2;
      const Profile priced = what_if(profile_, {.ranks = wider.ranks});
      if (!trial_.fits(wider, priced, trial_.menu())) continue;
      add(Remedy::Kind::more_ranks, wider.ranks, priced, wider.ranks, trial_.menu());
      return;
    }
  }

  void try_smaller(BucketIndex bucket) {
    const Bucket& large = profile_.catalog.buckets[static_cast<std::size_t>(bucket)];
    if (large.kind == MediaKind::video) try_fewer_frames(bucket);
    std::vector<BucketIndex> smaller;
    for (std::size_t b = 0; b < profile_.catalog.buckets.size(); ++b) {
      const Bucket& other = profile_.catalog.buckets[b];
      if (other.kind == large.kind && other.tokens < large.tokens) smaller.push_back(static_cast<BucketIndex>(b));
    }
    std::stable_sort(smaller.begin(), smaller.end(), [&](BucketIndex a, BucketIndex b) {
      return profile_.catalog.buckets[static_cast<std::size_t>(a)].tokens >
             profile_.catalog.buckets[static_cast<std::size_t>(b)].tokens;
    });
    for (const BucketIndex other : smaller) {
      if (trial_.out_of_time()) return;
      if (!trial_.fits(moved(batch_, profile_.catalog, bucket, other), profile_, trial_.menu())) continue;
      add(Remedy::Kind::smaller_bucket, other, profile_, batch_.ranks, trial_.menu(), other);
      return;
    }
  }

  /// The most frames of the bucket's size with which the batch fits, by halving.
  void try_fewer_frames(BucketIndex bucket) {
    const Bucket& large = profile_.catalog.buckets[static_cast<std::size_t>(bucket)];
    std::vector<int> frames;  // ascending
    for (int n = 2; n < large.frames; ++n) {
      if (why_unfit(profile_.catalog.model, n, large.height, large.width).empty()) frames.push_back(n);
    }
    const auto fits = [&](int n) {
      const Profile cut = with_cut_bucket(profile_, bucket, n);
      const auto added = static_cast<BucketIndex>(cut.catalog.buckets.size() - 1);
      return trial_.fits(moved(batch_, cut.catalog, bucket, added), cut, trial_.menu());
    };
    std::size_t low = 0, high = frames.size();  // those below low fit, those from high on do not
    while (low < high && !trial_.out_of_time()) {
      const std::size_t middle = low + (high - low) / 2;
      (fits(frames[middle]) ? low = middle + 1 : high = middle);
    }
    if (low == 0) return;
    const Profile cut = with_cut_bucket(profile_, bucket, frames[low - 1]);
    add(Remedy::Kind::fewer_frames, frames[low - 1], cut, batch_.ranks, trial_.menu(),
        static_cast<BucketIndex>(cut.catalog.buckets.size() - 1));
  }

  /// @param changed  the bucket, in `priced`, that the samples of the one too large are in now; -1: the same
  void add(Remedy::Kind kind, std::int64_t value, const Profile& priced, int ranks, Menu menu,
           BucketIndex changed = -1) {
    Remedy remedy;
    remedy.kind = kind;
    remedy.value = value;
    if (!large_.empty()) {
      remedy.bucket = large_.front();
      if (const Price* least = least_need(priced, changed >= 0 ? changed : remedy.bucket, ranks, menu)) {
        remedy.config = least->config;
        remedy.need = least->memory;
      }
    }
    found_.push_back(remedy);
  }

  const Batch& batch_;
  const Profile& profile_;
  const TrialPlanner& trial_;
  std::vector<BucketIndex> large_;
  std::vector<Remedy> found_;
};

}  // namespace

TrialPlanner::TrialPlanner(const DryRunOptions& options, const Deadline& deadline)
    : options_(options.plan), planner_(make_planner(options.method)), deadline_(deadline) {}

Plan TrialPlanner::plan(const Batch& batch, const Profile& profile, Menu menu) const {
  PlanOptions options = options_;
  options.menu = menu;
  options.time_limit_s = std::min(options.time_limit_s, deadline_.remaining_s());
  const std::string ortools = options.ortools;
  options.ortools = "none";
  Plan plan;
  bool needs_cp_sat = false;
  try {
    plan = planner_->plan(batch, profile, options, deadline_.stop());
  } catch (const Error& error) {
    if (error.code() != Code::solver || ortools == "none") throw;
    needs_cp_sat = true;
  }
  if (!needs_cp_sat && (plan.has_placement() || plan.status == PlanStatus::infeasible || ortools == "none"))
    return plan;
  options.ortools = ortools;
  return planner_->plan(batch, profile, options, deadline_.stop());
}

bool TrialPlanner::fits(const Batch& batch, const Profile& profile, Menu menu) const {
  return plan(batch, profile, menu).has_placement();
}

std::vector<OversizedSample> oversized_samples(const Batch& batch, const Profile& profile, const TrialPlanner& trial) {
  const Bytes cap = profile.memory_cap();
  std::vector<OversizedSample> all;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const Price* least = least_need(profile, batch.sequences[i].bucket, batch.ranks, trial.menu());
    OversizedSample sample;
    sample.sequence = static_cast<SequenceIndex>(i);
    if (least != nullptr) {
      sample.config = least->config;
      sample.need = least->memory;
    }
    if (sample.need > cap) sample.over = sample.need - cap;
    all.push_back(sample);
  }
  std::stable_sort(all.begin(), all.end(), [](const OversizedSample& a, const OversizedSample& b) {
    return a.config.degree() * a.need.value > b.config.degree() * b.need.value;
  });
  std::vector<OversizedSample> alone;
  std::ranges::copy_if(all, std::back_inserter(alone), [](const auto& sample) { return sample.over.value > 0; });
  if (!alone.empty()) return alone;

  // The fewest of the most demanding ones without which the rest fits.
  const auto fits_without = [&](std::size_t count) {
    Batch rest = batch;
    std::vector<bool> out(batch.sequences.size());
    for (std::size_t i = 0; i < count; ++i) out[static_cast<std::size_t>(all[i].sequence)] = true;
    rest.sequences.clear();
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!out[i]) rest.sequences.push_back(batch.sequences[i]);
    }
    return trial.fits(rest, profile, trial.menu());
  };
  std::size_t low = 1, high = all.size();  // without `high` of them nothing is left, which fits
  while (low < high && !trial.out_of_time()) {
    const std::size_t middle = low + (high - low) / 2;
    (fits_without(middle) ? high = middle : low = middle + 1);
  }
  all.resize(high);
  return all;
}

std::vector<Remedy> remedies_of(const Batch& batch, const Profile& profile, const TrialPlanner& trial) {
  return Search(batch, profile, trial).run();
}

}  // namespace zellige
