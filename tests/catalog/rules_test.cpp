// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/refusal.h"
#include "catalog/scratch.h"
#include "zellige/manifest.h"

namespace zellige {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using zellige::testing::data_file;
using zellige::testing::refusal;
using zellige::testing::Scratch;

constexpr const char* kGood = R"(
[model]
preset = "wan2.1-t2v-1.3b"

[[bucket]]
name = "480p"
kind = "image"
size = [480, 832]  # height, width
orientation = "any"

[[bucket]]
name = "480p5s"
kind = "video"
size = [480, 832]
frames = 81

[sampling]
fps = 16
video_share = 0.4
max_tokens = 40000
on_unfit = "error"
)";

std::string after(std::string_view what, std::string_view with) {
  const Scratch scratch;
  std::string text = kGood;
  const auto at = text.find(what);
  if (at == std::string::npos) return "the test's text is not there";
  text.replace(at, what.size(), with);
  const std::string path = scratch.file("rules.toml", text);
  return refusal([&] { read_rules(path); });
}

TEST(Rules, AreRead) {
  const Scratch scratch;
  const BucketRules rules = read_rules(scratch.file("rules.toml", kGood));
  EXPECT_EQ(rules.model, model_preset("wan2.1-t2v-1.3b"));
  ASSERT_EQ(rules.buckets.size(), 2u);
  EXPECT_EQ(rules.buckets[0].name, "480p");
  EXPECT_EQ(rules.buckets[0].kind, MediaKind::image);
  EXPECT_EQ(rules.buckets[0].height, 480);
  EXPECT_EQ(rules.buckets[0].width, 832);
  EXPECT_EQ(rules.buckets[0].frames, 1);
  EXPECT_TRUE(rules.buckets[0].any_orientation);
  EXPECT_EQ(rules.buckets[1].kind, MediaKind::video);
  EXPECT_EQ(rules.buckets[1].frames, 81);
  EXPECT_FALSE(rules.buckets[1].any_orientation);
  EXPECT_EQ(rules.fps, 16.0);
  EXPECT_EQ(rules.video_share, 0.4);
  EXPECT_EQ(rules.max_tokens, Tokens{40000});
  EXPECT_EQ(rules.on_unfit, OnUnfit::error);
}

TEST(Rules, SamplingMayBeLeftOut) {
  const Scratch scratch;
  const BucketRules rules = read_rules(scratch.file(
      "rules.toml", "[model]\npreset = \"tiny\"\n[[bucket]]\nname = \"a\"\nkind = \"image\"\nsize = [256, 256]\n"));
  EXPECT_EQ(rules.fps, std::nullopt);
  EXPECT_EQ(rules.video_share, 0.5);
  EXPECT_EQ(rules.max_tokens, std::nullopt);
  EXPECT_EQ(rules.on_unfit, OnUnfit::skip);
}

