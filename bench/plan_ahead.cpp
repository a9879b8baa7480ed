// SPDX-License-Identifier: Apache-2.0
// What planning costs a training step: how long a step waits for its plan when the plan is made while the step before
// runs, against the time that drawing, planning and checking takes. Steps are simulated by sleeping; batches are the
// demo's, more tokens a rank.
//   plan_ahead [OUT.json [STEPS [STEP_MS ...]]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "bench/result_file.h"
#include "train/step_source.h"

namespace {

using namespace zellige;
using Clock = std::chrono::steady_clock;

double since_us(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

nlohmann::ordered_json measure(TrainConfig config, int steps, double step_ms) {
  config.run.steps = steps;
  const TrainHooks hooks;
  StepSource source(config, hooks);
  std::vector<double> waits_us, solve_us;
  double first_us = 0;
  int sequences = 0;
  for (int step = 0; step < steps; ++step) {
    const auto start = Clock::now();
    const auto planned = source.get(step);
    (step == 0 ? first_us : waits_us.emplace_back()) = since_us(start);
    solve_us.push_back(static_cast<double>(planned->plan.solve_time.value));
    sequences = std::max(sequences, static_cast<int>(planned->batch.sequences.size()));
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(step_ms));
  }
  nlohmann::ordered_json row = {{"ranks", config.ranks.count},
                                {"most_sequences", sequences},
                                {"steps", steps},
                                {"simulated_step_ms", step_ms},
                                {"solve_p50_us", quantile(solve_us, .5)},
                                {"solve_max_us", quantile(solve_us, 1)},
                                {"first_step_wait_us", first_us},
                                {"wait_p50_us", quantile(waits_us, .5)},
                                {"wait_p99_us", quantile(waits_us, .99)},
                                {"goal_wait_share_of_step", 0.01}};
  if (step_ms > 0) row["wait_share_of_step"] = quantile(waits_us, .5) / (step_ms * 1e3);
  std::printf("%s\n", row.dump().c_str());
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "bench/results/plan_ahead.json";
  const int steps = argc > 2 ? std::max(2, std::atoi(argv[2])) : 100;
  std::vector<double> step_ms;
  for (int i = 3; i < argc; ++i) step_ms.push_back(std::atof(argv[i]));
  if (step_ms.empty()) step_ms = {0, 20, 200};
  try {
    TrainConfig config = read_train_config("examples/demo/train.toml");
    config.ranks.count = 8;
    config.batch.tokens_per_rank = {40'000};
    auto rows = nlohmann::ordered_json::array();
    for (const double each : step_ms) rows.push_back(measure(config, steps, each));
    bench::write_results(path, "plan_ahead", bench::host_cpu(), "plan_ahead " + path + " " + std::to_string(steps),
                         rows);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
