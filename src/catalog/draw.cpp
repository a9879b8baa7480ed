// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/json.h"
#include "base/random.h"
#include "base/sha256.h"
#include "zellige/manifest.h"

namespace zellige {
namespace {

constexpr const char* kWhere = "catalog.BatchDrawer";
constexpr const char* kFormat = "zellige.draw";
constexpr int kVersion = 1;
constexpr std::int64_t kMillion = 1'000'000;  // shares are counted in millionths of a token: exact on every platform
constexpr std::int64_t kMostTokens = std::int64_t{1}
                                     << 40;  // of a batch or a sample: sums of millionths stay in 63 bits
constexpr int kMostRanks = 1 << 16;

/// Scatters seed, kind and epoch over 64 bits (SplitMix64's finalizer), so that neighbouring seeds share no stream.
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

/// The samples of one kind in shuffled order, epoch after epoch. A sample that does not fit is held back, and comes
/// before the ones after it; an epoch ends when none is held back any more, so each sample comes once an epoch.
class Stream {
 public:
  Stream(MediaKind kind, std::uint64_t seed, std::vector<std::int32_t> samples)
      : kind_(kind), seed_(seed), samples_(std::move(samples)) {
    shuffle_epoch();
  }

  bool empty() const { return samples_.empty(); }
  std::int64_t epoch() const { return epoch_; }
  BatchDrawer::Progress first_epoch() const {
    const std::size_t drawn = epoch_ > 0 ? samples_.size() : position_ - held_.size();
    return {static_cast<std::int64_t>(samples_.size()), static_cast<std::int64_t>(drawn)};
  }

  /// The next sample that fits; none when there is none among those held back and the next few.
  template <class Fits>
  std::optional<std::int32_t> find(Fits fits) {
    if (position_ == order_.size() && held_.empty()) {
      ++epoch_;
      position_ = 0;
      shuffle_epoch();
    }
    for (const std::int32_t sample : held_) {
      if (fits(sample)) return sample;
    }
    while (position_ < order_.size() && held_.size() < kMostHeld) {
      if (fits(order_[position_])) return order_[position_];
      held_.push_back(order_[position_++]);
    }
    return std::nullopt;
  }

  /// Takes what `find` found.
  void take(std::int32_t sample) {
    const auto held = std::find(held_.begin(), held_.end(), sample);
    if (held != held_.end()) {
      held_.erase(held);
    } else {
      ++position_;
    }
  }

  OrderedJson state() const { return {{"epoch", epoch_}, {"position", position_}, {"held", held_}}; }

  void restore(const JsonValue& value) {
    JsonObject object(value);
    epoch_ = object.at("epoch").integer(0);
    position_ = static_cast<std::size_t>(object.at("position").integer(0, static_cast<std::int64_t>(samples_.size())));
    shuffle_epoch();
    held_.clear();
    const JsonValue held = object.at("held");
    for (const JsonValue& item : held.array()) {
      const auto sample = static_cast<std::int32_t>(item.integer(0, std::numeric_limits<std::int32_t>::max()));
      const auto drawn = order_.begin() + static_cast<std::ptrdiff_t>(position_);
      if (std::find(order_.begin(), drawn, sample) == drawn) item.refuse("this epoch has not come to that sample");
      if (std::find(held_.begin(), held_.end(), sample) != held_.end()) item.refuse("it is held back twice");
      held_.push_back(sample);
    }
    if (held_.size() > kMostHeld) held.refuse("at most " + std::to_string(kMostHeld) + " samples are held back");
    object.finish();
  }

 private:
  static constexpr std::size_t kMostHeld = 32;

  void shuffle_epoch() {
    order_ = samples_;
    const std::uint64_t stream = mixed(mixed(seed_) + static_cast<std::uint64_t>(kind_));
    RandomEngine engine(mixed(stream + static_cast<std::uint64_t>(epoch_)));
    shuffle(order_, engine);
  }