TEST(Rules, EveryFaultNamesFileTableKeyAndValue) {
  EXPECT_EQ(after("0.4", "1.0"), "nothing was refused");  // positive control
  EXPECT_THAT(
      after("[model]", "[modle]"),
      HasSubstr(
          "rules.toml: modle is {\"preset\":\"wan2.1-t2v-1.3b\"}; no such key is known here; did you mean 'model'?"));
  EXPECT_THAT(after("preset =", "present ="),
              HasSubstr("model.present is \"wan2.1-t2v-1.3b\"; no such key is known here; did you mean 'preset'?"));
  EXPECT_THAT(after("wan2.1-t2v-1.3b", "wan2.1-t2v-1.4b"),
              HasSubstr("model.preset is \"wan2.1-t2v-1.4b\"; it must be one of"));
  EXPECT_THAT(after("wan2.1-t2v-1.3b", "wan2.1-t2v-1.4b"), HasSubstr("did you mean 'wan2.1-t2v-1.3b'?"));
  EXPECT_THAT(after("orientation", "orientaton"),
              HasSubstr("bucket[0].orientaton is \"any\"; no such key is known here; did you mean 'orientation'?"));
  EXPECT_THAT(after("\"any\"", "\"both\""), HasSubstr("bucket[0].orientation is \"both\"; it must be \"any\""));
  EXPECT_THAT(after("[480, 832]  #", "[480]  #"), HasSubstr("bucket[0].size is [480]; it must be [height, width]"));
  EXPECT_THAT(after("[480, 832]  #", "[480.0, 832]  #"),
              HasSubstr("bucket[0].size[0] is 480.0; it must be a whole number"));
  EXPECT_THAT(after("[480, 832]  #", "[480, 833]  #"), HasSubstr("width 833 is no positive multiple of 16"));
  EXPECT_THAT(after("[480, 832]  #", "[480, -832]  #"), HasSubstr("bucket[0].size[1] is -832"));
  EXPECT_THAT(after("frames = 81", "frames = 80"), HasSubstr("frames 80 is not 1 + a multiple of 4"));
  EXPECT_THAT(after("frames = 81", ""), HasSubstr("bucket[1].frames is missing"));
  EXPECT_THAT(after("kind = \"video\"", "kind = \"image\""), HasSubstr("bucket[1].frames is 81; an image has 1 frame"));
  EXPECT_THAT(after("kind = \"video\"", "kind = \"clip\""), HasSubstr("bucket[1].kind is \"clip\""));
  EXPECT_THAT(after("480p5s", "480p"), HasSubstr("another bucket is already named '480p'"));
  EXPECT_THAT(after("name = \"480p\"", "name = \"\""), HasSubstr("bucket[0].name is \"\"; it must not be empty"));
  EXPECT_THAT(after("fps = 16", "fps = 0"), HasSubstr("sampling.fps is 0; it must be positive"));
  EXPECT_THAT(after("fps = 16", "fps = inf"), HasSubstr("sampling.fps is"));
  EXPECT_THAT(after("0.4", "1.4"), HasSubstr("sampling.video_share is 1.4; it must be between 0 and 1"));
  EXPECT_THAT(after("0.4", "\"half\""), HasSubstr("sampling.video_share is \"half\"; it must be a number"));
  EXPECT_THAT(after("40000", "0"), HasSubstr("sampling.max_tokens is 0"));
  EXPECT_THAT(after("\"error\"", "\"drop\""),
              HasSubstr("sampling.on_unfit is \"drop\"; it must be \"skip\" or \"error\""));
  EXPECT_THAT(after("max_tokens", "max_token"),
              HasSubstr("sampling.max_token is 40000; no such key is known here; did you mean 'max_tokens'?"));
  EXPECT_THAT(after("[sampling]", "[samplings]"), HasSubstr("samplings"));
  EXPECT_THAT(after("fps = 16", "fps = 16\nfps = 24"), HasSubstr("not TOML at line 19"));
  EXPECT_THAT(after("[model]", "[model"), HasSubstr("not TOML at line 2"));
}

TEST(Rules, OtherFilesAreRefusedByName) {
  const Scratch scratch;
  EXPECT_THAT(refusal([&] { read_rules(scratch.path("none.toml")); }), HasSubstr("none.toml' can't be opened"));
  EXPECT_THAT(refusal([&] { read_rules(scratch.file("empty.toml", "")); }),
              HasSubstr("is empty; it must hold TOML tables"));
  EXPECT_THAT(refusal([&] { read_rules(scratch.file("no.toml", "bucket = []\n[model]\npreset = \"tiny\"\n")); }),
              HasSubstr("bucket is []; at least one [[bucket]] is needed"));
  EXPECT_THAT(refusal([] { read_rules(data_file("diffusionpipe_dataset.toml")); }), HasSubstr("diffusion-pipe"));
  EXPECT_THAT(refusal([] { read_rules(data_file("simpletuner_multidatabackend.json")); }),
              HasSubstr("not TOML at line"));
  EXPECT_THAT(refusal([&] {
                read_rules(scratch.file("buckets.py", "bucket_config = {\n    \"256px\": {1: (1.0, 130)},\n}\n"));
              }),
              HasSubstr("not TOML at line"));
}

std::vector<std::string> buckets_of(const BucketRules& rules) {
  std::vector<std::string> all;
  for (const RuleBucket& bucket : rules.buckets) {
    all.push_back(bucket.name + " " + std::string(name(bucket.kind)) + " " +
                  std::to_string(sequence_tokens(rules.model, bucket.frames, bucket.height, bucket.width).value));
  }
  return all;
}

