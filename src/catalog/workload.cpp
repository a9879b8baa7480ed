// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/json.h"
#include "zellige/batch.h"
#include "zellige/error.h"

namespace zellige {
namespace {

// docs/design/evaluation.md, "Workloads" (the paper's section V-A; our reading where it is silent).
struct Suite {
  std::string_view name;
  int ranks;
  std::int64_t tokens_per_rank;  // B
  int video_frames;
  std::string_view duration;
};
constexpr std::array kSuites = {Suite{"high", 8, 350'000, 161, "10s"}, Suite{"low", 8, 125'000, 161, "10s"},
                                Suite{"a800x16", 16, 350'000, 241, "15s"}, Suite{"a6000x32", 32, 175'000, 241, "15s"}};
constexpr int kMostRanks = 1 << 16;

struct Resolution {
  const char* name;
  int height, width;
};
constexpr std::array kResolutions = {Resolution{"256p", 256, 256}, Resolution{"480p", 480, 832},
                                     Resolution{"720p", 720, 1280}, Resolution{"1080p", 1088, 1920}};
constexpr int kNumImages = 4;  // buckets 0..3 of the catalog, smallest first; the three videos follow

Catalog suite_catalog(const Suite& suite) {
  Catalog catalog{model_preset("wan2.1-t2v-1.3b"), {}};
  for (const auto& [name, height, width] : kResolutions) {
    catalog.buckets.push_back(
        {name, MediaKind::image, 1, height, width, sequence_tokens(catalog.model, 1, height, width)});
  }
  for (int i = 1; i < kNumImages; ++i) {
    const auto& [name, height, width] = kResolutions[i];
    catalog.buckets.push_back({std::string(name).append(suite.duration), MediaKind::video, suite.video_frames, height,
                               width, sequence_tokens(catalog.model, suite.video_frames, height, width)});
  }
  return catalog;
}

/// Sequences a bucket of the suite's catalog, for `total` tokens of which `video` are wanted in videos.
std::vector<std::int64_t> suite_counts(const Catalog& catalog, std::int64_t total, std::int64_t video) {
  std::vector<std::int64_t> counts(catalog.buckets.size(), 0);
  const auto length = [&](std::size_t bucket) { return catalog.buckets[bucket].tokens.value; };

  std::int64_t remaining = video;
  for (bool added = true; added;) {
    added = false;
    for (std::size_t bucket = counts.size(); bucket-- > kNumImages;) {
      if (remaining < length(bucket) - length(kNumImages) / 2) continue;
      ++counts[bucket];
      remaining -= length(bucket);
      added = true;
    }
  }

  const std::int64_t images = std::max<std::int64_t>(0, total - (video - remaining));
  std::int64_t left = images;
  for (std::size_t bucket = 0; bucket < kNumImages; ++bucket) {
    counts[bucket] = images / (kNumImages * length(bucket));
    left -= counts[bucket] * length(bucket);
  }
  counts[0] += left / length(0);
  return counts;
}

[[noreturn]] void refuse(std::string_view workload_name, const std::string& expected) {
  throw Error(Code::input, "catalog.make_workload",
              "workload " + in_quotes(workload_name) + " is not one; " + expected);
}

}  // namespace

std::vector<std::string> workload_suites() {
  std::vector<std::string> names;
  for (const Suite& suite : kSuites) names.emplace_back(suite.name);
  return names;
}

Batch make_workload(std::string_view workload_name, int ranks) {
  const std::string expected = "write SUITE:Vxx with SUITE one of " + joined(workload_suites()) +
                               " and xx the videos' share of the tokens in per cent, e.g. high:V50";
  const auto colon = workload_name.find(':');
  const std::string_view suite_name = workload_name.substr(0, colon);
  const auto suite = std::find_if(kSuites.begin(), kSuites.end(), [&](const Suite& s) { return s.name == suite_name; });
  if (colon == std::string_view::npos || suite == kSuites.end()) refuse(workload_name, expected);
  const std::string_view share = workload_name.substr(colon + 1);
  int per_cent = -1;
  const char* end = share.data() + share.size();
  if (share.size() < 2 || share[0] != 'V') refuse(workload_name, expected);
  const auto [stop, status] = std::from_chars(share.data() + 1, end, per_cent);
  if (status != std::errc() || stop != end || per_cent < 0 || per_cent > 100) refuse(workload_name, expected);
  if (ranks < 0 || ranks > kMostRanks) {
    throw Error(
        Code::input, "catalog.make_workload",
        "ranks " + std::to_string(ranks) + " must be 1 to " + std::to_string(kMostRanks) + ", or 0 for the suite's");
  }

  Batch batch;
  batch.ranks = ranks == 0 ? suite->ranks : ranks;
  batch.catalog = suite_catalog(*suite);
  const std::int64_t total = batch.ranks * suite->tokens_per_rank;
  const auto counts = suite_counts(batch.catalog, total, total / 100 * per_cent);  // budgets are multiples of 100
  std::int64_t num_videos = 0;
  std::int64_t num_images = 0;
  for (std::size_t bucket = counts.size(); bucket-- > 0;) {  // videos, longest first, then images, largest first
    for (std::int64_t i = 0; i < counts[bucket]; ++i) {
      std::string id = bucket >= kNumImages ? "v" : "i";
      id.append(std::to_string(bucket >= kNumImages ? num_videos++ : num_images++));
      batch.sequences.push_back({std::move(id), static_cast<BucketIndex>(bucket), ""});
    }
  }
  return batch;
}

}  // namespace zellige
