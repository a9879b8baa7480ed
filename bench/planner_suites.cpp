// SPDX-License-Identifier: Apache-2.0
// Measures the own solver's Anchor Placement, both rounds: time, certified gap, and what stays uncertified.
//   planner_suites NAME [OUT.json [BATCHES [SEED]]]     NAME: planner_suites, planner_adversarial or planner_scale
// Every proof is verified by the checker's code before its row is written. Times are of the thread's own processor
// time, so that other work on the machine does not count; wall times are there, too.
#include <ctime>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/random.h"
#include "bench/result_file.h"
#include "placement/anchor_certificate.h"
#include "plan/own_anchor.h"
#include "zellige/batch.h"
#include "zellige/planner.h"
#include "zellige/profile.h"

namespace zellige {
namespace {

struct Measured {
  std::uint64_t seed = 0;
  double cpu_ms = 0, wall_ms = 0, verify_ms = 0, load_gap = 0;
  std::int64_t verify_steps = 0;
  std::int64_t split_gap = 0, nodes = 0, proof_nodes = 0;
  own::SolverStatus status = own::SolverStatus::unknown;
  bool proof_holds = true;
};

double thread_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

double draw_between(RandomEngine& engine, double low, double high) { return low + (high - low) * draw_unit(engine); }

/// The anchors of a random batch of a suite: its share drawn, its videos redrawn to the same tokens, its device one of
/// the built-in profiles, prices with noise of up to 3%.
Problem suite_problem(RandomEngine& engine, const std::string& suite, int ranks) {
  const int share = 35 + static_cast<int>(draw_below(engine, 26));
  Batch batch = make_workload(suite + ":V" + std::to_string(share), ranks);
  std::vector<BucketIndex> videos;
  std::int64_t tokens = 0;
  for (std::size_t b = 0; b < batch.catalog.buckets.size(); ++b) {
    if (batch.catalog.buckets[b].kind == MediaKind::video) videos.push_back(static_cast<BucketIndex>(b));
  }
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    if (batch.bucket_of(static_cast<SequenceIndex>(i)).kind == MediaKind::video) {
      tokens += batch.tokens_of(static_cast<SequenceIndex>(i)).value;
    }
  }
  batch.sequences.clear();
  std::vector<double> mix;
  double total = 0;
  for (std::size_t v = 0; v < videos.size(); ++v) total += mix.emplace_back(draw_between(engine, 0.2, 1));
  std::int64_t drawn = 0;
  while (true) {
    double at = draw_between(engine, 0, total);
    std::size_t v = 0;
    while (v + 1 < videos.size() && at >= mix[v]) at -= mix[v++];
    const std::int64_t length = batch.catalog.buckets[videos[v]].tokens.value;
    if (!batch.sequences.empty() && drawn + length / 2 > tokens) break;
    drawn += length;
    batch.sequences.push_back({"v" + std::to_string(batch.sequences.size()), videos[v], ""});
  }
  constexpr std::array kDevices = {"h200", "a800", "a6000"};
  Profile profile = built_in_profile(kDevices[draw_below(engine, kDevices.size())], batch.catalog, true, ranks);
  const double noise = draw_between(engine, 0, 0.03);
  for (std::size_t b = 0; b < profile.catalog.buckets.size(); ++b) {
    const auto menu = profile.menu(static_cast<BucketIndex>(b));
    std::vector<Price> prices(menu.begin(), menu.end());
    for (Price& price : prices) {
      const double time = static_cast<double>(price.time.value) * (1 + draw_between(engine, -noise, noise));
      price.time = {std::max<std::int64_t>(price.exchange.value + 1, std::llround(time))};
    }
    profile.set_prices(static_cast<BucketIndex>(b), prices);
  }
  const std::vector<BucketIndex> buckets = match_buckets(batch, profile);
  return make_problem(batch, profile, buckets, anchor_buckets(profile), Menu::powers_of_two);
}

const std::vector<std::string> kAdversarial = {"generic",       "one-giant",     "many-equal",
                                               "memory-tight",  "odd-degrees",   "several-configurations",
                                               "mixed-lengths", "hundreds-short"};

/// Instances made to be hard: prices of no pattern at all, in the named ways.
Problem adversarial_problem(RandomEngine& engine, const std::string& kind, int ranks) {
  Problem problem;
  problem.ranks = ranks;
  const bool odd = kind == "odd-degrees";
  const int configurations = kind == "several-configurations" || kind == "memory-tight" ? 3 : 1;
  int groups = 2 + static_cast<int>(draw_below(engine, 3));
  if (kind == "many-equal") groups = 1;
  if (kind == "mixed-lengths" || kind == "hundreds-short") groups = 5 + static_cast<int>(draw_below(engine, 2));
  SequenceIndex next = 0;
  double memory = 0;
  for (int g = 0; g < groups; ++g) {
    Group group;
    group.bucket = g;
    double whole_us = 1e6 * std::exp(draw_between(engine, 0, 3));
    std::int64_t count = 1 + static_cast<std::int64_t>(draw_below(engine, static_cast<std::uint64_t>(ranks)));
    if (kind == "many-equal") count = ranks * (2 + static_cast<std::int64_t>(draw_below(engine, 4))) + 1;
    if (kind == "one-giant" && g == 0) whole_us *= 40, count = 1;
    if (kind == "mixed-lengths" && g >= 3) whole_us = 2e5 * std::exp(draw_between(engine, 0, 2)), count *= 2;
    if (kind == "hundreds-short" && g >= 2)
      whole_us = 5e4 * std::exp(draw_between(engine, 0, 2)), count = 100 + 8 * count;
    const double overhead = draw_between(engine, 0.01, 0.08);
    const double need = 1e6 * whole_us / 1e6 * draw_between(engine, 0.6, 1.4);
    for (int degree = 1; degree <= std::min(ranks, 16); ++degree) {
      const bool power = (degree & (degree - 1)) == 0;
      if (!power && !(odd && (degree == 3 || degree == 6 || degree == 12))) continue;
      for (int c = 0; c < (degree == 1 ? 1 : configurations); ++c) {
        const double more = 1 + overhead * std::log2(degree) + draw_between(engine, 0, 0.03) + 0.03 * c;
        const double bytes = need / degree * (1 + draw_between(engine, 0, 0.2) + 0.15 * (configurations - 1 - c));
        group.options.push_back(
            {{degree, 1, c + 1}, degree, std::llround(whole_us / degree * more), std::llround(bytes)});
      }
    }
    for (std::int64_t i = 0; i < count; ++i) group.members.push_back(next++);
    memory += need * static_cast<double>(count);
    problem.groups.push_back(std::move(group));
  }
  const double room = kind == "memory-tight" ? draw_between(engine, 1.12, 1.35) : draw_between(engine, 2, 4);
  problem.memory_cap_bytes = std::llround(memory / ranks * room);
  return problem;
}

ProofInstance proof_instance(const Problem& problem) {
  ProofInstance result{problem.ranks, problem.memory_cap_bytes, {}};
  for (const Group& group : problem.groups) {
    std::vector<ProofInstance::Option> options;
    for (const Option& option : group.options) {
      options.push_back({option.config, option.degree, option.time_us, option.memory_bytes});
    }
    result.groups.push_back({group.count(), needed_options(options, problem.memory_cap_bytes)});
  }
  return result;
}

Measured measure(const Problem& problem, std::uint64_t seed) {
  using Clock = std::chrono::steady_clock;
  Measured row;
  row.seed = seed;
  const own::AnchorProblem numbers = own_problem(problem);
  const auto limits = own::default_limits(problem.ranks);
  const auto start = Clock::now();
  const double cpu = thread_ms();
  const own::AnchorSolution solution = own::solve_anchors(numbers, limits);
  row.cpu_ms = thread_ms() - cpu;
  row.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  row.status = solution.status;
  row.nodes = solution.nodes;
  if (solution.status != own::SolverStatus::solved) return row;
  row.load_gap = 1 - static_cast<double>(solution.load_bound_us) / static_cast<double>(solution.least_load_us);
  row.split_gap = solution.split_count - solution.split_bound;
  decode(problem, counted(problem, solution.model, solution.packing));  // throws for what is no placement
  const double verify = thread_ms();
  Profile names;
  names.catalog.buckets.resize(64);  // proofs go by name; here all are empty
  const AnchorProof proof = anchor_proof(problem, solution, names, Menu::all);
  const ProofInstance instance = proof_instance(problem);
  constexpr std::int64_t kMostSteps = 200'000'000;
  std::int64_t work = kMostSteps;
  row.proof_holds = why_not_proved(instance, proof.load, solution.load_bound_us - 1, {}, work).empty();
  if (solution.split_bound > 0) {
    row.proof_holds &=
        why_not_proved(instance, proof.split, solution.load_limit_us, solution.split_bound - 1, work).empty();
  }
  row.verify_ms = thread_ms() - verify;
  row.verify_steps = kMostSteps - work;
  row.proof_nodes = static_cast<std::int64_t>(proof.load.size() + proof.split.size());
  return row;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

nlohmann::ordered_json summary(const std::string& what, int ranks, const std::vector<Measured>& rows) {
  std::vector<double> cpu, wall, verify, together, steps, gaps, splits, proofs;
  int too_long = 0;
  int infeasible = 0, unknown = 0, load_open = 0, load_exact = 0, split_open = 0, broken = 0;
  const Measured* slowest = &rows.front();
  for (const Measured& row : rows) {
    cpu.push_back(row.cpu_ms);
    wall.push_back(row.wall_ms);
    if (row.cpu_ms > slowest->cpu_ms) slowest = &row;
    infeasible += row.status == own::SolverStatus::infeasible;
    unknown += row.status == own::SolverStatus::unknown;
    if (row.status != own::SolverStatus::solved) continue;
    verify.push_back(row.verify_ms);
    together.push_back(row.cpu_ms + row.verify_ms);
    proofs.push_back(static_cast<double>(row.proof_nodes));
    gaps.push_back(row.load_gap);
    load_open += row.load_gap > 1e-4;
    load_exact += row.load_gap == 0;
    split_open += row.split_gap > 0;
    splits.push_back(static_cast<double>(row.split_gap));
    broken += !row.proof_holds;
    steps.push_back(static_cast<double>(row.verify_steps));
    too_long += row.verify_steps > verify_work(ranks);
  }
  std::printf(
      "%-24s N %4d: %4zu batches, ms p50 %6.2f p90 %6.2f p99 %6.2f max %6.2f; load gap p90 %.1e p99 %.1e max %.1e, "
      "open %d, split open %d (most %.0f); infeasible %d, unknown %d; proofs: ms p99 %.2f max %.2f, nodes max "
      "%.0f, refused %d, too long %d; slowest seed %llu\n",
      what.c_str(), ranks, rows.size(), quantile(cpu, .5), quantile(cpu, .9), quantile(cpu, .99), quantile(cpu, 1),
      quantile(gaps, .9), quantile(gaps, .99), quantile(gaps, 1), load_open, split_open, quantile(splits, 1),
      infeasible, unknown, quantile(verify, .99), quantile(verify, 1), quantile(proofs, 1), broken, too_long,
      static_cast<unsigned long long>(slowest->seed));
  std::fflush(stdout);
  return {{"instances", what},
          {"ranks", ranks},
          {"batches", rows.size()},
          {"cpu_p50_ms", quantile(cpu, .5)},
          {"cpu_p90_ms", quantile(cpu, .9)},
          {"cpu_p99_ms", quantile(cpu, .99)},
          {"cpu_max_ms", quantile(cpu, 1)},
          {"wall_p50_ms", quantile(wall, .5)},
          {"wall_p99_ms", quantile(wall, .99)},
          {"load_gap_p50", quantile(gaps, .5)},
          {"load_gap_p90", quantile(gaps, .9)},
          {"load_gap_p99", quantile(gaps, .99)},
          {"load_gap_max", quantile(gaps, 1)},
          {"load_optimal", load_exact},
          {"load_gap_above_1e-4", load_open},
          {"split_uncertified", split_open},
          {"split_gap_max", quantile(splits, 1)},
          {"infeasible", infeasible},
          {"unknown", unknown},
          {"verify_p50_ms", quantile(verify, .5)},
          {"verify_p99_ms", quantile(verify, .99)},
          {"verify_max_ms", quantile(verify, 1)},
          {"solve_and_verify_p99_ms", quantile(together, .99)},
          {"solve_and_verify_max_ms", quantile(together, 1)},
          {"verify_p99_steps", quantile(steps, .99)},
          {"verify_max_steps", quantile(steps, 1)},
          {"proofs_beyond_the_planners_limit", too_long},
          {"proof_nodes_max", quantile(proofs, 1)},
          {"proofs_refused", broken},
          {"slowest_seed", slowest->seed}};
}

int run(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "planner_suites";
  const std::string path = argc > 2 ? argv[2] : "bench/results/" + name + ".json";
  const std::uint64_t first_seed = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1;
  const std::uint64_t batches = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : name == "planner_scale" ? 20 : 100;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const auto sweep = [&](const std::string& what, int ranks, auto&& make) {
    std::vector<Measured> measured;
    for (std::uint64_t seed = first_seed; seed < first_seed + batches; ++seed) {
      RandomEngine engine(seed * 1000 + static_cast<std::uint64_t>(ranks));
      measured.push_back(measure(make(engine, what, ranks), seed));
    }
    rows.push_back(summary(what, ranks, measured));
  };
  if (name == "planner_adversarial") {
    for (const std::string& kind : kAdversarial) {
      for (const int ranks : {8, 16, 32, 128}) sweep(kind, ranks, adversarial_problem);
    }
  } else if (name == "planner_suites" || name == "planner_scale") {
    const std::vector<int> scales =
        name == "planner_suites" ? std::vector<int>{8, 16, 32} : std::vector<int>{64, 128, 256, 1024};
    for (const std::string& suite : workload_suites()) {
      for (const int ranks : scales) sweep(suite, ranks, suite_problem);
    }
  } else {
    std::fprintf(stderr, "%s: it must be planner_suites, planner_adversarial or planner_scale\n", name.c_str());
    return 2;
  }
  std::string command =
      "planner_suites " + name + " " + path + " " + std::to_string(batches) + " " + std::to_string(first_seed);
  bench::write_results(path, name, bench::host_cpu(), command, rows);
  return 0;
}

}  // namespace
}  // namespace zellige

int main(int argc, char** argv) { return zellige::run(argc, argv); }
