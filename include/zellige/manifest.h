// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zellige/batch.h"
#include "zellige/catalog.h"

namespace zellige {

/// One image or clip as a data set describes it. What the description leaves out is none, never a guess.
struct Sample {
  std::string path;  ///< as the manifest writes it
  MediaKind kind = MediaKind::image;
  std::optional<int> frames;  ///< 1 for images
  std::optional<int> height;  ///< pixels
  std::optional<int> width;   ///< pixels
  std::optional<double> fps;
  std::int64_t row = 0;  ///< data row in the manifest, from 1

  bool usable() const { return frames && height && width; }
};

/// A sample that can't be used, and why, in words that name the column and its value.
struct SkippedSample {
  std::int64_t row = 0;
  std::string path;
  std::string reason;
};

struct Manifest {
  std::string path;
  std::string format;                  ///< which convention it follows, e.g. "opensora-csv"
  std::vector<Sample> samples;         ///< every row that describes a sample, usable or not
  std::vector<SkippedSample> skipped;  ///< rows that describe none: blank, broken, empty
};

struct ManifestOptions {
  std::string format;                 ///< one of manifest_formats(); empty: found out from the file
  std::optional<int> assumed_height;  ///< size given to videos and images whose row has none
  std::optional<int> assumed_width;
};

/// Reads a manifest: Open-Sora, MiraData, VideoTuna, OpenVid, Koala-36M CSV; FastVideo and VideoX-Fun JSON; WebVid
/// Parquet; JSON lines; DiffSynth metadata. Errors: Code::input, naming file, row, column and value.
Manifest read_manifest(const std::string& path, const ManifestOptions& options = {});
std::vector<std::string> manifest_formats();

/// Bucket rules, from rules.toml or a musubi-tuner dataset file.
struct RuleBucket {
  std::string name;
  MediaKind kind = MediaKind::image;
  int height = 0;
  int width = 0;
  int frames = 1;
  bool any_orientation = false;  ///< also takes samples of swapped height and width (as a second bucket)
};
enum class OnUnfit { skip, error };
struct BucketRules {
  std::string path;
  ModelGeometry model;
  std::vector<RuleBucket> buckets;
  std::optional<double> fps;         ///< videos are resampled to this rate before their frames are counted
  double video_share = 0.5;          ///< part of a batch's tokens in videos
  std::optional<Tokens> max_tokens;  ///< no bucket longer than this
  OnUnfit on_unfit = OnUnfit::skip;
};

/// Reads rules. Errors: Code::input, naming file, table, key and value.
BucketRules read_rules(const std::string& path);

/// A data set cut to buckets: `bucket_of[i]` is the bucket of manifest.samples[i], or -1 with a reason in `skipped`.
struct BucketedSamples {
  Catalog catalog;
  std::vector<BucketIndex> bucket_of;
  std::vector<std::int64_t> count;     ///< samples a bucket
  std::vector<SkippedSample> skipped;  ///< of the manifest and of the rules; never silently fewer
};

/// Gives every usable sample the bucket of its kind with the closest aspect ratio that it fills (no upscaling, no
/// invented frames), the longest such first. Errors: Code::input when on_unfit is error and a sample fits nowhere.
BucketedSamples apply_rules(const Manifest& manifest, const BucketRules& rules);

struct DrawOptions {
  int ranks = 1;
  Tokens tokens_per_rank;
  double video_share = 0.5;  ///< of the batch's tokens, 0..1
  std::uint64_t seed = 0;
};

/// Draws batches from bucketed samples, each sample once an epoch, videos and images in the wanted share of tokens.
/// Deterministic in the seed on every platform (std::mt19937_64, own bounded draw and shuffle). Threads: one at a time.
class BatchDrawer {
 public:
  BatchDrawer(const Manifest& manifest, const BucketedSamples& samples, const DrawOptions& options);
  /// Draws the next batch; ids are unique in it. Never exceeds ranks x tokens_per_rank unless one sample alone does.
  Batch next();
  /// The drawer's place in the stream as JSON text, and back: the batches after `restore` are those after `state`.
  std::string state() const;
  void restore(std::string_view state);

 private:
  struct Stream;
  const Manifest* manifest_;
  const BucketedSamples* samples_;
  DrawOptions options_;
  std::uint64_t step_ = 0;
};

}  // namespace zellige
