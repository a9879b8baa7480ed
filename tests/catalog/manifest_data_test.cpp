// SPDX-License-Identifier: Apache-2.0
// Public data descriptions (tests/catalog/data) and what each of them must read as. The numbers were counted by hand or
// with other programs.
#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/scratch.h"
#include "zellige/manifest.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using zellige::testing::data_file;

const ModelGeometry kWan = model_preset("wan2.1-t2v-1.3b");

struct Summary {
  int usable = 0;
  int exact = 0;            // makes whole patches as it is
  std::int64_t tokens = 0;  // of the exact ones
};

Summary summary(const Manifest& manifest) {
  Summary sum;
  for (const Sample& sample : manifest.samples) {
    EXPECT_EQ(sample.usable(), sample.why_unusable.empty()) << "row " << sample.row << ": " << sample.why_unusable;
    if (!sample.usable()) continue;
    ++sum.usable;
    if (!why_unfit(kWan, *sample.frames, *sample.height, *sample.width).empty()) continue;
    ++sum.exact;
    sum.tokens += sequence_tokens(kWan, *sample.frames, *sample.height, *sample.width).value;
  }
  return sum;
}

const Sample& named(const Manifest& manifest, std::string_view end) {
  const auto found = std::find_if(manifest.samples.begin(), manifest.samples.end(),
                                  [&](const Sample& sample) { return sample.path.ends_with(end); });
  if (found == manifest.samples.end()) throw std::runtime_error("no sample " + std::string(end));
  return *found;
}

std::int64_t tokens(const Sample& sample) {
  return sequence_tokens(kWan, *sample.frames, *sample.height, *sample.width).value;
}

