// SPDX-License-Identifier: Apache-2.0
// Writes a CSV manifest of a million rows in Open-Sora's form, then reads it, cuts it to buckets and sums it up.
// Usage: catalog_manifest [RESULT.json [ROWS]]   (default bench/results/catalog_manifest.json, 1000000)
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "bench/result_file.h"
#include "zellige/manifest.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kGoalSeconds = 5;
constexpr double kGoalBytes = 1024.0 * 1024 * 1024;

std::int64_t microseconds(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

// Images and clips of the sizes of public sets; every 97th row has no frame count, every 89th a fraction.
void write_manifest(const std::string& path, int rows) {
  constexpr std::array<std::array<int, 2>, 5> kSizes = {
      {{720, 1280}, {480, 832}, {1080, 1920}, {1024, 1024}, {512, 910}}};
  std::ofstream file(path);
  file << "path,text,num_frames,height,width,aspect_ratio,resolution,fps\n";
  for (int i = 0; i < rows; ++i) {
    const auto [height, width] = kSizes[i % kSizes.size()];
    const bool image = i % 4 != 0;
    std::string frames = image ? "1.0" : std::to_string(16 + i % 300) + ".0";
    if (i % 97 == 0) frames = "";
    if (i % 89 == 0) frames = "33.5";
    file << "clips/part_" << i % 1000 << "/sample_" << i << (image ? ".jpg" : ".mp4")
         << ",\"A street in the evening, seen from a \"\"slow\"\" tram that turns left\"," << frames << ',' << height
         << ".0," << width << ".0," << static_cast<double>(height) / width << ',' << height * width << ".0,"
         << (image ? "" : "30000/1001") << '\n';
  }
}

constexpr const char* kRules = R"([model]
preset = "wan2.1-t2v-1.3b"
[[bucket]]
name = "256p"
kind = "image"
size = [256, 256]
[[bucket]]
name = "480p"
kind = "image"
size = [480, 832]
orientation = "any"
[[bucket]]
name = "720p"
kind = "image"
size = [720, 1280]
orientation = "any"
[[bucket]]
name = "1024"
kind = "image"
size = [1024, 1024]
[[bucket]]
name = "480p-1s"
kind = "video"
size = [480, 832]
frames = 17
orientation = "any"
[[bucket]]
name = "480p-5s"
kind = "video"
size = [480, 832]
frames = 81
orientation = "any"
[[bucket]]
name = "720p-5s"
kind = "video"
size = [720, 1280]
frames = 81
[[bucket]]
name = "480p-10s"
kind = "video"
size = [480, 832]
frames = 161
[sampling]
fps = 16
)";

}  // namespace

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  const std::string result = argc > 1 ? argv[1] : "bench/results/catalog_manifest.json";
  const int num_rows = argc > 2 ? std::atoi(argv[2]) : 1'000'000;
  const fs::path folder = fs::temp_directory_path() / "zellige_bench_catalog_manifest";
  fs::create_directories(folder);
  const std::string csv = folder / "manifest.csv";
  const std::string toml = folder / "rules.toml";
  write_manifest(csv, num_rows);
  std::ofstream(toml) << kRules;

  const auto begin = Clock::now();
  const zellige::Manifest manifest = zellige::read_manifest(csv);
  const auto read = Clock::now();
  const zellige::BucketedSamples samples = zellige::apply_rules(manifest, zellige::read_rules(toml));
  const auto bucketed = Clock::now();
  std::int64_t used = 0, tokens = 0;
  for (std::size_t b = 0; b < samples.count.size(); ++b) {
    used += samples.count[b];
    tokens += samples.count[b] * samples.catalog.buckets[b].tokens.value;
  }
  const auto end = Clock::now();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const std::int64_t peak_bytes = std::int64_t{usage.ru_maxrss} * 1024;
  const double seconds = std::chrono::duration<double>(end - begin).count();

  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  rows.push_back({{"rows", num_rows},
                  {"file_bytes", fs::file_size(csv)},
                  {"read_us", microseconds(read - begin)},
                  {"bucket_us", microseconds(bucketed - read)},
                  {"total_us", microseconds(end - begin)},
                  {"peak_rss_bytes", peak_bytes},
                  {"used", used},
                  {"skipped", samples.skipped.size()},
                  {"tokens", tokens},
                  {"goal_us", static_cast<std::int64_t>(kGoalSeconds * 1e6)},
                  {"goal_rss_bytes", static_cast<std::int64_t>(kGoalBytes)}});
  fs::remove_all(folder);
  zellige::bench::write_results(result, "catalog_manifest", zellige::bench::host_cpu(),
                                "build/bench/catalog_manifest " + result + (argc > 2 ? " " + std::string(argv[2]) : ""),
                                rows);
  std::printf("%d rows: read in %.2f s, cut to buckets in %.2f s, together %.2f s, %.0f MiB at most; %s\n", num_rows,
              std::chrono::duration<double>(read - begin).count(),
              std::chrono::duration<double>(bucketed - read).count(), seconds,
              static_cast<double>(peak_bytes) / 1048576, result.c_str());
  std::printf("used %lld, skipped %zu\n", static_cast<long long>(used), samples.skipped.size());
  const bool complete = used + static_cast<std::int64_t>(samples.skipped.size()) == num_rows;
  if (!complete) std::printf("rows are missing\n");
  return complete ? 0 : 1;
}
