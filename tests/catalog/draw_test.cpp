// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "catalog/refusal.h"
#include "zellige/manifest.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using zellige::testing::refusal;

/// A data set of so many samples a bucket, in buckets of these lengths.
struct DataSet {
  Manifest manifest;
  BucketedSamples samples;
};

struct Share {
  MediaKind kind;
  int frames, height, width, count;
};

DataSet data_set(const std::vector<Share>& shares) {
  DataSet data;
  data.manifest.path = "m.csv";
  data.samples.catalog.model = model_preset("wan2.1-t2v-1.3b");
  std::int64_t row = 0;
  for (const Share& share : shares) {
    const auto bucket = static_cast<BucketIndex>(data.samples.catalog.buckets.size());
    data.samples.catalog.buckets.push_back(
        {"b" + std::to_string(bucket) + "_", share.kind, share.frames, share.height, share.width,
         sequence_tokens(data.samples.catalog.model, share.frames, share.height, share.width)});
    data.samples.count.push_back(share.count);
    for (int i = 0; i < share.count; ++i) {
      Sample sample;
      row += 1 + row % 3;  // rows with holes, as where some were skipped
      sample.row = row;
      sample.path = "path";
      sample.path.append(std::to_string(row));
      sample.kind = share.kind;
      data.manifest.samples.push_back(sample);
      data.samples.bucket_of.push_back(bucket);
    }
    Sample unused;  // in no bucket
    unused.row = ++row;
    data.manifest.samples.push_back(unused);
    data.samples.bucket_of.push_back(-1);
  }
  return data;
}

const DataSet kMixed = data_set({{MediaKind::image, 1, 256, 256, 700},    // 256 tokens
                                 {MediaKind::image, 1, 480, 832, 300},    // 1,560
                                 {MediaKind::video, 17, 480, 832, 60},    // 7,800
                                 {MediaKind::video, 81, 480, 832, 25}});  // 32,760

DrawOptions options_of(int ranks, std::int64_t tokens_per_rank, double share, std::uint64_t seed = 7) {
  DrawOptions options;
  options.ranks = ranks;
  options.tokens_per_rank = Tokens{tokens_per_rank};
  options.video_share = share;
  options.seed = seed;
  return options;
}

struct Sums {
  std::int64_t total = 0, video = 0, longest = 0;
};

Sums sums_of(const Batch& batch) {
  Sums sums;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const Bucket& bucket = batch.bucket_of(static_cast<SequenceIndex>(i));
    sums.total += bucket.tokens.value;
    sums.longest = std::max(sums.longest, bucket.tokens.value);
    if (bucket.kind == MediaKind::video) sums.video += bucket.tokens.value;
  }
  return sums;
}

std::string text_of(const Batch& batch) {
  std::string text;
  for (const BatchSequence& s : batch.sequences) text += s.id + ":" + std::to_string(s.bucket) + ":" + s.source + " ";
  return text;
}

TEST(Draw, FirstBatchOfASeedIsTheSameEverywhere) {
  // Worked out by another program from the definitions of mt19937_64, the bounded draw and the shuffle.
  const DataSet data = data_set({{MediaKind::image, 1, 256, 256, 8}, {MediaKind::video, 5, 256, 256, 4}});
  BatchDrawer drawer(data.manifest, data.samples, options_of(2, 1024, 0.5, 42));
  const Batch batch = drawer.next();
  EXPECT_EQ(batch.ranks, 2);
  EXPECT_EQ(batch.catalog, data.samples.catalog);
  std::string ids;
  for (const BatchSequence& sequence : batch.sequences) ids += sequence.id + " ";
  EXPECT_EQ(ids, "r16 r15 r12 r10 r4 r9 ");
}

