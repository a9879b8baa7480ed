// SPDX-License-Identifier: Apache-2.0
#include "zellige/step_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "calibrate/assemble.h"
#include "calibrate/collective.h"
#include "calibrate/measurement.h"
#include "calibrate/memory_meter.h"
#include "calibrate/points.h"
#include "zellige/error.h"
#include "zellige/process_group.h"
#include "zellige/thread_ranks.h"

namespace zellige {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWholeDepth = 2;        // models of so few blocks are measured whole
constexpr double kCheckShare = 0.2;   // of the budget that checks against all blocks may take
constexpr double kFixedShare = 0.05;  // of the budget that one run of fixed costs may take

/// One point that is to be measured, and how long a run of it is expected to take.
struct Wanted {
  Bucket bucket;  ///< one of this length
  Configuration config;
  double expected_us = 0;
};

WanTransformer::Options precision_of(const std::string& name, at::Device device) {
  if (name == "fp64") return {.parameters = at::kDouble, .compute = at::kDouble, .device = device};
  if (name != "fp32" && name != "bf16") {
    throw Error(Code::input, "calibrate", "precision '" + name + "'; use fp32, fp64 or bf16");
  }
  return {.parameters = at::kFloat, .compute = name == "bf16" ? at::kBFloat16 : at::kFloat, .device = device};
}

class Profiler {
 public:
  Profiler(const c10::intrusive_ptr<c10d::ProcessGroup>& group, at::Device device, const CalibrateOptions& options)
      : options_(options),
        model_(wan_config(options.catalog.model, options.text_dim)),
        precision_(precision_of(options.precision, device)),
        group_(group),
        together_(group, device),
        depth_(options.depth > 0              ? options.depth
               : model_.layers <= kWholeDepth ? model_.layers
                                              : 1),
        key_(key_of_this_device(device, options.checkpointing, precision_.compute, together_.ranks())),
        estimates_(built_in_profile(estimate_name(), options.catalog, options.checkpointing)) {
    points_.of = identity_of(options, key_, depth_);
    points_.depth = depth_;
    const std::string resumed = together_.from_first(options.resume);
    if (!resumed.empty()) points_ = points_from(resumed, points_.of);
  }

  Calibration run() {
    const std::int64_t total_before = outside_bytes();
    list_wanted();
    measure_fixed();
    bool complete = measure_points();
    complete = check_depth() && complete;
    if (!points_.gradient_sync_us) {
      const StepEnd end = measure_step_end(together_, model_, precision_);
      points_.gradient_sync_us = end.gradient_sync_s * 1e6;
      points_.optimizer_us = end.optimizer_s * 1e6;
      save();
    }
    Calibration result;
    result.rank = together_.rank();
    result.profile = assemble(points_, assembly(total_before));
    result.depth = depth_;
    result.fixed_us = *points_.fixed_us;
    result.token_us = points_.token_us.value_or(0);
    result.gradient_sync_us = *points_.gradient_sync_us;
    result.optimizer_us = *points_.optimizer_us;
    result.points = points_.points;
    result.checks = points_.checks;
    result.complete = complete;
    result.elapsed_s = elapsed_s();
    return result;
  }

 private:
  std::string estimate_name() const {
    if (!options_.device.empty()) return options_.device;
    return precision_.device.is_cpu() ? "cpu" : "h200";
  }
  double elapsed_s() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  /// Whether to go on; the same on every rank.
  bool time_for(double seconds) {
    return !together_.any(options_.stop.stop_requested() || elapsed_s() + seconds > options_.budget_s);
  }
  void save() const {
    if (together_.rank() == 0 && options_.save) options_.save(points_json(points_));
  }
  void tell(double done, const std::string& what) const {
    if (together_.rank() == 0 && options_.progress) options_.progress(std::min(1.0, done), what);
  }
  StepTimer timer(int depth) const {
    EngineOptions engine;
    engine.flash_attention_3 = options_.flash_attention_3;
    return StepTimer(group_, model_, precision_, depth, options_.checkpointing, engine);
  }
  Sample sample(StepTimer& timer, const Bucket& bucket, Configuration config, int count, double allowed_s) const {
    timer.begin(uniform_placement(options_.catalog, bucket, config, together_.ranks(), count), options_.catalog);
    return measure(timer, options_, allowed_s);
  }

