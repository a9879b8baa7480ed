// SPDX-License-Identifier: Apache-2.0
#include "train/host_memory.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "train/rank_trainer.h"
#include "zellige/error.h"
#include "zellige/model.h"
#include "zellige/profile.h"

namespace zellige {
namespace {

// Of a thread's stack a rank touches little; with its allocator's arena and backward thread that makes about this much.
constexpr std::int64_t kThreadBytes = 2 << 20;
// Many short sequences bring a text each, and the host's operators keep results of their own: measured, a step
// takes 1.4 to 2.7 times the model's (docs/benchmarks.md, host_memory). The least is charged, so that no run that fits
// is refused.
constexpr double kOfModelled = 1.4;

std::string gibibytes(Bytes size) {
  std::array<char, 32> buffer{};
  const double value = static_cast<double>(size.value) / (1 << 30);
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, 2).ptr;
  return std::string(buffer.data(), end).append(" GiB");
}

// The number at the start of a file; none when there is no such file, or it says "max".
std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

// MemAvailable of /proc/meminfo.
std::optional<std::int64_t> available_in_system() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kField = "MemAvailable:";
    if (!line.starts_with(kField)) continue;
    const auto digits = line.find_first_of("0123456789");
    std::int64_t kib = 0;
    if (digits == std::string::npos) break;
    const auto read = std::from_chars(line.data() + digits, line.data() + line.size(), kib);
    if (read.ec == std::errc()) return kib * 1024;
  }
  return std::nullopt;
}

// What the control group leaves, by its second and by its first version.
std::optional<std::int64_t> available_in_group() {
  constexpr std::array kFiles = {
      std::pair{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
      std::pair{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"}};
  for (const auto& [limit_file, usage_file] : kFiles) {
    const auto limit = number_in(limit_file);
    const auto usage = number_in(usage_file);
    if (limit && usage) return std::max<std::int64_t>(*limit - *usage, 0);
  }
  return std::nullopt;
}

}  // namespace

HostNeed host_need(const TrainConfig& config) {
  const bool is_double = config.run.precision == Precision::fp64;
  const std::int64_t element = is_double ? 8 : 4;
  // Without memory of its own: only the sizes are asked for.
  const WanTransformer shapes(wan_config(config),
                              {.parameters = at::kFloat, .compute = at::kFloat, .device = at::kMeta});
  HostNeed need;
  need.states = {4 * element * shapes.num_parameters()};
  MemoryOptions options;
  options.checkpointing = config.run.checkpointing;
  options.keep_kv = config.plan.options.exec.keep_kv;
  options.element_bytes = config.run.precision == Precision::bf16 ? 2 : static_cast<int>(element);
  const Bytes modelled = memory_terms(config.model, config.batch.tokens_per_rank, Configuration{}, options).total();
  need.activations = {std::llround(kOfModelled * static_cast<double>(modelled.value))};
  need.thread = {kThreadBytes * std::max(config.ranks.threads_per_rank, 1)};
  return need;
}

Bytes available_host_memory() {
  const auto in_system = available_in_system();
  const auto in_group = available_in_group();
  if (in_system && in_group) return {std::min(*in_system, *in_group)};
  return {in_system ? *in_system : in_group.value_or(0)};
}

void require_host_memory(const TrainConfig& config, Bytes available) {
  if (available.value <= 0) return;
  const HostNeed need = host_need(config);
  const std::int64_t fit = available.value / std::max<std::int64_t>(need.a_rank().value, 1);
  if (config.ranks.count <= fit) return;
  const Bytes all{need.a_rank().value > std::numeric_limits<std::int64_t>::max() / config.ranks.count
                      ? std::numeric_limits<std::int64_t>::max()
                      : need.a_rank().value * config.ranks.count};
  std::string message =
      "[ranks] count is " + std::to_string(config.ranks.count) + ": so many ranks in one process need ";
  message +=
      "about " + gibibytes(all) + " of memory (each " + gibibytes(need.states) + " for parameters, gradients and ";
  message +=
      "optimizer, " + gibibytes(need.activations) + " for activations, " + gibibytes(need.thread) + " for threads); ";
  message += gibibytes(available) + " are available, enough for " + std::to_string(fit);
  if (fit == 0) message += ": take a smaller model or fewer [batch] tokens_per_rank";
  throw Error(Code::input, "train", message);
}

}  // namespace zellige
