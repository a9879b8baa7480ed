// SPDX-License-Identifier: Apache-2.0
#include "zellige/manifest.h"

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "catalog/convention.h"
#include "catalog/number_text.h"
#include "catalog/record.h"
#include "catalog/sample_reader.h"

namespace zellige {
namespace {

constexpr const char* kWhere = "catalog.read_manifest";
constexpr std::uintmax_t kLargestMergeFile = 1 << 20;

void check(const ManifestOptions& options) {
  const auto positive = [](const char* what, double value) {
    if (value > 0) return;
    throw Error(Code::input, kWhere, std::string(what) + " " + std::to_string(value) + " must be positive");
  };
  if (options.assumed_height.has_value() != options.assumed_width.has_value()) {
    throw Error(Code::input, kWhere, "a height and a width are assumed together, or neither");
  }
  if (options.assumed_height) positive("assumed height", *options.assumed_height);
  if (options.assumed_width) positive("assumed width", *options.assumed_width);
  if (options.assumed_fps) positive("assumed fps", *options.assumed_fps);
}

struct MergeLine {
  std::string folder;
  std::string file;
};

/// The lines of FastVideo's merge file, "folder,file" each; none when the file is no such list.
std::vector<MergeLine> merge_lines(const std::string& path) {
  if (std::filesystem::file_size(path) > kLargestMergeFile) return {};
  const std::string text = read_text_file(path);
  std::vector<MergeLine> lines;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto newline = rest.find('\n');
    const std::string_view line = trimmed(rest.substr(0, newline));
    rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
    if (line.empty()) continue;
    const auto comma = line.find(',');
    if (comma == std::string_view::npos || line.find(',', comma + 1) != std::string_view::npos) return {};
    const std::string_view file = trimmed(line.substr(comma + 1));
    if (!file.ends_with(".json") && !file.ends_with(".jsonl")) return {};
    lines.push_back({std::string(trimmed(line.substr(0, comma))), std::string(file)});
  }
  return lines;
}

[[noreturn]] void refuse_empty(const std::string& path) {
  throw Error(Code::input, kWhere,
              in_quotes(path) +
                  " holds no records; at least one is needed, with a path and, to be used, a size (and the "
                  "frames of a clip)");
}

Manifest read_one(const std::string& path, Container container, const ManifestOptions& options) {
  Manifest manifest;
  manifest.path = path;
  const std::vector<std::string> names = field_names(path, container);
  if (names.empty()) refuse_empty(path);
  const Convention& convention = find_convention(path, options.format, names);
  manifest.format = convention.name;
  SampleReader reader(convention, names, options, manifest);
  for (const std::string& name : reader.wanted()) {
    if (std::count(names.begin(), names.end(), name) < 2) continue;
    throw Error(Code::input, kWhere, in_quotes(path) + " has column " + in_quotes(name) + " twice");
  }
  read_records(path, container, reader.wanted(), reader);
  if (manifest.samples.empty() && manifest.skipped.empty()) refuse_empty(path);
  return manifest;
}

Manifest read_merged(const std::string& path, const std::vector<MergeLine>& lines, const ManifestOptions& options) {
  Manifest all;
  all.path = path;
  std::int64_t rows = 0;
  for (const MergeLine& line : lines) {
    // The list names its files as seen from where it lies.
    const std::string file = std::filesystem::path(path).parent_path() / line.file;
    Manifest part = read_one(file, container_of(file), options);
    if (!all.format.empty() && part.format != all.format) {
      throw Error(Code::input, kWhere,
                  in_quotes(path) + " lists files of two formats, " + all.format + " and " + part.format + " (" +
                      in_quotes(line.file) + ")");
    }
    all.format = part.format;
    const auto place = [&](std::int64_t& row, std::string& sample_path) {
      row += rows;
      if (!sample_path.empty()) sample_path = std::filesystem::path(line.folder) / sample_path;
    };
    for (Sample& sample : part.samples) {
      place(sample.row, sample.path);
      all.samples.push_back(std::move(sample));
    }
    for (SkippedSample& skipped : part.skipped) {
      place(skipped.row, skipped.path);
      skipped.reason = line.file + ": " + skipped.reason;
      all.skipped.push_back(std::move(skipped));
    }
    rows += static_cast<std::int64_t>(part.samples.size() + part.skipped.size());
  }
  return all;
}

}  // namespace

std::vector<std::string> manifest_formats() { return convention_names(); }

Manifest read_manifest(const std::string& path, const ManifestOptions& options) {
  check(options);
  const std::vector<std::string> formats = manifest_formats();
  if (!options.format.empty() && std::find(formats.begin(), formats.end(), options.format) == formats.end()) {
    const std::string near = nearest(options.format, formats);
    throw Error(Code::input, kWhere,
                "manifest format " + in_quotes(options.format) + " is not known; " +
                    (near.empty() ? "" : "did you mean " + in_quotes(near) + "? ") + "Known: " + joined(formats));
  }
  const Container container = container_of(path);
  if (container == Container::csv) {
    if (const auto lines = merge_lines(path); !lines.empty()) return read_merged(path, lines, options);
  }
  return read_one(path, container, options);
}

}  // namespace zellige
