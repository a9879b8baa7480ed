// SPDX-License-Identifier: Apache-2.0
// How long one rank takes to lower a step's placement: 64 ranks, 24 split and 4,000 whole sequences.
//   build/bench/lowering [bench/results/lowering.json]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "bench/result_file.h"
#include "zellige/schedule.h"

namespace {

using namespace zellige;

constexpr int kRanks = 64;
constexpr int kSplit = 24;
constexpr int kWhole = 4'000;
constexpr double kGoalUs = 5'000;

/// 720p and 1080p videos in every mix of axes up to degree 16, on rank sets that overlap; images everywhere.
Placement make_step(int waves, bool keep_kv) {
  constexpr Configuration kConfigurations[] = {{1, 4, 1}, {2, 4, 1}, {2, 2, 4}, {1, 4, 4}, {4, 4, 1}, {1, 2, 8},
                                               {1, 2, 1}, {4, 1, 4}, {1, 1, 8}, {2, 1, 1}, {8, 1, 2}, {1, 4, 2}};
  Placement step;
  step.ranks = kRanks;
  step.model = model_preset("wan2.1-t2v-1.3b");
  step.exec.waves = waves;
  step.exec.keep_kv = keep_kv;
  for (int i = 0; i < kSplit; ++i) {
    PlacedSequence video;
    video.id = std::string("v").append(std::to_string(i));
    video.bucket = "video";
    video.kind = MediaKind::video;
    video.tokens = {i % 2 == 0 ? 147'600 : 334'560};
    video.config = kConfigurations[i % std::size(kConfigurations)];
    for (int r = 0; r < video.config.degree(); ++r) video.ranks.push_back((7 * i + 3 * r) % kRanks);
    step.sequences.push_back(video);
  }
  constexpr std::int64_t kImages[] = {8'160, 3'600, 1'560, 256};
  for (int i = 0; i < kWhole; ++i) {
    PlacedSequence image;
    image.id = std::string("i").append(std::to_string(i));
    image.bucket = "image";
    image.tokens = {kImages[i % std::size(kImages)]};
    image.ranks = {i * 5 % kRanks};
    step.sequences.push_back(image);
  }
  return step;
}

/// Median of a few runs.
double lower_us(const Placement& step, Rank rank, std::size_t& pieces) {
  std::vector<double> us;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    const Schedule schedule = lower(step, rank);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    us.push_back(took.count());
    pieces = 0;
    for (const auto* list : {&schedule.forward, &schedule.backward}) {
      for (const Exchange& exchange : *list) pieces += exchange.sends.size() + exchange.receives.size();
    }
  }
  std::nth_element(us.begin(), us.begin() + 2, us.end());
  return us[2];
}

nlohmann::ordered_json measure(int waves, bool keep_kv) {
  const Placement step = make_step(waves, keep_kv);
  std::vector<double> us;
  std::size_t most_pieces = 0;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    std::size_t pieces = 0;
    us.push_back(lower_us(step, rank, pieces));
    most_pieces = std::max(most_pieces, pieces);
  }
  std::sort(us.begin(), us.end());
  return {{"ranks", kRanks},
          {"split_sequences", kSplit},
          {"whole_sequences", kWhole},
          {"waves", waves},
          {"keep_kv", keep_kv},
          {"most_pieces_a_rank", most_pieces},
          {"median_rank_us", us[us.size() / 2]},
          {"slowest_rank_us", us.back()},
          {"goal_us", kGoalUs},
          {"met", us.back() <= kGoalUs}};
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "bench/results/lowering.json";
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const int waves : {1, 4}) {
    for (const bool keep_kv : {true, false}) {
      rows.push_back(measure(waves, keep_kv));
      const auto& row = rows.back();
      std::printf("waves %d keep_kv %d: median rank %.0f us, slowest rank %.0f us, goal %.0f us\n", waves, keep_kv,
                  row["median_rank_us"].get<double>(), row["slowest_rank_us"].get<double>(), kGoalUs);
    }
  }
  zellige::bench::write_results(path, "lowering", zellige::bench::host_cpu(), "build/bench/lowering " + path, rows);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "lowering: %s\n", error.what());
  return 1;
}
