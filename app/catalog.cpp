// SPDX-License-Identifier: Apache-2.0
// zellige catalog: what a manifest holds, in buckets.
#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "numbers.h"
#include "option_values.h"
#include "outputs.h"
#include "planning.h"
#include "subcommands.h"
#include "table.h"
#include "zellige/manifest.h"
#include "zellige/text.h"

namespace zellige::app {
namespace {

struct Arguments {
  std::string manifest;
  std::string rules;
  std::string model = "wan2.1-t2v-1.3b";
  std::string output;
  ManifestOptions options;
  int height = 0;
  int width = 0;
  double fps = 0;
  std::size_t show_skipped = 10;
  bool json = false;
};

std::string size_text(int frames, int height, int width) {
  return frames == 1 ? fmt::format("{}x{}", height, width) : fmt::format("{}x{}x{}", frames, height, width);
}

// Skipped samples by reason, most frequent first, then the first few by name: nothing is dropped silently, and a
// million equal rows don't fill the screen.
void print_skipped(const std::vector<SkippedSample>& skipped, std::size_t show) {
  if (skipped.empty()) return;
  fmt::print("\n{} skipped", plural(static_cast<std::int64_t>(skipped.size()), "sample"));
  fmt::print("{}\n", skipped.size() > show ? fmt::format(", the first {} (--show-skipped N for more):", show) : ":");
  for (std::size_t i = 0; i < std::min(show, skipped.size()); ++i) {
    fmt::print("  row {}{}: {}\n", skipped[i].row,
               skipped[i].path.empty() ? "" : " (" + printable(skipped[i].path) + ")", printable(skipped[i].reason));
  }
}

nlohmann::ordered_json to_json(const std::vector<SkippedSample>& skipped) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& sample : skipped)
    list.push_back({{"row", sample.row}, {"path", sample.path}, {"reason", sample.reason}});
  return list;
}

// Rows that describe no sample count too: what is used and what is skipped add up to it.
std::int64_t all_rows(const Manifest& manifest) {
  return static_cast<std::int64_t>(manifest.samples.size() + manifest.skipped.size());
}

// Without rules: the sizes that occur, and whether each makes whole patches as it is.
Code show_sizes(const Arguments& arguments, const Manifest& manifest) {
  const ModelGeometry model = model_preset(arguments.model);
  std::map<std::tuple<MediaKind, int, int, int>, std::int64_t> sizes;
  std::vector<SkippedSample> skipped = manifest.skipped;
  for (const auto& sample : manifest.samples) {
    if (sample.usable()) {
      ++sizes[{sample.kind, *sample.frames, *sample.height, *sample.width}];
    } else {
      skipped.push_back({sample.row, sample.path, sample.why_unusable});
    }
  }
  std::stable_sort(skipped.begin(), skipped.end(), [](const auto& a, const auto& b) { return a.row < b.row; });
  std::int64_t usable = 0, exact = 0, exact_tokens = 0;
  Table table({"kind", "size", "samples", "tokens each"});
  auto rows = nlohmann::ordered_json::array();
  for (const auto& [size, count] : sizes) {
    const auto& [kind, frames, height, width] = size;
    usable += count;
    std::string tokens = "needs bucketing";
    nlohmann::ordered_json row = {{"kind", std::string(name(kind))},
                                  {"frames", frames},
                                  {"height", height},
                                  {"width", width},
                                  {"samples", count},
                                  {"tokens", nullptr}};
    if (why_unfit(model, frames, height, width).empty()) {
      const Tokens each = sequence_tokens(model, frames, height, width);
      tokens = grouped(each.value);
      row["tokens"] = each.value;
      exact += count;
      exact_tokens += each.value * count;
    }
    table.add({std::string(name(kind)), size_text(frames, height, width), grouped(count), tokens});
    rows.push_back(std::move(row));
  }
  if (arguments.json) {
    print_json({{"code", 0},
                {"manifest", manifest.path},
                {"format", manifest.format},
                {"samples", all_rows(manifest)},
                {"usable", usable},
                {"exact", exact},
                {"exact_tokens", exact_tokens},
                {"sizes", rows},
                {"skipped", to_json(skipped)}});
    return Code::ok;
  }
  fmt::print("{} ({}): {}, {} with a known size, {} that {} trains as they are ({} tokens)\n\n",
             printable(manifest.path), manifest.format, plural(all_rows(manifest), "sample"), grouped(usable),
             grouped(exact), model.name, grouped(exact_tokens));
  table.print();
  print_skipped(skipped, arguments.show_skipped);
  return Code::ok;
}

