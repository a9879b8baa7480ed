// SPDX-License-Identifier: Apache-2.0
#include "catalog/musubi_rules.h"

#include <algorithm>
#include <limits>

#include "catalog/toml_document.h"

namespace zellige {
namespace {

constexpr const char* kModel = "wan2.1-t2v-1.3b";
constexpr double kWanFps = 16;  // musubi-tuner resamples to it where source_fps is given
constexpr int kDefaultMaxFrames = 129;
constexpr int kDefaultWidth = 960, kDefaultHeight = 544;

int positive(const JsonValue& value) { return static_cast<int>(value.integer(1, std::numeric_limits<int>::max())); }

// Keys by where they may stand.
const std::vector<std::string> kCommonKeys = {"resolution",  "enable_bucket",     "bucket_no_upscale",   "batch_size",
                                              "num_repeats", "caption_extension", "skip_corrupted_cache"};
const std::vector<std::string> kSourceKeys = {"image_directory", "image_jsonl_file", "video_directory",
                                              "video_jsonl_file"};
const std::vector<std::string> kDatasetKeys = {"cache_directory", "control_directory", "fp_latent_window_size"};
const std::vector<std::string> kImageKeys = {"multiple_target",     "fp_1f_no_post",      "no_resize_control",
                                             "fp_1f_clean_indices", "fp_1f_target_index", "control_resolution"};
const std::vector<std::string> kVideoKeys = {"target_frames", "frame_extraction", "frame_stride",
                                             "frame_sample",  "max_frames",       "source_fps"};

std::vector<std::string> together(std::initializer_list<std::vector<std::string>> lists) {
  std::vector<std::string> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

/// What [general] sets for all datasets and each may set anew.
struct Common {
  int width = kDefaultWidth;
  int height = kDefaultHeight;
  bool enable_bucket = false;
};

/// Reads the keys that [general] and [[datasets]] share.
void read_common(JsonObject& table, Common& common) {
  if (table.has("resolution")) {  // [W, H], or one side of a square
    const JsonValue resolution = table.at("resolution");
    if (resolution.raw().is_number()) {
      common.width = common.height = positive(resolution);
    } else {
      const std::vector<JsonValue> sides = resolution.array();
      if (sides.size() != 2) resolution.refuse("it must be [width, height]");
      common.width = positive(sides[0]);
      common.height = positive(sides[1]);
    }
  }
  if (table.has("enable_bucket")) common.enable_bucket = table.at("enable_bucket").boolean();
  for (const char* key : {"bucket_no_upscale", "skip_corrupted_cache"}) {
    if (table.has(key)) table.at(key).boolean();
  }
  for (const char* key : {"batch_size", "num_repeats"}) {
    if (table.has(key)) positive(table.at(key));
  }
  if (table.has("caption_extension")) table.at("caption_extension").string();
}

class MusubiReader {
 public:
  explicit MusubiReader(const std::string& path) {
    rules_.path = path;
    rules_.model = model_preset(kModel);
  }

  void read_general(const JsonValue& value) {
    expect_keys(value, kCommonKeys);
    JsonObject table(value);
    read_common(table, common_);
  }

  void read_dataset(const JsonValue& value) {
    JsonObject table(value);
    Common common = common_;
    read_common(table, common);
    std::string source;
    for (const std::string& key : kSourceKeys) {
      if (!table.has(key)) continue;
      if (!source.empty()) value.refuse("it must have one of " + joined(kSourceKeys) + ", not two");
      source = key;
      table.at(key).string();
    }
    if (source.empty()) value.refuse("it must have one of " + joined(kSourceKeys));
    const bool video = source.starts_with("video");
    // Directories, control images and FramePack's settings do not concern sizes.
    expect_keys(value, together({kCommonKeys, kSourceKeys, kDatasetKeys, video ? kVideoKeys : kImageKeys}));
    if (video) {
      for (const int frames : video_frames(table, value.path())) add(value, common, MediaKind::video, frames);
    } else {
      add(value, common, MediaKind::image, 1);
    }
  }

  BucketRules finish(const JsonValue& datasets) {
    if (rules_.buckets.empty()) datasets.refuse("at least one [[datasets]] is needed");
    if (num_resampled_ > 0 && num_resampled_ == num_videos_) rules_.fps = kWanFps;
    if (num_resampled_ > 0 && num_resampled_ < num_videos_) {
      rules_.notes.push_back("source_fps is set for some video datasets only: no video is resampled");
    }
    return std::move(rules_);
  }

 private:
  std::vector<int> video_frames(JsonObject& table, const std::string& path) {
    std::vector<int> frames = {1};
    if (table.has("target_frames")) {
      const JsonValue targets = table.at("target_frames");
      frames.clear();
      for (const JsonValue& target : targets.array()) frames.push_back(positive(target));
      if (frames.empty()) targets.refuse("at least one number of frames is needed");
    }
    int max_frames = kDefaultMaxFrames;
    if (table.has("max_frames")) max_frames = positive(table.at("max_frames"));
    for (const char* key : {"frame_stride", "frame_sample"}) {
      if (table.has(key)) positive(table.at(key));
    }
    ++num_videos_;
    if (table.has("source_fps")) {
      const JsonValue fps = table.at("source_fps");
      if (!fps.raw().is_number_float() || fps.number() <= 0)
        fps.refuse("it must be a positive number with a point (30.0)");
      ++num_resampled_;
    }
    std::string extraction = "head";
    if (table.has("frame_extraction")) {
      const JsonValue value = table.at("frame_extraction");
      extraction = value.string();
      const std::vector<std::string> known = {"head", "chunk", "slide", "uniform", "full"};
      if (std::find(known.begin(), known.end(), extraction) == known.end()) {
        value.refuse("it must be one of " + joined(known));
      }
    }
    if (extraction == "full") {  // every clip at its own length, cut to 4n+1, at most max_frames
      frames.clear();
      for (int n = 1; n <= max_frames; n += rules_.model.vae_stride[0]) frames.push_back(n);
      return frames;
    }
    for (int& n : frames) {
      const int fitting = (n - 1) / rules_.model.vae_stride[0] * rules_.model.vae_stride[0] + 1;
      if (fitting != n) {
        rules_.notes.push_back(path + ".target_frames has " + std::to_string(n) + ", read as " +
                               std::to_string(fitting) + " (4n+1), as musubi-tuner does");
      }
      n = fitting;
    }
    return frames;
  }

  void add(const JsonValue& dataset, const Common& common, MediaKind kind, int frames) {
    const std::string unfit = why_unfit(rules_.model, frames, common.height, common.width);
    if (!unfit.empty()) dataset.refuse("its resolution does not fit " + rules_.model.name + ": " + unfit);
    RuleBucket bucket;
    bucket.name = std::to_string(common.height) + "x" + std::to_string(common.width);
    if (kind == MediaKind::video) bucket.name.append("x").append(std::to_string(frames));
    bucket.kind = kind;
    bucket.height = common.height;
    bucket.width = common.width;
    bucket.frames = frames;
    bucket.any_orientation = common.enable_bucket;
    for (RuleBucket& known : rules_.buckets) {  // several datasets may ask for the same
      if (known.name != bucket.name) continue;
      known.any_orientation |= bucket.any_orientation;
      return;
    }
    rules_.buckets.push_back(std::move(bucket));
  }

  BucketRules rules_;
  Common common_;
  int num_videos_ = 0;
  int num_resampled_ = 0;
};

}  // namespace

BucketRules musubi_rules(const JsonDocument& document, const std::string& path) {
  expect_keys(document.root(), {"general", "datasets"});
  JsonObject root(document.root());
  MusubiReader reader(path);
  if (root.has("general")) reader.read_general(root.at("general"));
  const JsonValue datasets = root.at("datasets");
  for (const JsonValue& dataset : datasets.array()) reader.read_dataset(dataset);
  return reader.finish(datasets);
}

}  // namespace zellige