TEST(Draw, SameSeedSameBatchesOtherSeedOthers) {
  BatchDrawer a(kMixed.manifest, kMixed.samples, options_of(4, 20'000, 0.5, 1));
  BatchDrawer b(kMixed.manifest, kMixed.samples, options_of(4, 20'000, 0.5, 1));
  BatchDrawer c(kMixed.manifest, kMixed.samples, options_of(4, 20'000, 0.5, 2));
  int different = 0;
  for (int step = 0; step < 50; ++step) {
    const std::string text = text_of(a.next());
    EXPECT_EQ(text, text_of(b.next()));
    different += text != text_of(c.next());
  }
  EXPECT_EQ(different, 50);
}

TEST(Draw, SaysHowFarTheFirstEpochIs) {
  for (const double share : {0.0, 0.3, 1.0}) {
    SCOPED_TRACE("share " + std::to_string(share));
    BatchDrawer drawer(kMixed.manifest, kMixed.samples, options_of(4, 20'000, share));
    const std::int64_t samples = share == 0.0 ? 1000 : share == 1.0 ? 85 : 1085;
    std::set<std::string> drawn;
    bool passed_the_end = false;
    for (int step = 0; step < 120; ++step) {
      EXPECT_EQ(drawer.first_epoch().samples, samples);
      EXPECT_EQ(drawer.first_epoch().drawn, static_cast<std::int64_t>(drawn.size()));
      for (const BatchSequence& sequence : drawer.next().sequences) drawn.insert(sequence.source);
      passed_the_end |= static_cast<std::int64_t>(drawn.size()) == samples;
    }
    EXPECT_TRUE(passed_the_end);
  }
}

TEST(Draw, ResumedIsAsIfNeverStopped) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const DrawOptions options =
        options_of(1 + static_cast<int>(random() % 8), 9'000 + static_cast<int>(random() % 40'000),
                   static_cast<double>(random() % 11) / 10, seed);
    BatchDrawer drawer(kMixed.manifest, kMixed.samples, options);
    for (auto step = random() % 80; step > 0; --step) drawer.next();
    const std::string state = drawer.state();
    BatchDrawer other(kMixed.manifest, kMixed.samples, options);
    other.next();
    other.restore(state);
    EXPECT_EQ(other.state(), state);
    for (int step = 0; step < 40; ++step) EXPECT_EQ(text_of(drawer.next()), text_of(other.next()));
    EXPECT_EQ(other.state(), drawer.state());
  }
}

TEST(Draw, EverySampleOnceAnEpochAndIdsUniqueInTheRun) {
  BatchDrawer drawer(kMixed.manifest, kMixed.samples, options_of(4, 20'000, 0.5));
  std::map<std::string, std::vector<std::string>> drawn;  // kind -> paths in order
  std::set<std::string> ids;
  for (int step = 0; step < 200; ++step) {
    const Batch batch = drawer.next();
    for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
      EXPECT_TRUE(ids.insert(batch.sequences[i].id).second) << batch.sequences[i].id;
      drawn[std::string(name(batch.bucket_of(static_cast<SequenceIndex>(i)).kind))].push_back(
          batch.sequences[i].source);
    }
  }
  const std::map<std::string, std::size_t> sizes = {{"image", 1000}, {"video", 85}};
  for (const auto& [kind, size] : sizes) {
    const std::vector<std::string>& paths = drawn[kind];
    ASSERT_GT(paths.size(), 3 * size);
    const std::set<std::string> first(paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(first.size(), size) << kind;
    for (std::size_t begin = size; begin + size <= paths.size(); begin += size) {
      const auto at = paths.begin() + static_cast<std::ptrdiff_t>(begin);
      EXPECT_EQ(std::set<std::string>(at, at + static_cast<std::ptrdiff_t>(size)), first) << kind;
      EXPECT_FALSE(std::equal(at, at + static_cast<std::ptrdiff_t>(size), paths.begin()))
          << "each epoch in its own order";
    }
  }
}

TEST(Draw, BudgetIsKeptAndShareIsMet) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int ranks = 1 + static_cast<int>(random() % 16);
    const std::int64_t budget = 33'000 + static_cast<std::int64_t>(random() % 200'000);
    const double share = 0.1 + 0.8 * static_cast<double>(random() % 101) / 100;
    BatchDrawer drawer(kMixed.manifest, kMixed.samples, options_of(ranks, budget / ranks + 1, share, seed));
    const std::int64_t total_budget = ranks * (budget / ranks + 1);
    Sums run;
    for (int step = 0; step < 300; ++step) {
      const Batch batch = drawer.next();
      const Sums sums = sums_of(batch);
      EXPECT_LE(sums.total, total_budget);
      EXPECT_GT(sums.total, total_budget - 1'560) << "less is left than the longest image";
      run.total += sums.total;
      run.video += sums.video;
      bool image_seen = false;
      for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
        const bool image = batch.bucket_of(static_cast<SequenceIndex>(i)).kind == MediaKind::image;
        EXPECT_TRUE(image || !image_seen) << "videos come first";
        image_seen |= image;
      }
      // What is owed stays below a batch at all times.
      EXPECT_LE(std::abs(static_cast<double>(run.video) - share * static_cast<double>(run.total)),
                32'760.0 / 2 + static_cast<double>(total_budget));
    }
    EXPECT_NEAR(static_cast<double>(run.video) / static_cast<double>(run.total), share, 0.01);
  }
}

TEST(Draw, OneSampleAboveTheBudgetComesAlone) {
  BatchDrawer drawer(kMixed.manifest, kMixed.samples, options_of(2, 5'000, 0.5));
  int alone = 0;
  Sums run;
  for (int step = 0; step < 400; ++step) {
    const Batch batch = drawer.next();
    const Sums sums = sums_of(batch);
    if (sums.total > 10'000) {
      EXPECT_EQ(batch.sequences.size(), 1u);
      ++alone;
    }
    run.total += sums.total;
    run.video += sums.video;
  }
  EXPECT_GT(alone, 0);
  EXPECT_NEAR(static_cast<double>(run.video) / static_cast<double>(run.total), 0.5, 0.02) << "the share holds even so";
}

TEST(Draw, WhereOneKindIsMissingTheOtherFillsTheBatch) {
  const DataSet images = data_set({{MediaKind::image, 1, 256, 256, 50}});
  const DataSet videos = data_set({{MediaKind::video, 5, 256, 256, 50}});
  for (const double share : {0.0, 0.5}) {
    const Sums sums = sums_of(BatchDrawer(images.manifest, images.samples, options_of(2, 2'560, share)).next());
    EXPECT_EQ(sums.total, 5'120);
    EXPECT_EQ(sums.video, 0);
  }
  for (const double share : {0.5, 1.0}) {
    const Sums sums = sums_of(BatchDrawer(videos.manifest, videos.samples, options_of(2, 2'560, share)).next());
    EXPECT_EQ(sums.total, 5'120);
    EXPECT_EQ(sums.video, 5'120);
  }
  // A share of 1 or 0 leaves the other kind out although it is there.
  EXPECT_EQ(sums_of(BatchDrawer(kMixed.manifest, kMixed.samples, options_of(4, 20'000, 0)).next()).video, 0);
  const Sums all = sums_of(BatchDrawer(kMixed.manifest, kMixed.samples, options_of(4, 20'000, 1)).next());
  EXPECT_EQ(all.video, all.total);
  EXPECT_GT(all.total, 0);
  // Nothing to draw from.
  EXPECT_THAT(refusal([&] { BatchDrawer(images.manifest, images.samples, options_of(2, 2'560, 1)); }),
              HasSubstr("has no videos in a bucket"));
  EXPECT_THAT(refusal([&] { BatchDrawer(videos.manifest, videos.samples, options_of(2, 2'560, 0)); }),
              HasSubstr("has no images in a bucket"));
  const DataSet nothing = data_set({});
  EXPECT_THAT(refusal([&] { BatchDrawer(nothing.manifest, nothing.samples, options_of(2, 2'560, 0.5)); }),
              HasSubstr("has no samples in a bucket"));
}

TEST(Draw, OptionsOutOfRangeAreRefused) {
  const auto said = [](const DrawOptions& options) {
    return refusal([&] { BatchDrawer(kMixed.manifest, kMixed.samples, options); });
  };
  EXPECT_EQ(said(options_of(4, 20'000, 0.5)), "nothing was refused");  // positive control
  EXPECT_THAT(said(options_of(0, 20'000, 0.5)), HasSubstr("ranks 0 must be 1 to"));
  EXPECT_THAT(said(options_of(4, 0, 0.5)), HasSubstr("tokens per rank 0 must be 1 to"));
  EXPECT_THAT(said(options_of(4, std::int64_t{1} << 50, 0.5)), HasSubstr("tokens per rank"));
  EXPECT_THAT(said(options_of(4, 20'000, 1.5)), HasSubstr("video share 1.5"));
  EXPECT_THAT(said(options_of(4, 20'000, std::nan(""))), HasSubstr("video share"));
  DataSet other = kMixed;
  other.samples.bucket_of.pop_back();
  EXPECT_THAT(refusal([&] { BatchDrawer(other.manifest, other.samples, options_of(4, 20'000, 0.5)); }),
              HasSubstr("belong to another manifest"));
  other = kMixed;
  other.manifest.samples[5].row = other.manifest.samples[4].row;
  EXPECT_THAT(refusal([&] { BatchDrawer(other.manifest, other.samples, options_of(4, 20'000, 0.5)); }),
              HasSubstr("rows of the manifest must ascend"));
}

TEST(Draw, AForeignStateIsRefusedAndChangesNothing) {
  BatchDrawer drawer(kMixed.manifest, kMixed.samples, options_of(4, 20'000, 0.5));
  drawer.next();
  const std::string state = drawer.state();
  const auto after = [&](const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json json = nlohmann::json::parse(state);
    change(json);
    const std::string message = refusal([&] { drawer.restore(json.dump()); });
    if (message != "nothing was refused") {
      EXPECT_EQ(drawer.state(), state);
    }
    return message;
  };
  using Json = nlohmann::json;
  EXPECT_EQ(after([](Json&) {}), "nothing was refused");  // positive control
  EXPECT_THAT(after([](Json& j) { j["seed"] = "8"; }), HasSubstr("seed is \"8\"; this drawer has 7"));
  EXPECT_THAT(after([](Json& j) { j["ranks"] = 5; }), HasSubstr("ranks is 5; this drawer has 4"));
  EXPECT_THAT(after([](Json& j) { j["tokens_per_rank"] = 5; }), HasSubstr("tokens_per_rank is 5"));
  EXPECT_THAT(after([](Json& j) { j["video_share_millionths"] = 5; }), HasSubstr("video_share_millionths is 5"));
  EXPECT_THAT(after([](Json& j) { j["samples"] = "sha256:0"; }), HasSubstr("samples is \"sha256:0\""));
  EXPECT_THAT(after([](Json& j) { j["videos"]["position"] = 86; }), HasSubstr("videos.position is 86"));
  EXPECT_THAT(after([](Json& j) { j["videos"]["held"] = {1100}; }),
              HasSubstr("videos.held[0] is 1100; this epoch has not"));
  EXPECT_THAT(after([](Json& j) { j["images"]["epoch"] = -1; }), HasSubstr("images.epoch is -1"));
  EXPECT_THAT(after([](Json& j) { j.erase("due_millionths"); }), HasSubstr("due_millionths is missing"));
  EXPECT_THAT(after([](Json& j) { j["version"] = 2; }), HasSubstr("version is 2"));
  EXPECT_THAT(refusal([&] { drawer.restore("not json"); }), HasSubstr("state of a drawer: not JSON"));
  // Other samples: one more bucketed than before.
  DataSet other = data_set({{MediaKind::image, 1, 256, 256, 701},
                            {MediaKind::image, 1, 480, 832, 300},
                            {MediaKind::video, 17, 480, 832, 60},
                            {MediaKind::video, 81, 480, 832, 25}});
  BatchDrawer with_more(other.manifest, other.samples, options_of(4, 20'000, 0.5));
  EXPECT_THAT(refusal([&] { with_more.restore(state); }), HasSubstr("this drawer's samples have sha256:"));
}

}  // namespace
}  // namespace zellige
