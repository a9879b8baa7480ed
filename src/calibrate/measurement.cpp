// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measurement.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace zellige {

Placement uniform_placement(const Catalog& catalog, const Bucket& bucket, Configuration config, int ranks, int count) {
  Placement placement;
  placement.ranks = ranks;
  placement.model = catalog.model;
  const int degree = config.degree();
  for (int set = 0; set < ranks / degree; ++set) {
    for (int i = 0; i < count; ++i) {
      PlacedSequence sequence;
      sequence.id = "s";
      sequence.id.append(std::to_string(set)).append("-").append(std::to_string(i));
      sequence.bucket = bucket.name;
      sequence.kind = bucket.kind;
      sequence.tokens = bucket.tokens;
      sequence.config = config;
      sequence.ranks.resize(static_cast<std::size_t>(degree));
      std::iota(sequence.ranks.begin(), sequence.ranks.end(), set * degree);
      placement.sequences.push_back(std::move(sequence));
    }
  }
  return placement;
}

int sequences_for(const Bucket& bucket, Configuration config, Tokens tokens) {
  constexpr std::int64_t kMost = 256;
  return static_cast<int>(std::clamp<std::int64_t>(tokens.value * config.degree() / bucket.tokens.value, 1, kMost));
}

Sample measure(StepTimer& timer, const CalibrateOptions& options, double allowed_s) {
  const StepTimer::Run first = timer.run();
  Sample sample;
  sample.peak_bytes = first.most_bytes;
  double spent_s = first.seconds;
  std::vector<double> times;
  while (times.empty() || (sample.repeats < options.max_repeats && spent_s + sample.seconds <= allowed_s)) {
    const StepTimer::Run run = timer.run();
    sample.peak_bytes = std::max(sample.peak_bytes, run.most_bytes);
    spent_s += run.seconds;
    times.push_back(run.seconds);
    const std::size_t n = times.size();
    std::vector<double> sorted = times;
    std::ranges::sort(sorted);
    sample.seconds = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    sample.repeats = static_cast<int>(n);
    const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(n);
    double squares = 0;
    for (const double time : times) squares += (time - mean) * (time - mean);
    sample.spread = n > 1 ? std::sqrt(squares / static_cast<double>(n - 1)) / mean : 0;
    if (sample.repeats >= options.min_repeats && sample.spread < options.spread) break;
  }
  return sample;
}

}  // namespace zellige
