// SPDX-License-Identifier: Apache-2.0
// The oracle draws every batch with the ordinary drawer, plans each with the ordinary planner, scores each, and sorts.
#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/instance.h"
#include "zellige/check.h"
#include "zellige/dry_run.h"
#include "zellige/error.h"
#include "zellige/score.h"

namespace zellige {
namespace {

struct Share {
  std::string name;
  MediaKind kind;
  int frames, height, width, count;
};

struct DataSet {
  Manifest manifest;
  BucketedSamples samples;
};

DataSet data_set(const std::vector<Share>& shares, const char* model = "wan2.1-t2v-1.3b") {
  DataSet data;
  data.manifest.path = "m.csv";
  data.samples.catalog.model = model_preset(model);
  std::int64_t row = 0;
  for (const Share& share : shares) {
    const auto bucket = static_cast<BucketIndex>(data.samples.catalog.buckets.size());
    data.samples.catalog.buckets.push_back(
        {share.name, share.kind, share.frames, share.height, share.width,
         sequence_tokens(data.samples.catalog.model, share.frames, share.height, share.width)});
    data.samples.count.push_back(share.count);
    for (int i = 0; i < share.count; ++i) {
      Sample sample;
      sample.row = ++row;
      sample.path = share.name;
      sample.path.append("/").append(std::to_string(i));
      sample.kind = share.kind;
      data.manifest.samples.push_back(sample);
      data.samples.bucket_of.push_back(bucket);
    }
  }
  return data;
}

const std::vector<Share> kMixed = {{"256p", MediaKind::image, 1, 256, 256, 300},
                                   {"480p", MediaKind::image, 1, 480, 832, 90},
                                   {"480p2s", MediaKind::video, 33, 480, 832, 21},
                                   {"480p5s", MediaKind::video, 81, 480, 832, 8}};

DryRunOptions options_of(int ranks, std::int64_t tokens_per_rank, double share, std::uint64_t seed = 3) {
  DryRunOptions options;
  options.draw = {.ranks = ranks, .tokens_per_rank = Tokens{tokens_per_rank}, .video_share = share, .seed = seed};
  options.plan = testing::patient_options();
  options.plan.ortools = "none";
  options.listed = 4;
  options.time_limit_s = 1e6;
  return options;
}

Profile profile_of(const DataSet& data, int ranks, bool checkpointing = true) {
  return built_in_profile("h200", data.samples.catalog, checkpointing, ranks);
}

/// The same profile with another memory cap.
Profile capped(Profile profile, double cap_bytes) {
  profile.memory_usable = profile.memory_base + Bytes{static_cast<std::int64_t>(cap_bytes)};
  return profile;
}

struct BruteStep {
  std::int64_t number;
  std::int64_t time, peak;
};

struct Brute {
  std::vector<BruteStep> placed;
  std::vector<std::int64_t> failing;
};

Brute enumerate(const DataSet& data, const Profile& profile, const DryRunOptions& options) {
  Brute brute;
  std::set<std::string> left;
  const bool images = options.draw.video_share<1, videos = options.draw.video_share> 0;
  for (std::size_t i = 0; i < data.manifest.samples.size(); ++i) {
    const bool is_video = data.manifest.samples[i].kind == MediaKind::video;
    if (is_video ? videos : images) left.insert(data.manifest.samples[i].path);
  }
  BatchDrawer drawer(data.manifest, data.samples, options.draw);
  const auto planner = make_planner(options.method);
  for (std::int64_t number = 0; !left.empty(); ++number) {
    const Batch batch = drawer.next();
    for (const auto& sequence : batch.sequences) left.erase(sequence.source);
    const Plan plan = planner->plan(batch, profile, options.plan);
    if (!plan.has_placement()) {
      brute.failing.push_back(number);
      continue;
    }
    const Score scored = score(plan.placement, profile);
    brute.placed.push_back({number, scored.step.value, scored.peak.value});
  }
  return brute;
}

template <class Key>
std::vector<std::int64_t> worst(std::vector<BruteStep> steps, std::size_t most, Key key) {
  std::stable_sort(steps.begin(), steps.end(), [&](const auto& a, const auto& b) { return key(a) > key(b); });
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < std::min(most, steps.size()); ++i) numbers.push_back(steps[i].number);
  return numbers;
}

std::vector<std::int64_t> numbers_of(const std::vector<DryRunStep>& steps) {
  std::vector<std::int64_t> numbers;
  for (const auto& step : steps) numbers.push_back(step.number);
  return numbers;
}

void expect_as_enumerated(const DataSet& data, const Profile& profile, const DryRunOptions& options) {
  const Brute brute = enumerate(data, profile, options);
  const DryRun run = dry_run(data.manifest, data.samples, profile, options);
  EXPECT_TRUE(run.complete);
  EXPECT_EQ(run.drawn, run.samples);
  EXPECT_EQ(run.steps, static_cast<std::int64_t>(brute.placed.size() + brute.failing.size()));
  EXPECT_EQ(run.out_of_memory, static_cast<std::int64_t>(brute.failing.size()));
  EXPECT_EQ(run.undecided, 0);
  EXPECT_LE(run.compositions, run.steps);
  EXPECT_EQ(numbers_of(run.longest), worst(brute.placed, options.listed, [](const auto& s) { return s.time; }));
  EXPECT_EQ(numbers_of(run.largest), worst(brute.placed, options.listed, [](const auto& s) { return s.peak; }));
  std::int64_t total = 0;
  for (const auto& step : brute.placed) total += step.time;
  EXPECT_EQ(run.total_time.value, total);
  auto first = brute.failing;
  first.resize(std::min(first.size(), options.listed));
  EXPECT_EQ(numbers_of(run.failing), first);
  for (const auto& step : run.longest) {
    const auto found = std::ranges::find(brute.placed, step.number, &BruteStep::number);
    ASSERT_NE(found, brute.placed.end());
    EXPECT_EQ(step.time.value, found->time);
    EXPECT_EQ(step.peak.value, found->peak);
  }
}

/// The batch with every sample of one bucket in another.
Batch moved(Batch batch, const Catalog& catalog, BucketIndex from, BucketIndex to) {
  batch.catalog = catalog;
  for (auto& sequence : batch.sequences) {
    if (sequence.bucket == from) sequence.bucket = to;
  }
  return batch;
}

const Remedy* find(const std::vector<Remedy>& remedies, Remedy::Kind kind) {
  const auto found = std::ranges::find(remedies, kind, &Remedy::kind);
  return found == remedies.end() ? nullptr : &*found;
}

TEST(DryRun, IsWhatDrawingPlanningAndScoringEachBatchSays) {
  const DataSet data = data_set(kMixed);
  for (const int ranks : {1, 4}) {
    const Profile profile = profile_of(data, ranks);
    for (const double share : {0.0, 0.5, 1.0}) {
      SCOPED_TRACE("ranks " + std::to_string(ranks) + ", share " + std::to_string(share));
      const DryRunOptions options = options_of(ranks, 70'000 / ranks, share);
      expect_as_enumerated(data, profile, options);
      EXPECT_EQ(dry_run(data.manifest, data.samples, profile, options).out_of_memory, 0);
    }
  }
}

TEST(DryRun, FindsEveryStepThatRunsOut) {
  const DataSet data = data_set(kMixed);
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  int failing = 0, placed = 0;
  for (int i = 0; i < 6; ++i) {
    const int ranks = 2;
    const Profile full = profile_of(data, ranks);
    // Between what the longest video needs at the least and all that a step holds: some steps fit, others don't.
    const double least = static_cast<double>(full.find(3, {1, 2, 1})->memory.value);
    const Profile profile = capped(full, least * (1.05 + 0.04 * i));
    const DryRunOptions options = options_of(ranks, 20'000, 0.6, random());
    expect_as_enumerated(data, profile, options);
    const DryRun run = dry_run(data.manifest, data.samples, profile, options);
    failing += run.out_of_memory > 0;
    placed += run.out_of_memory < run.steps;
    for (const auto& step : run.failing) {
      EXPECT_FALSE(step.oversized.empty());
      EXPECT_FALSE(step.reason.empty());
    }
  }
  EXPECT_GT(failing, 0);  // else nothing was tested
  EXPECT_GT(placed, 0);
}

TEST(DryRun, NamesTheSampleThatFitsNowhereAndWhatHelps) {
  std::vector<Share> shares = kMixed;
  shares.push_back({"1080p10s", MediaKind::video, 161, 1088, 1920, 1});
  const DataSet data = data_set(shares);
  const int ranks = 2;
  const Profile full = profile_of(data, ranks);
  const double least = static_cast<double>(full.find(4, {1, 2, 1})->memory.value);
  const Profile profile = capped(full, least * 0.8);
  const DryRunOptions options = options_of(ranks, 100'000, 0.7);
  const DryRun run = dry_run(data.manifest, data.samples, profile, options);
  ASSERT_GE(run.out_of_memory, 1);  // the video comes once an epoch of its kind
  EXPECT_TRUE(run.remedies.empty()) << "a sample that is too large comes alone under any budget";
  const DryRunStep& step = run.failing.front();
  EXPECT_EQ(step.status, PlanStatus::infeasible);
  ASSERT_EQ(step.oversized.size(), 1u);
  const OversizedSample& sample = step.oversized.front();
  EXPECT_EQ(step.batch.sequences[sample.sequence].source, "1080p10s/0");
  std::int64_t smallest = 1LL << 60;
  for (const Configuration& c : menu(full.catalog.model, full.catalog.buckets[4].tokens, ranks, Menu::powers_of_two)) {
    smallest = std::min(smallest, full.find(4, c)->memory.value);
  }
  EXPECT_EQ(sample.need.value, smallest);
  EXPECT_EQ(sample.over.value, smallest - profile.memory_cap().value);

  // Each remedy, tried by hand with the ordinary planner.
  const auto planner = make_planner("zellige");
  const Remedy* wider = find(step.remedies, Remedy::Kind::more_ranks);
  ASSERT_NE(wider, nullptr);
  EXPECT_EQ(wider->value, 4);
  Batch batch = step.batch;
  batch.ranks = 4;
  EXPECT_TRUE(planner->plan(batch, profile, options.plan).has_placement());
  EXPECT_EQ(profile.find(4, wider->config)->memory, wider->need);
  EXPECT_LE(wider->need, profile.memory_cap());

  const Remedy* cut = find(step.remedies, Remedy::Kind::fewer_frames);
  ASSERT_NE(cut, nullptr);
  EXPECT_EQ(cut->value % 4, 1);
  const auto with_frames = [&](int frames) {
    Catalog catalog = data.samples.catalog;
    Bucket bucket = catalog.buckets[4];
    bucket.name = "cut";
    bucket.frames = frames;
    bucket.tokens = sequence_tokens(catalog.model, frames, bucket.height, bucket.width);
    catalog.buckets.push_back(bucket);
    const Profile priced = capped(built_in_profile("h200", catalog, true, ranks), least * 0.8);
    return planner->plan(moved(step.batch, catalog, 4, 5), priced, options.plan).has_placement();
  };
  EXPECT_TRUE(with_frames(static_cast<int>(cut->value)));
  EXPECT_FALSE(with_frames(static_cast<int>(cut->value) + 4));

  const Remedy* smaller = find(step.remedies, Remedy::Kind::smaller_bucket);
  ASSERT_NE(smaller, nullptr);
  EXPECT_EQ(smaller->value, 3) << "the longest video bucket that fits";
  EXPECT_TRUE(planner->plan(moved(step.batch, data.samples.catalog, 4, 3), profile, options.plan).has_placement());
  EXPECT_EQ(find(step.remedies, Remedy::Kind::checkpointing), nullptr) << "it is on already";
}

TEST(DryRun, CheckpointingIsARemedyOfARunWithoutIt) {
  const DataSet data = data_set(kMixed);
  const int ranks = 2;
  const Profile with = profile_of(data, ranks, true), without = profile_of(data, ranks, false);
  const double least = static_cast<double>(without.find(3, {1, 1, 2})->memory.value);
  const Profile profile = capped(without, least * 0.9);
  const DryRunOptions options = options_of(ranks, 35'000, 0.6);
  const DryRun run = dry_run(data.manifest, data.samples, profile, options);
  ASSERT_GT(run.out_of_memory, 0);
  const Profile checkpointed = capped(with, least * 0.9);
  const auto planner = make_planner("zellige");
  int too_large = 0;
  for (const auto& step : run.failing) {
    const Remedy* remedy = find(step.remedies, Remedy::Kind::checkpointing);
    ASSERT_NE(remedy, nullptr);
    EXPECT_TRUE(planner->plan(step.batch, checkpointed, options.plan).has_placement());
    if (remedy->need.value == 0) continue;  // no bucket of this step is too large by itself
    EXPECT_EQ(remedy->need, with.find(remedy->bucket, remedy->config)->memory);
    ++too_large;
  }
  EXPECT_GT(too_large, 0);
}

TEST(DryRun, FewerTokensAreTheMostWithWhichTheWholeEpochFits) {
  const DataSet data = data_set(kMixed);
  const int ranks = 2;
  const Profile full = profile_of(data, ranks);
  const double least = static_cast<double>(full.find(3, {1, 2, 1})->memory.value);
  const Profile profile = capped(full, least * 1.5);
  DryRunOptions options = options_of(ranks, 64'000, 0.5);
  const DryRun run = dry_run(data.manifest, data.samples, profile, options);
  ASSERT_GT(run.out_of_memory, 0);
  for (const auto& step : run.failing) {
    for (const auto& sample : step.oversized) EXPECT_EQ(sample.over.value, 0) << "each fits alone";
    // The rest of the batch fits without those that are named.
    Batch rest = step.batch;
    std::set<SequenceIndex> out;
    for (const auto& sample : step.oversized) out.insert(sample.sequence);
    rest.sequences.clear();
    for (std::size_t i = 0; i < step.batch.sequences.size(); ++i) {
      if (!out.contains(static_cast<SequenceIndex>(i))) rest.sequences.push_back(step.batch.sequences[i]);
    }
    EXPECT_TRUE(make_planner("zellige")->plan(rest, profile, options.plan).has_placement());
  }
  const Remedy* fewer = find(run.remedies, Remedy::Kind::fewer_tokens);
  ASSERT_NE(fewer, nullptr);
  options.draw.tokens_per_rank.value = fewer->value;
  EXPECT_TRUE(enumerate(data, profile, options).failing.empty());
  options.draw.tokens_per_rank.value = fewer->value + 64'000 / 64;
  EXPECT_FALSE(enumerate(data, profile, options).failing.empty());
}

TEST(DryRun, StopsWhenAskedTo) {
  const DataSet data = data_set(kMixed);
  DryRunOptions options = options_of(2, 35'000, 0.5);
  std::stop_source source;
  options.stop = source.get_token();
  options.progress = [&](std::int64_t steps, std::int64_t drawn, std::int64_t samples) {
    EXPECT_LE(drawn, samples);
    if (steps == 3) source.request_stop();
  };
  const DryRun run = dry_run(data.manifest, data.samples, profile_of(data, 2), options);
  EXPECT_FALSE(run.complete);
  EXPECT_EQ(run.steps, 3);
  EXPECT_LT(run.drawn, run.samples);
}

TEST(DryRun, RefusesAProfileOfOtherBuckets) {
  const DataSet data = data_set(kMixed);
  const DataSet other = data_set({{"256p", MediaKind::image, 1, 256, 256, 3}});
  EXPECT_THROW(dry_run(data.manifest, data.samples, profile_of(other, 2), options_of(2, 35'000, 0.5)), Error);
}

}  // namespace
}  // namespace zellige
