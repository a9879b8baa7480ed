// SPDX-License-Identifier: Apache-2.0
// How well a profile predicts steps: the paper's 21 compositions (section V-B) run for real, forward and backward, and
// compared with the additive model, for time and for memory.
//   profile_accuracy PROFILE MEASUREMENTS RESULTS [--threads N] [--videos A,B,C] [--images A:n,B:n] [--runs R]
//                    [--depth D] [--text-dim T] [--commit HASH]
// PROFILE and MEASUREMENTS are what `zellige profile -o PROFILE --json > MEASUREMENTS` wrote on this machine. Without
// --threads it is one of the processes that torchrun started. RESULTS/profile_accuracy.json and memory_accuracy.json.
//
// Each of 18 mixed plans has one video of each of three buckets and the same images; the videos' configurations are a
// rotation of all that split over the ranks, so that every bucket meets every one; where there are fewer than 18 such
// plans, further combinations follow. The last three are all whole: images alone, and with three videos of the first
// and of the second bucket. Images go whole to the least loaded rank, longest first.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <numeric>
#include <sstream>
#include <string>

#include "bench/result_file.h"
#include "zellige/env.h"
#include "zellige/process_group.h"
#include "zellige/score.h"
#include "zellige/step_timer.h"
#include "zellige/thread_ranks.h"

namespace {

using namespace zellige;

struct Arguments {
  std::string profile, measurements, results, commit, videos, images, command;
  int threads = 0, runs = 2, depth = 0, text_dim = 4096;
};

struct Composition {
  std::string name;
  std::vector<std::pair<BucketIndex, Configuration>> videos;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

BucketIndex bucket_of(const Catalog& catalog, const std::string& name) {
  const auto found = catalog.find(name);
  if (!found) throw std::invalid_argument("the profile has no bucket '" + name + "'");
  return *found;
}

std::vector<Composition> compositions(const Profile& profile, const std::vector<BucketIndex>& videos, int ranks) {
  const Tokens shortest = profile.catalog.buckets[static_cast<std::size_t>(videos.front())].tokens;
  std::vector<Configuration> split_configs;
  for (const Configuration& c : menu(profile.catalog.model, shortest, ranks, Menu::powers_of_two)) {
    if (!c.is_whole()) split_configs.push_back(c);
  }
  const std::size_t n = split_configs.size();
  std::vector<Composition> all;
  const auto add = [&](const std::vector<std::size_t>& choice) {
    Composition composition;
    for (std::size_t v = 0; v < videos.size(); ++v) {
      composition.videos.push_back({videos[v], split_configs[choice[v]]});
      if (v > 0) composition.name.append(1, ' ');
      composition.name.append(text(split_configs[choice[v]]));
    }
    const auto same = std::ranges::find(all, composition.name, &Composition::name);
    if (same == all.end() && all.size() < 18) all.push_back(std::move(composition));
  };
  const std::size_t step = std::max<std::size_t>(1, n / 3);
  for (std::size_t i = 0; i < n; ++i) add({i, (i + step) % n, (i + 2 * step) % n});
  for (std::size_t i = 0; i < n * n * n; ++i) add({i % n, i / n % n, i / n / n});
  all.push_back({"images alone", {}});
  for (const std::size_t v : {0u, 1u}) {
    Composition whole;
    whole.name = "whole 3 x " + profile.catalog.buckets[static_cast<std::size_t>(videos[v])].name;
    whole.videos.assign(3, {videos[v], Configuration{}});
    all.push_back(std::move(whole));
  }
  return all;
}

class Placer {
 public:
  Placer(const Profile& profile, int ranks) : profile_(profile), load_(static_cast<std::size_t>(ranks)) {
    placement_.ranks = ranks;
    placement_.model = profile.catalog.model;
  }

  /// On the neighbouring ranks whose most loaded one is the least so.
  void add(BucketIndex bucket, Configuration config) {
    const Bucket& b = profile_.catalog.buckets[static_cast<std::size_t>(bucket)];
    const auto degree = static_cast<std::size_t>(config.degree());
    std::size_t best = 0;
    std::int64_t best_load = -1;
    for (std::size_t first = 0; first + degree <= load_.size(); first += degree) {
      const std::int64_t load = *std::max_element(load_.begin() + static_cast<std::ptrdiff_t>(first),
                                                  load_.begin() + static_cast<std::ptrdiff_t>(first + degree));
      if (best_load < 0 || load < best_load) {
        best = first;
        best_load = load;
      }
    }
    PlacedSequence sequence;
    sequence.id = "s";
    sequence.id.append(std::to_string(placement_.sequences.size()));
    sequence.bucket = b.name;
    sequence.kind = b.kind;
    sequence.tokens = b.tokens;
    sequence.config = config;
    const std::int64_t price = profile_.find(bucket, config)->time.value;
    for (std::size_t r = best; r < best + degree; ++r) {
      sequence.ranks.push_back(static_cast<Rank>(r));
      load_[r] += price;
    }
    placement_.sequences.push_back(std::move(sequence));
  }
  const Placement& placement() const { return placement_; }