  /// Every length of the catalog under every configuration of the menu that the group can run. Whole sequences first,
  /// then by degree; within one configuration the shortest, the longest, then what halves the largest gap, so that a
  /// budget that ends early leaves gaps to interpolate and none to extrapolate.
  void list_wanted() {
    std::vector<Bucket> lengths;
    for (const Bucket& bucket : options_.catalog.buckets) {
      if (std::ranges::find(lengths, bucket.tokens, &Bucket::tokens) == lengths.end()) lengths.push_back(bucket);
    }
    if (lengths.empty()) throw Error(Code::input, "calibrate", "the catalog has no buckets; there is nothing to price");
    std::ranges::sort(lengths, {}, &Bucket::tokens);
    std::set<std::pair<int, Configuration>> configs;
    for (const Bucket& bucket : lengths) {
      for (const Configuration& c : menu(options_.catalog.model, bucket.tokens, together_.ranks(), options_.menu)) {
        configs.insert({c.degree(), c});
      }
    }
    for (const auto& [degree, config] : configs) {
      for (const std::size_t i : halving_order(lengths.size())) {
        const Bucket& bucket = lengths[i];
        if (!why_illegal(options_.catalog.model, bucket.tokens, config, together_.ranks()).empty()) continue;
        const auto index = static_cast<BucketIndex>(*options_.catalog.find(bucket.name));
        const Price* price = estimates_.find(index, config);
        if (price == nullptr) continue;
        wanted_.push_back({bucket, config, static_cast<double>(price->time.value)});
      }
    }
  }

  static std::vector<std::size_t> halving_order(std::size_t count) {
    std::vector<std::size_t> order;
    if (count > 0) order.push_back(0);
    if (count > 1) order.push_back(count - 1);
    while (order.size() < count) {
      std::vector<std::size_t> sorted = order;
      std::ranges::sort(sorted);
      std::size_t widest = 0, place = 0;
      for (std::size_t i = 1; i < sorted.size(); ++i) {
        if (sorted[i] - sorted[i - 1] > widest) {
          widest = sorted[i] - sorted[i - 1];
          place = sorted[i - 1] + widest / 2;
        }
      }
      order.push_back(place);
    }
    return order;
  }

  /// A bucket of middling length, of which a measurement holds several sequences.
  const Bucket& middle() const {
    const Bucket* best = &options_.catalog.buckets.front();
    for (const Bucket& bucket : options_.catalog.buckets) {
      const auto distance = [&](const Bucket& b) {
        return std::abs(
            std::log(static_cast<double>(b.tokens.value) * 8 / static_cast<double>(options_.tokens_per_rank.value)));
      };
      if (distance(bucket) < distance(*best)) best = &bucket;
    }
    return *best;
  }

  /// Cost of a run that no sequence causes, and time of one sequence: the line through two sizes. A run without any
  /// sequence bounds it: exact where the host does the work, too much where its launches hide behind a device's work.
  struct Line {
    double fixed_us = 0, sequence_us = 0;
  };
  Line line(StepTimer& timer, const Bucket& bucket, int count) const {
    const double fixed_s = kFixedShare * options_.budget_s / (depth_ < model_.layers ? 2 : 1);
    Placement nothing;
    nothing.ranks = together_.ranks();
    nothing.model = options_.catalog.model;
    timer.begin(nothing, options_.catalog);
    const double empty_us = measure(timer, options_, fixed_s).seconds * 1e6;
    const double once_us = sample(timer, bucket, {}, count, fixed_s).seconds * 1e6;
    Line found;
    found.fixed_us = empty_us;
    if (!precision_.device.is_cpu()) {
      const double twice_us = sample(timer, bucket, {}, 2 * count, fixed_s).seconds * 1e6;
      found.fixed_us = std::clamp(2 * once_us - twice_us, 0.0, empty_us);
    }
    found.sequence_us = (once_us - found.fixed_us) / count;
    return found;
  }

  void measure_fixed() {
    if (points_.fixed_us) return;
    const Bucket& bucket = middle();
    const int count = sequences_for(bucket, {}, options_.tokens_per_rank);
    const int layers = model_.layers;
    tell(0, "fixed costs");
    StepTimer shallow = timer(depth_);
    const Line one = line(shallow, bucket, count);
    points_.fixed_us = one.fixed_us;
    points_.full_fixed_us = one.fixed_us;
    if (depth_ < layers) {
      // One block more: what a block takes, and so what is left for the ends.
      StepTimer deeper = timer(depth_ + 1);
      const Line two = line(deeper, bucket, count);
      points_.full_fixed_us = one.fixed_us + (layers - depth_) * std::max(0.0, two.fixed_us - one.fixed_us);
      const double block_us = two.sequence_us - one.sequence_us;
      points_.token_us = std::max(0.0, one.sequence_us - depth_ * block_us) / static_cast<double>(bucket.tokens.value);
    }
    save();
  }