TEST(ManifestData, OpenSoraBrickClips) {
  const Manifest manifest = read_manifest(data_file("opensora_text2bricks_clips.csv"));
  EXPECT_EQ(manifest.format, "opensora");
  ASSERT_EQ(manifest.samples.size(), 122u);
  EXPECT_TRUE(manifest.skipped.empty());
  const Summary sum = summary(manifest);
  EXPECT_EQ(sum.usable, 122);
  EXPECT_EQ(sum.exact, 21);
  EXPECT_EQ(sum.tokens, 2'682'000);
  int hd = 0, small = 0, fitting_frames = 0, least = 1 << 30, most = 0;
  for (const Sample& sample : manifest.samples) {
    EXPECT_EQ(sample.kind, MediaKind::video);
    EXPECT_EQ(sample.fps, std::nullopt) << "an empty fps is unknown, not 0";
    hd += sample.height == 720 && sample.width == 1280;
    small += sample.height == 512 && sample.width == 910;
    fitting_frames += *sample.frames % 4 == 1;
    least = std::min(least, *sample.frames);
    most = std::max(most, *sample.frames);
  }
  EXPECT_EQ(hd, 92);
  EXPECT_EQ(small, 30);
  EXPECT_EQ(fitting_frames, 25);
  EXPECT_EQ(least, 9);
  EXPECT_EQ(most, 1619);
  EXPECT_EQ(named(manifest, "4.mp4").frames, 13);
  EXPECT_EQ(tokens(named(manifest, "4.mp4")), 14'400);
  EXPECT_EQ(tokens(named(manifest, "7.mp4")), 187'200);
  EXPECT_EQ(tokens(named(manifest, "14.mp4")), 144'000);
  EXPECT_EQ(named(manifest, "712.mp4").frames, 97);
  EXPECT_EQ(named(manifest, "712.mp4").width, 910);
}

TEST(ManifestData, OpenSoraMetaWithFloatsAndImages) {
  const Manifest manifest = read_manifest(data_file("opensora_meta_mixed.csv"));
  EXPECT_EQ(manifest.format, "opensora");
  ASSERT_EQ(manifest.samples.size(), 20u);
  EXPECT_TRUE(manifest.skipped.empty());
  const Summary sum = summary(manifest);
  EXPECT_EQ(sum.usable, 18);
  EXPECT_EQ(sum.exact, 8);
  EXPECT_EQ(sum.tokens, 3'274'945);
  EXPECT_EQ(manifest.samples[0].frames, 330);
  EXPECT_EQ(manifest.samples[0].fps, 30.0);
  EXPECT_EQ(tokens(named(manifest, "000004.jpg")), 4096);
  EXPECT_EQ(named(manifest, "000004.jpg").kind, MediaKind::image);
  EXPECT_EQ(named(manifest, "000004.jpg").fps, std::nullopt);
  EXPECT_EQ(tokens(named(manifest, "000007.jpg")), 6889);
  EXPECT_EQ(tokens(named(manifest, "000017_scene-0.mp4")), 32'760);
  EXPECT_EQ(tokens(named(manifest, "000010_scene-0.mp4")), 70'400);
  const Sample& unread = named(manifest, "000005_scene-0.mp4");
  EXPECT_FALSE(unread.usable());
  EXPECT_THAT(unread.why_unusable, HasSubstr("num_frames is 0"));
  EXPECT_THAT(unread.why_unusable, HasSubstr("height is 0"));
  EXPECT_FALSE(named(manifest, "000013.jpg").usable());
  // What can't be read is not made usable by assuming a size.
  ManifestOptions options;
  options.assumed_height = 720;
  options.assumed_width = 1280;
  EXPECT_EQ(summary(read_manifest(data_file("opensora_meta_mixed.csv"), options)).usable, 18);
}

TEST(ManifestData, MiraData) {
  const Manifest manifest = read_manifest(data_file("miradata_v0_clips.csv"));
  EXPECT_EQ(manifest.format, "miradata");
  ASSERT_EQ(manifest.samples.size(), 100u);
  ASSERT_EQ(manifest.skipped.size(), 1u);
  EXPECT_EQ(manifest.skipped[0].row, 101);
  EXPECT_EQ(manifest.skipped[0].reason, "the row is empty");
  EXPECT_EQ(summary(manifest).usable, 0);
  int least = 1 << 30, most = 0, long_ones = 0;
  std::set<double> rates;
  for (const Sample& sample : manifest.samples) {
    least = std::min(least, *sample.frames);
    most = std::max(most, *sample.frames);
    long_ones += *sample.frames / *sample.fps >= 119.9;
    rates.insert(*sample.fps);
    EXPECT_EQ(sample.why_unusable, "height unknown: no column for height; width unknown: no column for width");
  }
  EXPECT_EQ(least, 1550);
  EXPECT_EQ(most, 3600);
  EXPECT_EQ(long_ones, 68);
  EXPECT_EQ(rates, (std::set<double>{23.97602398, 29.97002997, 29.97, 29.895, 25, 30}));
  EXPECT_EQ(manifest.samples[0].path, "000000000000_VID00000000-000114");

  ManifestOptions options;
  options.assumed_height = 720;
  options.assumed_width = 1280;
  const Manifest sized = read_manifest(data_file("miradata_v0_clips.csv"), options);
  const Summary sum = summary(sized);
  EXPECT_EQ(sum.usable, 100);
  EXPECT_EQ(sum.exact, 24);
  const auto clip = std::find_if(sized.samples.begin(), sized.samples.end(),
                                 [](const Sample& sample) { return sample.frames == 2877; });
  ASSERT_NE(clip, sized.samples.end());
  EXPECT_EQ(tokens(*clip), 2'592'000);
}

TEST(ManifestData, VideoTuna) {
  const Manifest manifest = read_manifest(data_file("videotuna_toy_videos.csv"));
  EXPECT_EQ(manifest.format, "videotuna");
  ASSERT_EQ(manifest.samples.size(), 20u);
  const Summary sum = summary(manifest);
  EXPECT_EQ(sum.usable, 20);
  EXPECT_EQ(sum.exact, 0) << "126 frames are not 4n+1";
  std::set<std::string> files;
  for (const Sample& sample : manifest.samples) {
    files.insert(sample.path);
    EXPECT_EQ(sample.frames, 126);
    EXPECT_EQ(sample.height, 1280);
    EXPECT_EQ(sample.width, 720);
    EXPECT_EQ(sample.fps, 25.0);
  }
  EXPECT_EQ(files.size(), 1u);
  EXPECT_EQ(sequence_tokens(kWan, 125, 1280, 720).value, 115'200);
}

TEST(ManifestData, FastVideoCaptions) {
  const Manifest manifest = read_manifest(data_file("fastvideo_videos2caption.json"));
  EXPECT_EQ(manifest.format, "fastvideo");
  ASSERT_EQ(manifest.samples.size(), 20u);
  EXPECT_TRUE(manifest.skipped.empty());
  EXPECT_EQ(summary(manifest).usable, 16);
  // Four have frames from fps x duration; the nearest whole number is right on all of them.
  EXPECT_EQ(named(manifest, "clip_004.mp4").frames, 2113);
  EXPECT_EQ(named(manifest, "clip_007.mp4").frames, 668);
  EXPECT_EQ(named(manifest, "clip_008.mp4").frames, 716);
  EXPECT_EQ(named(manifest, "clip_014.mp4").frames, 504);
  EXPECT_EQ(named(manifest, "clip_009.mp4").frames, 3574);
  EXPECT_EQ(named(manifest, "clip_005.mp4").frames, 779);
  EXPECT_EQ(tokens(named(manifest, "clip_001.mp4")), 70'400);
  EXPECT_EQ(tokens(named(manifest, "clip_004.mp4")), 1'904'400);
  EXPECT_EQ(tokens(named(manifest, "clip_013.mp4")), 925'200);
  EXPECT_EQ(tokens(named(manifest, "image_001.jpg")), 4096);
  EXPECT_EQ(tokens(named(manifest, "image_002.png")), 6889);
  EXPECT_EQ(named(manifest, "image_002.png").kind, MediaKind::image);
  std::map<std::string, std::string> unusable;
  for (const Sample& sample : manifest.samples) {
    if (!sample.usable()) unusable[sample.path] = sample.why_unusable;
  }
  ASSERT_EQ(unusable.size(), 4u);
  EXPECT_THAT(unusable["video_001.mp4"], HasSubstr("num_frames is missing"));
  EXPECT_THAT(unusable["clip_900.mp4"], HasSubstr("fps is 0"));
  EXPECT_THAT(unusable["clip_901.mp4"], HasSubstr("duration is missing"));
  EXPECT_EQ(named(manifest, "clip_900.mp4").fps, std::nullopt);
}

TEST(ManifestData, FastVideoFramesRoundAlikeWithoutTheStatedCount) {
  // The entries that state their frames must give the same number from fps x duration.
  const Manifest manifest = read_manifest(data_file("fastvideo_videos2caption.json"));
  int checked = 0;
  for (const Sample& sample : manifest.samples) {
    if (!sample.frames || !sample.fps || !sample.seconds) continue;
    EXPECT_EQ(std::llround(*sample.fps * *sample.seconds), *sample.frames) << sample.path;
    ++checked;
  }
  EXPECT_EQ(checked, 14);
}

TEST(ManifestData, FastVideoMergeFileNamesFolderAndList) {
  const Manifest manifest = read_manifest(data_file("fastvideo_merge.txt"));
  EXPECT_EQ(manifest.format, "fastvideo");
  ASSERT_EQ(manifest.samples.size(), 20u);
  EXPECT_EQ(summary(manifest).usable, 16);
  EXPECT_EQ(manifest.samples[1].path, "videos/clip_001.mp4");
  EXPECT_EQ(manifest.samples[1].row, 2);
}

TEST(ManifestData, FastVideoImageToVideoList) {
  const Manifest manifest = read_manifest(data_file("fastvideo_mixkit_i2v.json"));
  EXPECT_EQ(manifest.format, "fastvideo-i2v");
  ASSERT_EQ(manifest.samples.size(), 40u);
  const Summary sum = summary(manifest);
  EXPECT_EQ(sum.usable, 24);
  EXPECT_EQ(sum.exact, 24);
  EXPECT_EQ(sum.tokens, 559'104);
  for (const Sample& sample : manifest.samples) {
    EXPECT_EQ(sample.kind, MediaKind::video);
    if (!sample.usable()) continue;
    EXPECT_EQ(sample.frames, 61);
    EXPECT_EQ(tokens(sample), 23'296);
  }
  EXPECT_EQ(manifest.samples.back().path, "480P_i2v_sample_images/Sample text with spaces, a comma and item 39..jpg");
}

TEST(ManifestData, VideoXFun) {
  const Manifest manifest = read_manifest(data_file("videoxfun_metadata.json"));
  EXPECT_EQ(manifest.format, "videoxfun");
  ASSERT_EQ(manifest.samples.size(), 20u);
  int videos = 0, usable_videos = 0;
  std::vector<std::int64_t> images;
  for (const Sample& sample : manifest.samples) {
    videos += sample.kind == MediaKind::video;
    usable_videos += sample.kind == MediaKind::video && sample.usable();
    if (sample.kind == MediaKind::image && sample.usable()) images.push_back(tokens(sample));
  }
  EXPECT_EQ(videos, 13);
  EXPECT_EQ(usable_videos, 0);
  EXPECT_EQ(images, (std::vector<std::int64_t>{6889, 3600, 4096, 3600}));
  EXPECT_EQ(named(manifest, "00000014.jpg").kind, MediaKind::image) << "no type: the extension says it";
  EXPECT_EQ(named(manifest, "00000014.jpg").height, 1280);
}

TEST(ManifestData, WebVid) {
  const Manifest manifest = read_manifest(data_file("webvid_clips.parquet"));
  EXPECT_EQ(manifest.format, "webvid");
  ASSERT_EQ(manifest.samples.size(), 100u);
  EXPECT_TRUE(manifest.skipped.empty());
  EXPECT_EQ(summary(manifest).usable, 0);
  double sum = 0, least = 1e9, most = 0;
  for (const Sample& sample : manifest.samples) {
    sum += *sample.seconds;
    least = std::min(least, *sample.seconds);
    most = std::max(most, *sample.seconds);
    EXPECT_EQ(sample.frames, std::nullopt);
  }
  EXPECT_EQ(sum, 2030);
  EXPECT_EQ(least, 5);
  EXPECT_EQ(most, 60);

  ManifestOptions options;
  options.assumed_height = 336;
  options.assumed_width = 592;
  options.assumed_fps = 29.97;
  const Manifest assumed = read_manifest(data_file("webvid_clips.parquet"), options);
  EXPECT_EQ(summary(assumed).usable, 100);
  EXPECT_EQ(assumed.samples[0].seconds, 7.0);
  EXPECT_EQ(assumed.samples[0].frames, 210);  // 209.79
  EXPECT_EQ(assumed.samples[0].fps, std::nullopt) << "assumed for counting, not known";
}

TEST(ManifestData, TheDemosOwn) {
  const std::string folder = std::string(ZELLIGE_SOURCE_DIR) + "/examples/demo/";
  const Manifest manifest = read_manifest(folder + "manifest.csv");
  EXPECT_EQ(manifest.format, "opensora");
  ASSERT_EQ(manifest.samples.size(), 175u);
  const BucketedSamples samples = apply_rules(manifest, read_rules(folder + "rules.toml"));
  std::map<std::string, std::int64_t> count;
  for (std::size_t b = 0; b < samples.count.size(); ++b) {
    count[samples.catalog.buckets[b].name] = samples.count[b];
    EXPECT_LE(samples.catalog.buckets[b].tokens.value, 4096);
  }
  EXPECT_EQ(count["256p"], 66);
  EXPECT_EQ(count["320p"] + count["320p-portrait"], 82);
  EXPECT_EQ(count["256p1s"] + count["256p1s-portrait"], 12);
  EXPECT_EQ(count["256p2s"] + count["256p2s-portrait"], 11);
  EXPECT_EQ(samples.skipped.size(), 4u);
  EXPECT_EQ(samples.catalog.model.heads, 12);
}

}  // namespace
}  // namespace zellige
