// SPDX-License-Identifier: Apache-2.0
// zellige batch: draws a batch from a manifest, or makes one of the evaluation's workloads.
#include <limits>
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "interrupt.h"
#include "numbers.h"
#include "option_values.h"
#include "outputs.h"
#include "planning.h"
#include "subcommands.h"
#include "table.h"
#include "zellige/manifest.h"

namespace zellige::app {
namespace {

constexpr std::uint64_t kMostSkipped = 1'000'000;  // drawn one by one; longer runs resume from the drawer's state

struct Arguments {
  std::string manifest;
  std::string rules;
  std::string workload;
  std::string output;
  std::int64_t tokens_per_rank = 0;
  double video_share = -1;
  int ranks = 0;
  std::uint64_t seed = 0;
  std::int64_t skip = 0;
  bool json = false;
};

Batch draw(const Arguments& arguments) {
  if (!arguments.workload.empty()) return make_workload(arguments.workload, arguments.ranks);
  if (arguments.rules.empty() || arguments.tokens_per_rank == 0 || arguments.ranks == 0) {
    throw Error(Code::input, "batch", "drawing from a manifest needs --rules, --ranks and --tokens-per-rank");
  }
  const Manifest manifest = read_manifest(arguments.manifest);
  const BucketRules rules = read_rules(arguments.rules);
  const BucketedSamples samples = apply_rules(manifest, rules);
  DrawOptions options;
  options.ranks = arguments.ranks;
  options.tokens_per_rank = Tokens{arguments.tokens_per_rank};
  options.video_share = arguments.video_share >= 0 ? arguments.video_share : rules.video_share;
  options.seed = arguments.seed;
  BatchDrawer drawer(manifest, samples, options);
  const Interrupt interrupt;
  for (std::int64_t i = 0; i < arguments.skip; ++i) {
    if (interrupt.token().stop_requested()) {
      throw Error(Code::timeout, "batch",
                  fmt::format("stopped after {} of {} batches to pass over", i, arguments.skip));
    }
    drawer.next();
  }
  return drawer.next();
}

Code run(const Arguments& arguments) {
  if (arguments.manifest.empty() == arguments.workload.empty()) {
    throw Error(Code::input, "batch", "give either a MANIFEST or --workload");
  }
  const std::vector<NamedFile> outputs = {{"-o", arguments.output}};
  check_outputs("batch", {{"MANIFEST", arguments.manifest}, {"--rules", arguments.rules}}, outputs, arguments.json);
  const Batch batch = draw(arguments);
  if (!arguments.output.empty()) write_output(arguments.output, batch_json(batch));
  if (takes_stdout(outputs)) return Code::ok;

  std::vector<std::int64_t> count(batch.catalog.buckets.size());
  std::int64_t tokens = 0, video_tokens = 0;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const Bucket& bucket = batch.bucket_of(static_cast<SequenceIndex>(i));
    ++count[batch.sequences[i].bucket];
    tokens += bucket.tokens.value;
    if (bucket.kind == MediaKind::video) video_tokens += bucket.tokens.value;
  }
  const double share = tokens == 0 ? 0 : static_cast<double>(video_tokens) / static_cast<double>(tokens);
  Table table({"bucket", "kind", "tokens each", "sequences", "tokens"});
  auto rows = nlohmann::ordered_json::array();
  for (std::size_t b = 0; b < count.size(); ++b) {
    const Bucket& bucket = batch.catalog.buckets[b];
    if (count[b] == 0) continue;
    table.add({bucket.name, std::string(name(bucket.kind)), grouped(bucket.tokens.value), grouped(count[b]),
               grouped(count[b] * bucket.tokens.value)});
    rows.push_back({{"bucket", bucket.name}, {"tokens", bucket.tokens.value}, {"sequences", count[b]}});
  }
  if (arguments.json) {
    print_json({{"code", 0},
                {"ranks", batch.ranks},
                {"sequences", batch.sequences.size()},
                {"tokens", tokens},
                {"video_share", share},
                {"buckets", rows}});
    return Code::ok;
  }
  fmt::print("{} for {}: {} tokens, {} a rank, {:.1f}% in videos\n\n",
             plural(static_cast<std::int64_t>(batch.sequences.size()), "sequence"), plural(batch.ranks, "rank"),
             grouped(tokens), grouped(tokens / batch.ranks), 100 * share);
  table.print();
  return Code::ok;
}

}  // namespace

void add_batch(CLI::App& root, Run& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      root.add_subcommand("batch", "Draw a batch from a manifest, or make one of the evaluation's workloads");
  auto* manifest = command->add_option("MANIFEST", arguments->manifest, "CSV, JSON, JSON lines or Parquet");
  command->add_option("--rules", arguments->rules, "Bucket rules (TOML)")->needs(manifest);
  command
      ->add_option("--workload", arguments->workload,
                   fmt::format("SUITE:Vxx, e.g. high:V50; suites: {}", fmt::join(workload_suites(), ", ")))
      ->excludes(manifest);
  command->add_option("--ranks", arguments->ranks, "Ranks to draw for; a workload has its own number")
      ->check(whole_number(1, kMostRanks));
  command->add_option("--tokens-per-rank", arguments->tokens_per_rank, "Token budget of a rank")
      ->check(whole_number(1, kMostLong))
      ->needs(manifest);
  command
      ->add_option("--video-share", arguments->video_share,
                   "Part of the tokens in videos, 0 to 1; the rules' own when not given")
      ->check(number_between(0, 1))
      ->needs(manifest);
  command->add_option("--seed", arguments->seed, "Seed of the draw; a workload has nothing to draw and takes none")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str()
      ->needs(manifest);
  command->add_option("--skip", arguments->skip, "Batches to draw and pass over first: the batch of a later step")
      ->check(whole_number(0, kMostSkipped))
      ->needs(manifest);
  command->add_option("-o,--output", arguments->output, "Where to write the batch (JSON); - is stdout")
      ->check(file_name());
  command->add_flag("--json", arguments->json, "Print the summary as JSON");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace zellige::app