  bool measure_points() {
    StepTimer one = timer(depth_);
    bool complete = true;
    double total_us = 0, done_us = 0;
    const double scale = static_cast<double>(depth_) / model_.layers;
    for (const Wanted& w : wanted_) {
      total_us += w.expected_us * sequences_for(w.bucket, w.config, options_.tokens_per_rank);
    }
    double faster = 1;  // measured / expected of the point before
    for (const Wanted& w : wanted_) {
      const int count = sequences_for(w.bucket, w.config, options_.tokens_per_rank);
      const double expected_us = w.expected_us * count;
      done_us += expected_us;
      if (points_.find(w.bucket.tokens, w.config) != nullptr) continue;
      const double run_s = expected_us * scale * faster / 1e6;
      tell((done_us - expected_us) / total_us, w.bucket.name + " " + text(w.config));
      // Each point may take its part of the time that is left.
      const double left_s = (1 - kCheckShare) * options_.budget_s - together_.most(elapsed_s());
      const double allowed_s = left_s * expected_us / (total_us - done_us + expected_us);
      if (run_s > options_.longest_run_s || !fits_in_memory(w, count) || !time_for(2 * run_s)) {
        complete = false;
        continue;
      }
      const Sample found = sample(one, w.bucket, w.config, count, allowed_s);
      MeasuredPoint point;
      point.tokens = w.bucket.tokens;
      point.config = w.config;
      point.sequences = count;
      point.time_us = std::max(1e-3, (found.seconds * 1e6 - *points_.fixed_us) / count);
      point.exchange_us = w.config.is_whole() ? 0 : one.exchange() * 1e6 / count;
      point.spread = found.spread;
      point.repeats = found.repeats;
      point.peak_bytes = found.peak_bytes;
      points_.points.push_back(point);
      // What the allocator holds beyond the largest peak so far is lost to fragments; less than that is cache.
      const AllocatorState state = allocator_state(precision_.device);
      largest_bytes_ = std::max(largest_bytes_, state.allocated_bytes + found.peak_bytes);
      points_.slack_bytes = static_cast<std::int64_t>(
          together_.most(static_cast<double>(std::max<std::int64_t>(0, state.reserved_bytes - largest_bytes_))));
      faster = found.seconds / (expected_us * scale / 1e6);
      save();
    }
    return complete;
  }

  bool fits_in_memory(const Wanted& w, int count) const {
    ModelGeometry shallow = options_.catalog.model;
    shallow.layers = depth_;
    const double need = 1.3 * count *
                        static_cast<double>(memory_terms(shallow, w.bucket.tokens, w.config,
                                                         {.checkpointing = options_.checkpointing,
                                                          .element_bytes = element_bytes(),
                                                          .text_dim = options_.text_dim})
                                                .total()
                                                .value);
    const DeviceMemory memory = device_memory(precision_.device);
    const AllocatorState held = allocator_state(precision_.device);
    const double room = static_cast<double>(memory.free_bytes + held.reserved_bytes - held.allocated_bytes);
    const int sharing = precision_.device.is_cpu() ? together_.ranks() : 1;
    return !together_.any(need * sharing > room);
  }

  /// All blocks, at a few points that take the time of their share of the budget.
  bool check_depth() {
    if (depth_ == model_.layers || !points_.checks.empty()) return true;
    std::vector<MeasuredPoint> chosen;
    double spent_us = 0;
    for (const MeasuredPoint& p : points_.points) {
      const double run_us = predicted_us(points_, model_.layers, p, p.sequences);
      const bool wanted = p.config.is_whole() || p.config.degree() == together_.ranks();
      if (!wanted || spent_us + 3 * run_us > kCheckShare * options_.budget_s * 1e6 || chosen.size() >= 8) continue;
      spent_us += 3 * run_us;
      chosen.push_back(p);
    }
    if (chosen.empty() || !time_for(spent_us / 1e6)) return false;
    StepTimer all = timer(0);
    for (const MeasuredPoint& p : chosen) {
      const auto bucket = std::ranges::find(options_.catalog.buckets, p.tokens, &Bucket::tokens);
      tell(1, "all blocks, " + bucket->name + " " + text(p.config));
      if (!time_for(0)) return false;
      DepthCheck check{p.tokens, p.config, p.sequences, 0, predicted_us(points_, model_.layers, p, p.sequences)};
      check.measured_us =
          sample(all, *bucket, p.config, p.sequences, kCheckShare * options_.budget_s / 8).seconds * 1e6;
      points_.checks.push_back(check);
    }
    save();
    return true;
  }

