// SPDX-License-Identifier: Apache-2.0
// Conventions of which no public file is at hand: small files of ours in their form.
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

/// "video 81x480x832" or "image ?x?x?": kind and what is known of frames, height, width.
std::string shape(const Sample& sample) {
  const auto number = [](const std::optional<int>& value) { return value ? std::to_string(*value) : std::string("?"); };
  return std::string(name(sample.kind)) + " " + number(sample.frames) + "x" + number(sample.height) + "x" +
         number(sample.width);
}

std::vector<std::string> shapes(const Manifest& manifest) {
  std::vector<std::string> all;
  for (const Sample& sample : manifest.samples) all.push_back(sample.path + " " + shape(sample));
  return all;
}

TEST(ManifestConventions, OpenVid) {
  const Scratch scratch;
  const std::string path = scratch.file(
      "openvid.csv",
      "video,caption,aesthetic score,motion score,temporal consistency score,camera motion,frame,fps,seconds\n"
      "celebv_1_0.mp4,\"A person, smiling\",5.1,2.5,0.99,static,113,25.0,4.52\n"
      "celebv_2_0.mp4,A street,4.9,1.5,0.98,pan_left,,23.976,10.01\n");
  const Manifest manifest = read_manifest(path);
  EXPECT_EQ(manifest.format, "openvid");
  EXPECT_THAT(shapes(manifest), ElementsAre("celebv_1_0.mp4 video 113x?x?", "celebv_2_0.mp4 video 240x?x?"));
  EXPECT_EQ(manifest.samples[0].fps, 25.0);
  EXPECT_EQ(manifest.samples[0].seconds, 4.52);
}

TEST(ManifestConventions, Koala36M) {
  const Scratch scratch;
  const std::string path = scratch.file(
      "koala.csv",
      "videoID,url,timestamp,caption,clarity_score,aesthetic_score,motion_score,video_training_suitability_score\n"
      "vid0_1,https://example.org/0,\"['0:00:11.200', '0:00:17.933']\",A bird,0.9,5.0,1.0,4.1\n"
      "vid0_2,https://example.org/0,\"['0:00:20', '0:00:10']\",A tree,0.9,5.0,1.0,4.1\n");
  const Manifest manifest = read_manifest(path);
  EXPECT_EQ(manifest.format, "koala36m");
  EXPECT_THAT(shapes(manifest), ElementsAre("vid0_1 video ?x?x?"));
  EXPECT_NEAR(*manifest.samples[0].seconds, 6.733, 1e-9);
  EXPECT_THAT(manifest.samples[0].why_unusable, HasSubstr("no column for fps"));
  ASSERT_EQ(manifest.skipped.size(), 1u);
  EXPECT_EQ(manifest.skipped[0].row, 2);
  EXPECT_THAT(manifest.skipped[0].reason, HasSubstr("column timestamp is '['0:00:20', '0:00:10']'"));

  ManifestOptions options;
  options.assumed_height = 720;
  options.assumed_width = 1280;
  options.assumed_fps = 30;
  EXPECT_THAT(shapes(read_manifest(path, options)), ElementsAre("vid0_1 video 202x720x1280"));  // 201.99
}

TEST(ManifestConventions, DiffSynthInAllItsForms) {
  const Scratch scratch;
  const std::vector<std::string> expected = {"a.mp4 video ?x?x?", "b.jpg image 1x?x?"};
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"metadata.csv", "video,image,prompt\na.mp4,,\"one, two\"\n,b.jpg,three\n"},
           {"metadata.json", R"([{"video": "a.mp4", "prompt": "one"}, {"image": "b.jpg", "prompt": "two"}])"},
           {"metadata.jsonl",
            "{\"video\": \"a.mp4\", \"prompt\": \"one\"}\n{\"image\": \"b.jpg\", \"prompt\": \"two\"}\n"}}) {
    const Manifest manifest = read_manifest(scratch.file(name, text));
    EXPECT_EQ(manifest.format, "diffsynth") << name;
    EXPECT_EQ(shapes(manifest), expected) << name;
  }
  const Manifest images = read_manifest(scratch.file("i.csv", "image,prompt,height,width\nb.gif,three,512,768\n"));
  EXPECT_EQ(images.format, "diffsynth");
  EXPECT_THAT(shapes(images), ElementsAre("b.gif image 1x512x768"));
}

TEST(ManifestConventions, RecordsWithTheUsualNames) {
  const Scratch scratch;
  // musubi-tuner's JSON lines, one of them with sizes.
  const Manifest lines =
      read_manifest(scratch.file("meta.jsonl",
                                 "{\"video_path\": \"v.bin\", \"caption\": \"x\"}\n"
                                 "{\"image_path\": \"i.bin\", \"caption\": \"y\"}\n"
                                 "{\"video_path\": \"c.mp4\", \"num_frames\": \"81\", \"height\": 480.0, "
                                 "\"width\": \"832\", \"fps\": \"30000/1001\"}\n"));
  EXPECT_EQ(lines.format, "records");
  EXPECT_THAT(shapes(lines), ElementsAre("v.bin video ?x?x?", "i.bin image 1x?x?", "c.mp4 video 81x480x832"));
  EXPECT_NEAR(*lines.samples[2].fps, 29.97002997, 1e-8);
  // Lines without the extension are told from a document.
  EXPECT_EQ(read_manifest(scratch.file("meta.json", "{\"path\": \"a.jpg\"}\n{\"path\": \"b.jpg\"}\n")).samples.size(),
            2u);
  // Neither extension nor column says the kind: the frames do, or the row is skipped.
  const Manifest bare =
      read_manifest(scratch.file("bare.csv", "path,num_frames,height,width\nx,1,480,832\ny,5,480,832\nz,,480,832\n"));
  EXPECT_THAT(shapes(bare), ElementsAre("x image 1x480x832", "y video 5x480x832"));
  ASSERT_EQ(bare.skipped.size(), 1u);
  EXPECT_THAT(bare.skipped[0].reason, HasSubstr("whether it is image or video"));
}