TEST(MusubiRules, TheDocumentedExamples) {
  const BucketRules rules = read_rules(data_file("musubi_dataset.toml"));
  EXPECT_EQ(rules.model.name, "wan2.1-t2v-1.3b");
  // Dataset by dataset: images; images; 1, 25, 45 frames; whole clips up to 45 frames; 1, 25 and 79 -> 77; 1.
  EXPECT_THAT(buckets_of(rules),
              ElementsAre("544x960 image 2040", "480x832 image 1560", "544x960x1 video 2040", "544x960x25 video 14280",
                          "544x960x45 video 24480", "544x960x5 video 4080", "544x960x9 video 6120",
                          "544x960x13 video 8160", "544x960x17 video 10200", "544x960x21 video 12240",
                          "544x960x29 video 16320", "544x960x33 video 18360", "544x960x37 video 20400",
                          "544x960x41 video 22440", "544x960x77 video 40800"));
  EXPECT_THAT(rules.notes, ElementsAre("datasets[4].target_frames has 79, read as 77 (4n+1), as musubi-tuner does",
                                       "source_fps is set for some video datasets only: no video is resampled"));
  EXPECT_TRUE(rules.buckets[0].any_orientation);
  EXPECT_EQ(rules.fps, std::nullopt);
}

std::string musubi(std::string_view text) {
  const Scratch scratch;
  const std::string path = scratch.file("dataset.toml", text);
  return refusal([&] { read_rules(path); });
}

TEST(MusubiRules, DefaultsAndResampling) {
  const Scratch scratch;
  const BucketRules rules = read_rules(scratch.file("dataset.toml",
                                                    "[[datasets]]\nvideo_directory = \"v\"\nsource_fps = 30.0\n"
                                                    "target_frames = [17]\n[[datasets]]\nimage_directory = \"i\"\n"
                                                    "resolution = 512\n"));
  EXPECT_THAT(buckets_of(rules), ElementsAre("544x960x17 video 10200", "512x512 image 1024"));
  EXPECT_FALSE(rules.buckets[0].any_orientation);
  EXPECT_EQ(rules.fps, 16.0) << "every video dataset states its rate, so all are resampled to Wan's";
  EXPECT_TRUE(rules.notes.empty());
}

TEST(MusubiRules, FaultsAreNamed) {
  const std::string video = "[[datasets]]\nvideo_directory = \"v\"\n";
  EXPECT_EQ(musubi(video), "nothing was refused");  // positive control
  EXPECT_THAT(musubi(video + "target_frame = [1]\n"),
              HasSubstr("datasets[0].target_frame is [1]; no such key is known here; did you mean 'target_frames'?"));
  EXPECT_THAT(musubi(video + "source_fps = 30\n"),
              HasSubstr("datasets[0].source_fps is 30; it must be a positive number with a point (30.0)"));
  EXPECT_THAT(musubi(video + "frame_extraction = \"tail\"\n"),
              HasSubstr("datasets[0].frame_extraction is \"tail\"; it must be one of head"));
  EXPECT_THAT(musubi(video + "target_frames = []\n"), HasSubstr("datasets[0].target_frames is []"));
  EXPECT_THAT(musubi(video + "target_frames = [0]\n"), HasSubstr("datasets[0].target_frames[0] is 0"));
  EXPECT_THAT(musubi(video + "resolution = [960]\n"),
              HasSubstr("datasets[0].resolution is [960]; it must be [width, height]"));
  EXPECT_THAT(musubi(video + "resolution = [960, 540]\n"), HasSubstr("height 540 is no positive multiple of 16"));
  EXPECT_THAT(musubi(video + "image_directory = \"i\"\n"), HasSubstr("not two"));
  EXPECT_THAT(musubi("[[datasets]]\ncache_directory = \"c\"\n"), HasSubstr("it must have one of image_directory"));
  EXPECT_THAT(musubi("datasets = []\n"), HasSubstr("at least one [[datasets]] is needed"));
  EXPECT_THAT(musubi(video + "[general]\nenable_buckets = true\n"), HasSubstr("did you mean 'enable_bucket'?"));
  EXPECT_THAT(musubi(video + "[genral]\nenable_bucket = true\n"), HasSubstr("did you mean 'general'?"));
}

}  // namespace
}  // namespace zellige