  int element_bytes() const { return static_cast<int>(c10::elementSize(precision_.compute)); }

  /// What is taken of the device by others than this process's tensors: driver, libraries, communicators.
  std::int64_t outside_bytes() const {
    const at::Device device = precision_.device;
    if (device.is_cpu()) return 0;
    const DeviceMemory memory = device_memory(device);
    return memory.total_bytes - memory.free_bytes - allocator_state(device).reserved_bytes;
  }

  Assembly assembly(std::int64_t outside_before) {
    Assembly a;
    a.catalog = options_.catalog;
    a.key = key_;
    a.estimate = estimate_name();
    a.ranks = together_.ranks();
    a.element_bytes = element_bytes();
    a.text_dim = options_.text_dim;
    const DeviceMemory memory = device_memory(precision_.device);
    const int sharing = precision_.device.is_cpu() ? together_.ranks() : 1;
    const std::int64_t outside = std::max(outside_before, outside_bytes());
    // Parameters, their gradients and AdamW's two moments, all in the parameters' precision.
    std::int64_t parameters = 0;
    {
      WanConfig one = model_;
      one.layers = 1;
      const std::int64_t shallow = WanTransformer(one, precision_).num_parameters();
      one.layers = 2;
      const std::int64_t deeper = WanTransformer(one, precision_).num_parameters();
      parameters = shallow + (model_.layers - 1) * (deeper - shallow);
    }
    const auto state = parameters * 4 * static_cast<std::int64_t>(c10::elementSize(precision_.parameters));
    a.memory_base.value = static_cast<std::int64_t>(together_.most(static_cast<double>(outside + state)));
    a.memory_usable.value = static_cast<std::int64_t>(
        together_.most(static_cast<double>(memory.total_bytes / sharing - points_.slack_bytes)));
    if (a.memory_usable <= a.memory_base) {
      throw Error(Code::input, "calibrate",
                  "the model's parameters, gradients and optimizer states take " + std::to_string(a.memory_base.value) +
                      " bytes, the device has " + std::to_string(a.memory_usable.value));
    }
    return a;
  }

  const CalibrateOptions& options_;
  WanConfig model_;
  WanTransformer::Options precision_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  Together together_;
  int depth_;
  ProfileKey key_;
  Profile estimates_;
  Points points_;
  std::vector<Wanted> wanted_;
  std::int64_t largest_bytes_ = 0;  // allocated at once so far
  Clock::time_point start_ = Clock::now();
};

void check(const CalibrateOptions& options) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw Error(Code::input, "calibrate", what);
  };
  require(options.tokens_per_rank.value >= 1,
          "tokens_per_rank is " + std::to_string(options.tokens_per_rank.value) + "; it must be at least 1");
  require(
      options.depth >= 0 && options.depth <= options.catalog.model.layers,
      "depth is " + std::to_string(options.depth) + "; the model has " + std::to_string(options.catalog.model.layers));
  require(options.min_repeats >= 1 && options.max_repeats >= options.min_repeats,
          "repeats " + std::to_string(options.min_repeats) + " to " + std::to_string(options.max_repeats) +
              "; use 1 or more, the most no less than the least");
  require(options.spread > 0, "spread is " + std::to_string(options.spread) + "; it must be positive");
  require(options.budget_s > 0, "budget_s is " + std::to_string(options.budget_s) + "; it must be positive");
}

}  // namespace

Calibration calibrate(const c10::intrusive_ptr<c10d::ProcessGroup>& group, at::Device device,
                      const CalibrateOptions& options) {
  check(options);
  return Profiler(group, device, options).run();
}

Calibration calibrate(const CalibrateOptions& options, const CalibrateRanks& ranks) {
  check(options);
  if (ranks.backend == "nccl") {
    const WorldGroup world = join_world(ranks.env);
    return calibrate(world.group, world.device, options);
  }
  if (ranks.backend != "threads") {
    throw Error(Code::input, "calibrate", "backend '" + ranks.backend + "'; use threads or nccl");
  }
  ThreadRankOptions thread_options;
  thread_options.threads_per_rank = ranks.threads_per_rank;
  thread_options.timeout = std::chrono::hours(1);  // the first rank to end a long block waits for the last
  Calibration result;
  run_thread_ranks(
      ranks.count,
      [&](Rank rank, c10::intrusive_ptr<c10d::ProcessGroup> group) {
        Calibration own = calibrate(group, at::kCPU, options);
        if (rank == 0) result = std::move(own);
      },
      thread_options);
  return result;
}

}  // namespace zellige