  MediaKind kind_;
  std::uint64_t seed_;
  std::vector<std::int32_t> samples_;  // positions in the manifest, ascending
  std::vector<std::int32_t> order_;    // of this epoch
  std::size_t position_ = 0;
  std::vector<std::int32_t> held_;
  std::int64_t epoch_ = 0;
};

std::vector<std::int32_t> samples_of(MediaKind kind, const BucketedSamples& samples) {
  std::vector<std::int32_t> indices;
  for (std::size_t i = 0; i < samples.bucket_of.size(); ++i) {
    const BucketIndex bucket = samples.bucket_of[i];
    if (bucket >= 0 && samples.catalog.buckets[bucket].kind == kind) indices.push_back(static_cast<std::int32_t>(i));
  }
  return indices;
}

/// Changes when another sample is drawn, or the same one as another length.
std::string fingerprint(const Manifest& manifest, const BucketedSamples& samples) {
  std::string bytes;
  const auto append = [&](std::int64_t value) {
    for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(value >> shift & 0xFF);
  };
  for (std::size_t i = 0; i < samples.bucket_of.size(); ++i) {
    const BucketIndex bucket = samples.bucket_of[i];
    append(manifest.samples[i].row);
    append(bucket < 0 ? -1 : samples.catalog.buckets[bucket].tokens.value);
  }
  return sha256(bytes);
}

void check(const Manifest& manifest, const BucketedSamples& samples, const DrawOptions& options) {
  const auto refuse = [](const std::string& what) { throw Error(Code::input, kWhere, what); };
  if (options.ranks < 1 || options.ranks > kMostRanks) {
    refuse("ranks " + std::to_string(options.ranks) + " must be 1 to " + std::to_string(kMostRanks));
  }
  if (options.tokens_per_rank.value < 1 || options.tokens_per_rank.value > kMostTokens / options.ranks) {
    refuse("tokens per rank " + std::to_string(options.tokens_per_rank.value) + " must be 1 to " +
           std::to_string(kMostTokens / options.ranks) + " for " + std::to_string(options.ranks) + " ranks");
  }
  if (!(options.video_share >= 0 && options.video_share <= 1)) {
    refuse("video share " + std::to_string(options.video_share) + " must be between 0 and 1");
  }
  for (const Bucket& bucket : samples.catalog.buckets) {
    if (bucket.tokens.value > kMostTokens) {
      refuse("bucket " + in_quotes(bucket.name) + " has " + std::to_string(bucket.tokens.value) +
             " tokens; batches are drawn of up to " + std::to_string(kMostTokens));
    }
  }
  if (samples.bucket_of.size() != manifest.samples.size()) refuse("the bucketed samples belong to another manifest");
  if (manifest.samples.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    refuse("a manifest of more than 2^31 samples can't be drawn from");
  }
  for (std::size_t i = 1; i < manifest.samples.size(); ++i) {
    if (manifest.samples[i - 1].row < manifest.samples[i].row) continue;
    refuse("rows of the manifest must ascend; row " + std::to_string(manifest.samples[i].row) + " follows row " +
           std::to_string(manifest.samples[i - 1].row));
  }
}

}  // namespace

struct BatchDrawer::Position {
  Position(const Manifest& m, const BucketedSamples& s, const DrawOptions& o)
      : manifest(m),
        samples(s),
        options(o),
        share_millionths(std::llround(o.video_share * static_cast<double>(kMillion))),
        videos(MediaKind::video, o.seed, samples_of(MediaKind::video, s)),
        images(MediaKind::image, o.seed, samples_of(MediaKind::image, s)),
        samples_digest(fingerprint(m, s)) {
    // Where one kind is not there, the other fills the batch; unless only the missing one is wanted.
    const bool only_videos_wanted = share_millionths == kMillion;
    const bool only_images_wanted = share_millionths == 0;
    if (videos.empty() && images.empty()) refuse_empty("samples");
    if (only_videos_wanted && videos.empty()) refuse_empty("videos");
    if (only_images_wanted && images.empty()) refuse_empty("images");
    if (videos.empty()) share_millionths = 0;
    if (images.empty()) share_millionths = kMillion;
    for (const Bucket& bucket : s.catalog.buckets) {
      if (bucket.kind == MediaKind::video) longest_video = std::max(longest_video, bucket.tokens.value);
    }
  }

  [[noreturn]] void refuse_empty(const char* kind) const {
    throw Error(Code::input, kWhere,
                "nothing to draw from: " + in_quotes(manifest.path) + " has no " + std::string(kind) +
                    " in a bucket, and video share " + std::to_string(options.video_share) + " asks for them");
  }

  std::int64_t budget() const { return options.ranks * options.tokens_per_rank.value; }
  std::int64_t tokens_of(std::int32_t sample) const {
    return samples.catalog.buckets[samples.bucket_of[sample]].tokens.value;
  }

  void take(Stream& stream, std::int32_t index, Batch& batch) const {
    const Sample& sample = manifest.samples[index];
    std::string id = "r";
    id.append(std::to_string(sample.row));
    if (stream.epoch() > 0) id.append("e").append(std::to_string(stream.epoch()));
    batch.sequences.push_back({std::move(id), samples.bucket_of[index], sample.path});
    stream.take(index);
  }

