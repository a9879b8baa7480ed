// SPDX-License-Identifier: Apache-2.0
// What thread ranks take of this machine's memory in a training step, beside the estimate by which `train` refuses runs
// that do not fit (src/train/host_memory.h). Each cell runs one step of the demo's model in a process of its own; its
// peak is the kernel's (VmHWM), less what the process holds before the run.
//   host_memory [OUT.json]
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>

#include "bench/result_file.h"
#include "train/host_memory.h"

namespace {

using namespace zellige;

// A field of /proc/self/status, which counts in KiB.
std::int64_t status_bytes(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::int64_t kib = 0;
    if (word == field + ":" && file >> kib) return kib * 1024;
  }
  throw std::runtime_error("/proc/self/status has no " + field);
}

struct Peak {
  std::int64_t before_bytes = 0;
  std::int64_t peak_bytes = 0;
};

// Trains in a child process, so that memory kept by an earlier cell is not counted again. No thread runs yet.
Peak peak_of(const TrainConfig& config) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    Peak peak;
    try {
      peak.before_bytes = status_bytes("VmRSS");
      train(config);
      peak.peak_bytes = status_bytes("VmHWM");
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    const bool written = write(ends[1], &peak, sizeof peak) == sizeof peak;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Peak peak;
  const bool is_read = read(ends[0], &peak, sizeof peak) == sizeof peak;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!is_read || peak.peak_bytes == 0) throw std::runtime_error("the run in a child process failed");
  return peak;
}

nlohmann::ordered_json measure(TrainConfig config, int ranks, std::int64_t tokens_per_rank, bool checkpointing) {
  config.ranks.count = ranks;
  config.batch.tokens_per_rank = {tokens_per_rank};
  config.batch.video_share = 0.3;
  config.run.checkpointing = checkpointing;
  config.run.steps = 1;
  const HostNeed need = host_need(config);
  const Peak peak = peak_of(config);
  const std::int64_t measured = peak.peak_bytes - peak.before_bytes;
  const std::int64_t estimated = need.a_rank().value * ranks;
  nlohmann::ordered_json row = {
      {"ranks", ranks},
      {"tokens_per_rank", tokens_per_rank},
      {"checkpointing", checkpointing},
      {"estimated_bytes", estimated},
      {"measured_bytes", measured},
      {"before_bytes", peak.before_bytes},
      {"measured_over_estimated", static_cast<double>(measured) / static_cast<double>(estimated)}};
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "bench/results/host_memory.json";
  try {
    const TrainConfig config = read_train_config("examples/demo/train.toml");
    auto rows = nlohmann::ordered_json::array();
    for (const bool checkpointing : {true, false}) {
      for (const std::int64_t tokens : {2'560, 10'240, 20'480})
        rows.push_back(measure(config, 2, tokens, checkpointing));
      rows.push_back(measure(config, 8, 2'560, checkpointing));
    }
    bench::write_results(path, "host_memory", bench::host_cpu(), "host_memory " + path, rows);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
