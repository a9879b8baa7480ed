// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
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
  std::optional<int> frames;  ///< 1 for images; the nearest integer of fps x seconds where only those are given
  std::optional<int> height;  ///< pixels
  std::optional<int> width;   ///< pixels
  std::optional<double> fps;
  std::optional<double> seconds;  ///< duration, where the description states one
  std::int64_t row = 0;           ///< record in the manifest, from 1; header and blank lines are not counted
  std::string why_unusable;       ///< what is unknown and which column would say it; empty when usable

  bool usable() const { return frames && height && width; }
};

/// A sample that can't be used, and why, in words that name the column and its value.
struct SkippedSample {
  std::int64_t row = 0;
  std::string path;  ///< empty when that is what is wrong
  std::string reason;
};

struct Manifest {
  std::string path;
  std::string format;                  ///< which convention it follows, one of manifest_formats()
  std::vector<Sample> samples;         ///< every row that describes a sample, usable or not, in order
  std::vector<SkippedSample> skipped;  ///< rows that describe none: blank, broken, or with a value that can't be
};

struct ManifestOptions {
  std::string format;                 ///< one of manifest_formats(); empty: found out from the file
  std::optional<int> assumed_height;  ///< size given to videos and images whose row has none; both or neither
  std::optional<int> assumed_width;
  std::optional<double> assumed_fps;  ///< rate given to videos whose row has none, to count frames from seconds
};

/// Reads a manifest: Open-Sora, MiraData, VideoTuna, OpenVid, Koala-36M, FastVideo, VideoX-Fun, WebVid, DiffSynth, or
/// records with the usual column names; as CSV, JSON list, JSON lines or Parquet, told by the file's content.
/// A list of "folder,file" lines (FastVideo's merge file) is read as the files it names, rows counted through.
/// One wrong row never stops the reading: it is in `skipped`. Errors: Code::input naming the file and what is wrong
/// with the whole of it: missing, empty, a directory, unknown or duplicate columns, not CSV / JSON / Parquet.
Manifest read_manifest(const std::string& path, const ManifestOptions& options = {});
std::vector<std::string> manifest_formats();

/// One size of the rules.
struct RuleBucket {
  std::string name;
  MediaKind kind = MediaKind::image;
  int height = 0;
  int width = 0;
  int frames = 1;
  bool any_orientation = false;  ///< also takes samples of swapped height and width (as a second bucket)
};
enum class OnUnfit { skip, error };
/// Bucket rules, from rules.toml or a musubi-tuner dataset file.
struct BucketRules {
  std::string path;
  ModelGeometry model;
  std::vector<RuleBucket> buckets;
  std::optional<double> fps;         ///< videos are resampled to this rate before their frames are counted
  double video_share = 0.5;          ///< part of a batch's tokens in videos
  std::optional<Tokens> max_tokens;  ///< buckets longer than this are left out
  OnUnfit on_unfit = OnUnfit::skip;
  std::vector<std::string> notes;  ///< what the file says and is read otherwise (musubi-tuner's 79 frames as 77)
};

/// Reads rules. A musubi-tuner file names no model: it is read for Wan2.1 1.3B.
/// Errors: Code::input, naming file, table, key and value.
BucketRules read_rules(const std::string& path);

/// A data set cut to buckets: `bucket_of[i]` is the bucket of manifest.samples[i], or -1 with a reason in `skipped`.
struct BucketedSamples {
  Catalog catalog;
  std::vector<BucketIndex> bucket_of;
  std::vector<std::int64_t> count;     ///< samples a bucket
  std::vector<SkippedSample> skipped;  ///< of the manifest and of the rules, by row; never silently fewer
  std::vector<std::string> notes;      ///< those of the rules, and which buckets max_tokens left out
};

/// Gives every usable sample a bucket of its kind that it fills: no upscaling (the bucket is at most as high and as
/// wide) and no invented frames. Of those: the closest aspect ratio, where all within 4% of the closest count as equal
/// because sizes are rounded to whole patches; then the most frames; then the most pixels.
/// Frames are counted at the rules' rate where rules and sample state one, else as they are.
/// Errors: Code::input when on_unfit is error and a sample is unusable or fits nowhere.
BucketedSamples apply_rules(const Manifest& manifest, const BucketRules& rules);

struct DrawOptions {
  int ranks = 1;
  Tokens tokens_per_rank;
  double video_share = 0.5;  ///< of the batch's tokens, 0..1
  std::uint64_t seed = 0;
};

/// Draws batches from bucketed samples, each sample once an epoch of its kind (videos and images have epochs of their
/// own, as the wanted share may differ from the data set's). Deterministic in the seed on every platform.
/// Samples come in shuffled order; one that no longer fits waits for the next batch, and up to 32 after it are tried.
/// One more video is taken while that brings the tokens in videos closer to what is due; what a batch has too many or
/// too few is settled by the next ones, so the share holds over a run although videos are long (as far as videos fit
/// into a batch at all). Images fill the rest. Where the data has one kind only, or the share is 0 or 1, one kind fills
/// the whole batch. Manifest and samples must outlive the drawer. Threads: one at a time.
class BatchDrawer {
 public:
  /// Errors: Code::input for options out of range, or when no sample of a wanted kind is there at all.
  BatchDrawer(const Manifest& manifest, const BucketedSamples& samples, const DrawOptions& options);
  ~BatchDrawer();
  BatchDrawer(BatchDrawer&&) noexcept;
  BatchDrawer& operator=(BatchDrawer&&) noexcept;

  /// Draws the next batch: videos, then images, as drawn. Ids are "r<row>", from the second epoch on "r<row>e<epoch>":
  /// unique in the whole run. Never exceeds ranks x tokens_per_rank unless one sample alone does (it then comes alone).
  Batch next();

  /// How far the first epoch of the kinds that are drawn from has come.
  struct Progress {
    std::int64_t samples = 0;
    std::int64_t drawn = 0;  ///< of these, at least once
  };
  Progress first_epoch() const;

  /// The drawer's place in the stream as JSON text, and back: the batches after `restore` are those after `state`.
  /// Errors: Code::input for a state of other samples or options, or that is none.
  std::string state() const;
  void restore(std::string_view state);

 private:
  struct Position;
  std::unique_ptr<Position> position_;
};

}  // namespace zellige