  const Manifest& manifest;
  const BucketedSamples& samples;
  DrawOptions options;
  std::int64_t share_millionths;
  Stream videos;
  Stream images;
  std::string samples_digest;
  std::int64_t longest_video = 0;   // tokens
  std::int64_t due_millionths = 0;  // video tokens that the batches so far owe (or have had too many, when negative)
  std::int64_t step = 0;
};

BatchDrawer::BatchDrawer(const Manifest& manifest, const BucketedSamples& samples, const DrawOptions& options) {
  check(manifest, samples, options);
  position_ = std::make_unique<Position>(manifest, samples, options);
}
BatchDrawer::~BatchDrawer() = default;
BatchDrawer::BatchDrawer(BatchDrawer&&) noexcept = default;
BatchDrawer& BatchDrawer::operator=(BatchDrawer&&) noexcept = default;

Batch BatchDrawer::next() {
  Position& at = *position_;
  Batch batch;
  batch.ranks = at.options.ranks;
  batch.catalog = at.samples.catalog;
  const std::int64_t budget = at.budget();
  std::int64_t total = 0;
  std::int64_t video_tokens = 0;
  const bool videos_only = at.share_millionths == kMillion;
  const auto fits = [&](std::int32_t sample) {
    return total + at.tokens_of(sample) <= budget || batch.sequences.empty();
  };

  // One more video is taken when that brings the tokens in videos closer to what is due.
  const std::int64_t due = at.due_millionths + budget * at.share_millionths;
  while (at.share_millionths > 0) {
    const auto video = at.videos.find(fits);
    if (!video) break;
    const std::int64_t tokens = at.tokens_of(*video);
    const bool closer = 2 * (due - video_tokens * kMillion) >= tokens * kMillion;
    if (!closer && !videos_only) break;
    at.take(at.videos, *video, batch);
    total += tokens;
    video_tokens += tokens;
  }
  while (!videos_only) {
    const auto image = at.images.find(fits);
    if (!image) break;
    total += at.tokens_of(*image);
    at.take(at.images, *image, batch);
  }
  if (at.share_millionths > 0 && !videos_only) {
    // What can't be met because too few videos fit into a batch must not pile up.
    at.due_millionths = std::min(at.due_millionths + total * at.share_millionths - video_tokens * kMillion,
                                 std::max(budget, at.longest_video) * kMillion);
  }
  ++at.step;
  return batch;
}

BatchDrawer::Progress BatchDrawer::first_epoch() const {
  const Position& at = *position_;
  Progress progress;
  const auto count = [&](const Stream& stream) {
    progress.samples += stream.first_epoch().samples;
    progress.drawn += stream.first_epoch().drawn;
  };
  if (at.share_millionths > 0) count(at.videos);
  if (at.share_millionths < kMillion) count(at.images);
  return progress;
}

std::string BatchDrawer::state() const {
  const Position& at = *position_;
  const OrderedJson json = {{"format", kFormat},
                            {"version", kVersion},
                            {"samples", at.samples_digest},
                            {"ranks", at.options.ranks},
                            {"tokens_per_rank", at.options.tokens_per_rank.value},
                            {"video_share_millionths", at.share_millionths},
                            {"seed", std::to_string(at.options.seed)},
                            {"step", at.step},
                            {"due_millionths", at.due_millionths},
                            {"videos", at.videos.state()},
                            {"images", at.images.state()}};
  return pretty(json);
}

void BatchDrawer::restore(std::string_view state) {
  Position& at = *position_;
  const JsonDocument document = JsonDocument::from_text(std::string(state), "state of a drawer");
  JsonObject object(document.root());
  object.expect_format(kFormat, kVersion);
  const JsonValue samples = object.at("samples");
  if (samples.string() != at.samples_digest) samples.refuse("this drawer's samples have " + at.samples_digest);
  const auto same = [&](const char* field, std::int64_t here) {
    const JsonValue value = object.at(field);
    if (value.integer() != here) value.refuse("this drawer has " + std::to_string(here));
  };
  same("ranks", at.options.ranks);
  same("tokens_per_rank", at.options.tokens_per_rank.value);
  same("video_share_millionths", at.share_millionths);
  const JsonValue seed = object.at("seed");
  if (seed.string() != std::to_string(at.options.seed)) {
    seed.refuse("this drawer has " + std::to_string(at.options.seed));
  }
  const std::int64_t step = object.at("step").integer(0);
  constexpr std::int64_t kMostDue = 2 * kMostTokens * kMillion;
  const std::int64_t due = object.at("due_millionths").integer(-kMostDue, kMostDue);
  const JsonValue videos = object.at("videos");
  const JsonValue images = object.at("images");
  object.finish();
  Stream restored_videos = at.videos;  // both or neither
  Stream restored_images = at.images;
  restored_videos.restore(videos);
  restored_images.restore(images);
  at.videos = std::move(restored_videos);
  at.images = std::move(restored_images);
  at.step = step;
  at.due_millionths = due;
}

}  // namespace zellige
