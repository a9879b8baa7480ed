// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "zellige/manifest.h"

namespace zellige {
namespace {

constexpr const char* kWhere = "catalog.apply_rules";
constexpr double kSameAspect = 1.04;  // rounding sizes to whole patches moves aspect ratios by so much (480x832: 2.6%)

/// The rules' buckets as a catalog, swapped ones beside those of any orientation.
Catalog catalog_of(const BucketRules& rules, std::vector<std::string>& notes) {
  Catalog catalog{rules.model, {}};
  const auto add = [&](const RuleBucket& rule, const std::string& name, int height, int width) {
    const Tokens tokens = sequence_tokens(rules.model, rule.frames, height, width);
    if (rules.max_tokens && tokens > *rules.max_tokens) {
      notes.push_back("bucket " + in_quotes(name) + " has " + std::to_string(tokens.value) +
                      " tokens, above max_tokens " + std::to_string(rules.max_tokens->value) + ": left out");
      return;
    }
    if (catalog.find(name)) {
      throw Error(Code::input, kWhere, "two buckets of " + in_quotes(rules.path) + " are named " + in_quotes(name));
    }
    catalog.buckets.push_back({name, rule.kind, rule.frames, height, width, tokens});
  };
  for (const RuleBucket& rule : rules.buckets) {
    add(rule, rule.name, rule.height, rule.width);
    if (!rule.any_orientation || rule.height == rule.width) continue;
    add(rule, rule.name + (rule.height < rule.width ? "-portrait" : "-landscape"), rule.width, rule.height);
  }
  if (catalog.buckets.empty()) {
    throw Error(Code::input, kWhere,
                in_quotes(rules.path) + " leaves no bucket" + (notes.empty() ? "" : ": " + notes.back()));
  }
  return catalog;
}

/// Frames of a sample at the rules' rate. A higher rate than the sample's would invent frames, so it changes nothing.
int frames_at(const Sample& sample, std::optional<double> fps) {
  if (sample.kind == MediaKind::image || !fps || !sample.fps || *fps >= *sample.fps) return *sample.frames;
  // A hair more than the quotient: 81 frames at 24 fps are 54 at 16, not 53.999.
  return static_cast<int>(std::floor(*sample.frames * *fps / *sample.fps * (1 + 1e-12)));
}

/// How far two aspect ratios are apart: 1 when equal, else above.
double aspect_distance(const Bucket& bucket, double height, double width) {
  const double ratio = (height * bucket.width) / (width * bucket.height);
  return ratio < 1 ? 1 / ratio : ratio;
}

bool fills(const Sample& sample, int frames, const Bucket& bucket) {
  return bucket.kind == sample.kind && bucket.frames <= frames && bucket.height <= *sample.height &&
         bucket.width <= *sample.width;
}

BucketIndex bucket_for(const Catalog& catalog, const Sample& sample, int frames) {
  double closest = std::numeric_limits<double>::infinity();
  for (const Bucket& bucket : catalog.buckets) {
    if (fills(sample, frames, bucket)) {
      closest = std::min(closest, aspect_distance(bucket, *sample.height, *sample.width));
    }
  }
  const auto rank = [](const Bucket& bucket) {
    return std::pair(bucket.frames, static_cast<std::int64_t>(bucket.height) * bucket.width);
  };
  BucketIndex best = -1;
  for (std::size_t i = 0; i < catalog.buckets.size(); ++i) {
    const Bucket& bucket = catalog.buckets[i];
    if (!fills(sample, frames, bucket)) continue;
    const double distance = aspect_distance(bucket, *sample.height, *sample.width);
    if (distance > closest * kSameAspect) continue;
    if (best >= 0) {
      const Bucket& other = catalog.buckets[best];
      if (rank(bucket) < rank(other)) continue;
      if (rank(bucket) == rank(other) && distance >= aspect_distance(other, *sample.height, *sample.width)) continue;
    }
    best = static_cast<BucketIndex>(i);
  }
  return best;
}

/// As short as it says it: "16", "29.97".
std::string shortest(double value) {
  std::array<char, 32> buffer{};
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

std::string size_text(const Sample& sample) {
  return std::to_string(*sample.height) + "x" + std::to_string(*sample.width);
}

/// Why a usable sample fits nowhere.
std::string why_nowhere(const Catalog& catalog, const BucketRules& rules, const Sample& sample, int frames) {
  const std::string kind(name(sample.kind));
  int fewest = std::numeric_limits<int>::max();
  bool any = false;
  for (const Bucket& bucket : catalog.buckets) {
    if (bucket.kind != sample.kind) continue;
    any = true;
    fewest = std::min(fewest, bucket.frames);
  }
  if (!any) return "the rules have no " + kind + " bucket";
  if (frames < fewest) {
    std::string reason = std::to_string(*sample.frames) + " frames";
    if (frames != *sample.frames) {
      reason += " (" + std::to_string(frames) + " at " + shortest(*rules.fps) + " fps)";
    }
    return reason + " are fewer than those of every " + kind + " bucket: " + std::to_string(fewest) + " or more";
  }
  return "size " + size_text(sample) + " is below that of every " + kind + " bucket" +
         (sample.kind == MediaKind::video ? " of at most " + std::to_string(frames) + " frames" : "");
}

}  // namespace

BucketedSamples apply_rules(const Manifest& manifest, const BucketRules& rules) {
  BucketedSamples result;
  result.notes = rules.notes;
  result.catalog = catalog_of(rules, result.notes);
  result.count.assign(result.catalog.buckets.size(), 0);
  result.bucket_of.reserve(manifest.samples.size());
  result.skipped = manifest.skipped;
  for (const Sample& sample : manifest.samples) {
    BucketIndex bucket = -1;
    std::string reason = sample.why_unusable;
    if (sample.usable()) {
      const int frames = frames_at(sample, rules.fps);
      bucket = bucket_for(result.catalog, sample, frames);
      if (bucket < 0) reason = why_nowhere(result.catalog, rules, sample, frames);
    } else if (reason.empty()) {
      reason = "frames, height or width unknown";
    }
    result.bucket_of.push_back(bucket);
    if (bucket >= 0) {
      ++result.count[bucket];
      continue;
    }
    if (rules.on_unfit == OnUnfit::error) {
      throw Error(Code::input, kWhere,
                  in_quotes(manifest.path) + " row " + std::to_string(sample.row) + " (" + sample.path +
                      "): " + reason + "; rules " + in_quotes(rules.path) + " say on_unfit = \"error\"");
    }
    result.skipped.push_back({sample.row, sample.path, std::move(reason)});
  }
  std::stable_sort(result.skipped.begin(), result.skipped.end(),
                   [](const SkippedSample& a, const SkippedSample& b) { return a.row < b.row; });
  return result;
}

}  // namespace zellige