Code show_buckets(const Arguments& arguments, const Manifest& manifest) {
  const BucketedSamples samples = apply_rules(manifest, read_rules(arguments.rules));
  if (!arguments.output.empty()) write_output(arguments.output, catalog_json(samples.catalog));
  if (arguments.output == "-") return Code::ok;
  std::int64_t used = 0, tokens = 0;
  Table table({"bucket", "kind", "size", "tokens each", "samples", "tokens"});
  auto rows = nlohmann::ordered_json::array();
  for (std::size_t b = 0; b < samples.catalog.buckets.size(); ++b) {
    const Bucket& bucket = samples.catalog.buckets[b];
    const std::int64_t count = samples.count[b];
    used += count;
    tokens += count * bucket.tokens.value;
    table.add({bucket.name, std::string(name(bucket.kind)), size_text(bucket.frames, bucket.height, bucket.width),
               grouped(bucket.tokens.value), grouped(count), grouped(count * bucket.tokens.value)});
    rows.push_back({{"bucket", bucket.name},
                    {"kind", std::string(name(bucket.kind))},
                    {"frames", bucket.frames},
                    {"height", bucket.height},
                    {"width", bucket.width},
                    {"tokens", bucket.tokens.value},
                    {"samples", count}});
  }
  if (arguments.json) {
    print_json({{"code", 0},
                {"manifest", manifest.path},
                {"format", manifest.format},
                {"samples", all_rows(manifest)},
                {"used", used},
                {"tokens", tokens},
                {"buckets", rows},
                {"skipped", to_json(samples.skipped)}});
    return Code::ok;
  }
  fmt::print("{} ({}): {}, {} in {}, {} tokens\n\n", manifest.path, manifest.format,
             plural(all_rows(manifest), "sample"), grouped(used),
             plural(static_cast<std::int64_t>(samples.catalog.buckets.size()), "bucket"), grouped(tokens));
  table.print();
  for (const auto& note : samples.notes) fmt::print(stderr, "note: {}\n", printable(note));
  print_skipped(samples.skipped, arguments.show_skipped);
  return Code::ok;
}

Code run(Arguments arguments) {
  if (arguments.height > 0) arguments.options.assumed_height = arguments.height;
  if (arguments.width > 0) arguments.options.assumed_width = arguments.width;
  if (arguments.fps > 0) arguments.options.assumed_fps = arguments.fps;
  check_outputs("catalog", {{"MANIFEST", arguments.manifest}, {"--rules", arguments.rules}}, {{"-o", arguments.output}},
                arguments.json);
  const Manifest manifest = read_manifest(arguments.manifest, arguments.options);
  return arguments.rules.empty() ? show_sizes(arguments, manifest) : show_buckets(arguments, manifest);
}

}  // namespace

void add_catalog(CLI::App& root, Run& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = root.add_subcommand("catalog", "Read a manifest and show its samples in buckets");
  command->add_option("MANIFEST", arguments->manifest, "CSV, JSON, JSON lines or Parquet")->required();
  auto* rules =
      command->add_option("--rules", arguments->rules, "Bucket rules (rules.toml or a musubi-tuner dataset file)");
  command->add_option(
      "--format", arguments->options.format,
      fmt::format("Convention of the manifest, found out when not given: {}", fmt::join(manifest_formats(), ", ")));
  command->add_option("--height", arguments->height, "Height in pixels of samples whose row has none")
      ->check(whole_number(1, kMostInt));
  command->add_option("--width", arguments->width, "Width in pixels of samples whose row has none")
      ->check(whole_number(1, kMostInt));
  command->add_option("--fps", arguments->fps, "Frame rate of videos whose row has none")->check(number_above(0, 1e6));
  command->add_option("--model", arguments->model, "Geometry that counts tokens where there are no rules")
      ->capture_default_str()
      ->excludes(rules);
  command->add_option("-o,--output", arguments->output, "Where to write the catalog (JSON); - is stdout")
      ->check(file_name())
      ->needs(rules);
  command->add_option("--show-skipped", arguments->show_skipped, "How many skipped samples to list")
      ->check(whole_number(0, kMostLong))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print as JSON, with every skipped sample");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace zellige::app