TEST(ManifestConventions, OpenSoraAsParquet) {
  const Manifest manifest = read_manifest(data_file("opensora_table.parquet"));
  EXPECT_EQ(manifest.format, "opensora");
  EXPECT_THAT(shapes(manifest), ElementsAre("a/1.mp4 video 81x480x832", "a/2.jpg image 1x1024x1024",
                                            "a/3.mp4 video ?x480x832", "a/4.mp4 video ?x480x832"));
  EXPECT_THAT(manifest.samples[2].why_unusable, HasSubstr("num_frames is missing"));
  EXPECT_THAT(manifest.samples[3].why_unusable, HasSubstr("num_frames is NaN"));
  EXPECT_EQ(manifest.samples[0].fps, 16.0);
}

TEST(ManifestConventions, FastVideoLatentsAsParquet) {
  const Manifest manifest = read_manifest(data_file("fastvideo_latents.parquet"));
  EXPECT_EQ(manifest.format, "fastvideo-latents");
  EXPECT_THAT(shapes(manifest), ElementsAre("clip_0.mp4 video 81x480x832", "still_1.jpg image 1x1024x1024",
                                            "clip_2.mp4 video 48x480x832"));
}

TEST(ManifestConventions, VideoXFunWithoutTypeIsAnImageUnlessItsNameSaysOtherwise) {
  const Scratch scratch;
  const Manifest manifest =
      read_manifest(scratch.file("m.json", R"([{"file_path": "a", "text": ""}, {"file_path": "b.mp4", "text": ""},
                    {"file_path": "c", "text": "", "type": "video"}, {"file_path": "d", "text": "", "type": "audio"}])"));
  EXPECT_EQ(manifest.format, "videoxfun");
  EXPECT_THAT(shapes(manifest), ElementsAre("a image 1x?x?", "b.mp4 video ?x?x?", "c video ?x?x?"));
  ASSERT_EQ(manifest.skipped.size(), 1u);
  EXPECT_EQ(manifest.skipped[0].reason, "column type is 'audio'; it must be \"image\" or \"video\"");
}

TEST(ManifestConventions, AGivenFormatIsTakenOrRefused) {
  const Scratch scratch;
  ManifestOptions options;
  options.format = "records";
  EXPECT_EQ(read_manifest(data_file("opensora_meta_mixed.csv"), options).format, "records");
  EXPECT_EQ(read_manifest(data_file("opensora_meta_mixed.csv"), options).samples.size(), 20u);
  options.format = "openvid";
  EXPECT_THAT(refusal([&] { read_manifest(data_file("opensora_meta_mixed.csv"), options); }),
              HasSubstr("is not openvid: it lacks video, frame, seconds and has fields 'path'"));
  options.format = "opensora";
  EXPECT_THAT(
      refusal([&] { read_manifest(scratch.file("m.csv", "path,num_frame,height,width\nx,1,2,3\n"), options); }),
      HasSubstr("it lacks num_frames and has fields 'path', 'num_frame', 'height', 'width'; is 'num_frame' misspelt?"));
  options.format = "opensorra";
  EXPECT_THAT(refusal([&] { read_manifest(data_file("opensora_meta_mixed.csv"), options); }),
              HasSubstr("'opensorra' is not known; did you mean 'opensora'?"));
}

TEST(ManifestConventions, EveryFormatIsNamedOnce) {
  EXPECT_THAT(manifest_formats(),
              ElementsAre("miradata", "koala36m", "openvid", "webvid", "fastvideo-latents", "fastvideo",
                          "fastvideo-i2v", "videoxfun", "videotuna", "opensora", "diffsynth", "records"));
}

TEST(ManifestConventions, MergeFileCountsRowsThroughAndRefusesMixtures) {
  const Scratch scratch;
  scratch.file("a.json", R"([{"path": "x.jpg", "cap": "", "resolution": {"height": 256, "width": 256}}, 7])");
  scratch.file("b.json", R"([{"path": "y.jpg", "cap": "", "resolution": {"height": 256, "width": 256}}])");
  scratch.file("c.json", R"([{"video_path": "y.mp4"}])");
  const Manifest manifest = read_manifest(scratch.file("merge.txt", "one,a.json\n\ntwo,b.json\n"));
  EXPECT_THAT(shapes(manifest), ElementsAre("one/x.jpg image 1x256x256", "two/y.jpg image 1x256x256"));
  EXPECT_EQ(manifest.samples[1].row, 3);
  ASSERT_EQ(manifest.skipped.size(), 1u);
  EXPECT_EQ(manifest.skipped[0].row, 2);
  EXPECT_EQ(manifest.skipped[0].reason, "a.json: the entry is a number, not an object");
  EXPECT_THAT(refusal([&] { read_manifest(scratch.file("m2.txt", "one,a.json\ntwo,c.json\n")); }),
              HasSubstr("lists files of two formats, fastvideo and records"));
  EXPECT_THAT(refusal([&] { read_manifest(scratch.file("m3.txt", "one,missing.json\n")); }),
              HasSubstr("can't be opened"));
}

}  // namespace
}  // namespace zellige