 private:
  const Profile& profile_;
  std::vector<std::int64_t> load_;
  Placement placement_;
};

struct Errors {
  double absolute = 0, relative = 0, signed_relative = 0;
  int count = 0;
  void add(double predicted, double measured) {
    absolute += std::abs(predicted - measured);
    relative += std::abs(predicted / measured - 1);
    signed_relative += predicted / measured - 1;
    ++count;
  }
  double mae() const { return absolute / count; }
  double mape() const { return 100 * relative / count; }
  double bias() const { return 100 * signed_relative / count; }
};

/// What the analytical model, which nothing was measured for, says that the fullest rank needs.
std::int64_t analytical_need(const Placement& placement, const Catalog& catalog, const MemoryOptions& options) {
  std::vector<std::int64_t> need(static_cast<std::size_t>(placement.ranks));
  for (const PlacedSequence& sequence : placement.sequences) {
    const std::int64_t bytes = memory_terms(catalog.model, sequence.tokens, sequence.config, options).total().value;
    for (const Rank r : sequence.ranks) need[static_cast<std::size_t>(r)] += bytes;
  }
  return *std::ranges::max_element(need) + step_workspace(catalog.model, options).value;
}

void run(const Arguments& a, Rank rank, c10::intrusive_ptr<c10d::ProcessGroup> group, at::Device device) {
  const Profile profile = read_profile(a.profile);
  std::ifstream file(a.measurements);
  const nlohmann::json measured = nlohmann::json::parse(file);
  const int ranks = group->getSize();
  const int layers = profile.catalog.model.layers;
  const double share = a.depth > 0 ? static_cast<double>(a.depth) / layers : 1;
  // What the runs here have of a step's own cost.
  const double base_us =
      share * (static_cast<double>(profile.step_base.value) - measured.at("gradient_sync_us").get<double>() -
               measured.at("optimizer_us").get<double>());

  std::vector<BucketIndex> videos;
  for (const std::string& name : split(a.videos, ',')) videos.push_back(bucket_of(profile.catalog, name));
  if (videos.size() != 3) throw std::invalid_argument("--videos names three buckets");
  std::vector<std::pair<BucketIndex, int>> images;
  for (const std::string& part : split(a.images, ',')) {
    const auto words = split(part, ':');
    images.push_back({bucket_of(profile.catalog, words.at(0)), std::stoi(words.at(1))});
  }
  std::ranges::sort(images, [&](const auto& x, const auto& y) {
    return profile.catalog.buckets[static_cast<std::size_t>(x.first)].tokens >
           profile.catalog.buckets[static_cast<std::size_t>(y.first)].tokens;
  });

  WanTransformer::Options options{.parameters = profile.key.precision == "fp64" ? at::kDouble : at::kFloat,
                                  .compute = profile.key.precision == "fp64"   ? at::kDouble
                                             : profile.key.precision == "bf16" ? at::kBFloat16
                                                                               : at::kFloat,
                                  .device = device};
  EngineOptions engine;
  engine.flash_attention_3 = Env::from_process().flash_attention_3.value_or("");
  StepTimer timer(group, wan_config(profile.catalog.model, a.text_dim), options, a.depth, profile.key.checkpointing,
                  engine);
  nlohmann::ordered_json time_rows = nlohmann::ordered_json::array(), memory_rows = nlohmann::ordered_json::array();
  Errors additive, hidden, memory, need_only, analytical;
  for (const Composition& composition : compositions(profile, videos, ranks)) {
    Placer placer(profile, ranks);
    for (const auto& [bucket, config] : composition.videos) placer.add(bucket, config);
    for (const auto& [bucket, count] : images) {
      for (int i = 0; i < count; ++i) placer.add(bucket, {});
    }
    const Score scored = score(placer.placement(), profile);
    double without_exchange = 0;
    for (std::size_t r = 0; r < scored.load.size(); ++r) {
      without_exchange =
          std::max(without_exchange, static_cast<double>(scored.load[r].value - scored.exchange[r].value));
    }
    timer.begin(placer.placement(), profile.catalog);
    StepTimer::Run best = timer.run();
    for (int i = 0; i < a.runs; ++i) {
      const StepTimer::Run again = timer.run();
      if (i == 0 || again.seconds < best.seconds) best = again;
    }
    const double step_us = best.seconds * 1e6;
    const double predicted_us = share * static_cast<double>(scored.makespan.value) + base_us;
    const double hidden_us = share * without_exchange + base_us;
    additive.add(predicted_us, step_us);
    hidden.add(hidden_us, step_us);
    std::int64_t need = 0;
    for (const Bytes bytes : scored.memory) need = std::max(need, bytes.value);
    const double base = static_cast<double>(profile.memory_base.value);
    const double peak = static_cast<double>(best.most_bytes);
    const MemoryOptions memory_options{.checkpointing = profile.key.checkpointing,
                                       .element_bytes = static_cast<int>(c10::elementSize(options.compute)),
                                       .text_dim = a.text_dim};
    const std::int64_t uncalibrated = analytical_need(placer.placement(), profile.catalog, memory_options);
    if (share == 1) {
      analytical.add(static_cast<double>(uncalibrated), peak);
      memory.add(base + static_cast<double>(need), base + peak);
      need_only.add(static_cast<double>(need), peak);
    }
    time_rows.push_back({{"composition", composition.name},
                         {"measured_us", std::llround(step_us)},
                         {"predicted_us", std::llround(predicted_us)},
                         {"predicted_exchange_hidden_us", std::llround(hidden_us)},
                         {"error", predicted_us / step_us - 1}});
    memory_rows.push_back({{"composition", composition.name},
                           {"measured_need_bytes", best.most_bytes},
                           {"predicted_need_bytes", need},
                           {"analytic_need_bytes", uncalibrated},
                           {"base_bytes", profile.memory_base.value}});
    if (rank == 0) {
      std::printf(
          "%-26s %9.3f s measured, %9.3f s predicted (%+.2f%%); need %7.3f GiB measured, %7.3f predicted (%+.1f%%), "
          "%7.3f by the analytical model (%+.1f%%)\n",
          composition.name.c_str(), best.seconds, predicted_us / 1e6, 100 * (predicted_us / step_us - 1),
          peak / (1 << 30), static_cast<double>(need) / (1 << 30), 100 * (static_cast<double>(need) / peak - 1),
          static_cast<double>(uncalibrated) / (1 << 30), 100 * (static_cast<double>(uncalibrated) / peak - 1));
      std::fflush(stdout);
    }
  }
  if (rank != 0) return;
  const auto summary = [](const char* what, const Errors& errors, double unit, const char* unit_name) {
    std::printf("%s: MAE %.4f %s, MAPE %.2f%%, bias %+.2f%%\n", what, errors.mae() / unit, unit_name, errors.mape(),
                errors.bias());
  };
  summary("step, additive model", additive, 1e6, "s");
  summary("step, exchanges hidden", hidden, 1e6, "s");
  if (share == 1) summary("peak with the base", memory, 1 << 30, "GiB");
  if (share == 1) summary("need alone", need_only, 1 << 30, "GiB");
  if (share == 1) summary("need alone, analytical model", analytical, 1 << 30, "GiB");
  time_rows.push_back({{"composition", "all"},
                       {"mae_us", additive.mae()},
                       {"mape", additive.mape() / 100},
                       {"exchange_hidden_mape", hidden.mape() / 100},
                       {"depth", a.depth > 0 ? a.depth : layers},
                       {"videos", a.videos},
                       {"images", a.images}});
  bench::write_results(a.results + "/profile_accuracy.json", "profile_accuracy", profile.key.device, a.command,
                       time_rows, a.commit);
  if (share != 1) return;
  memory_rows.push_back({{"composition", "all"},
                         {"mae_bytes", memory.mae()},
                         {"mape", memory.mape() / 100},
                         {"need_mape", need_only.mape() / 100},
                         {"analytic_need_mape", analytical.mape() / 100}});
  bench::write_results(a.results + "/memory_accuracy.json", "memory_accuracy", profile.key.device, a.command,
                       memory_rows, a.commit);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) throw std::invalid_argument("use profile_accuracy PROFILE MEASUREMENTS RESULTS [options]");
  Arguments a{.profile = argv[1], .measurements = argv[2], .results = argv[3]};
  a.command = "build/bench/profile_accuracy";
  for (int i = 1; i < argc; ++i) a.command.append(" ").append(argv[i]);
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--threads")
      a.threads = std::stoi(value);
    else if (option == "--videos")
      a.videos = value;
    else if (option == "--images")
      a.images = value;
    else if (option == "--runs")
      a.runs = std::stoi(value);
    else if (option == "--depth")
      a.depth = std::stoi(value);
    else if (option == "--text-dim")
      a.text_dim = std::stoi(value);
    else if (option == "--commit")
      a.commit = value;
    else
      throw std::invalid_argument("no option " + option);
  }
  if (a.threads == 0) {
    const WorldGroup world = join_world(Env::from_process());
    run(a, world.rank, world.group, world.device);
    return 0;
  }
  ThreadRankOptions options;
  options.timeout = std::chrono::minutes(10);
  run_thread_ranks(
      a.threads,
      [&](Rank rank, c10::intrusive_ptr<c10d::ProcessGroup> group) { run(a, rank, std::move(group), at::kCPU); },
      options);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "profile_accuracy: %s\n", error.what());
  return 1;
}
