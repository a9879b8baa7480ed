// SPDX-License-Identifier: Apache-2.0
#include "catalog/convention.h"

#include <algorithm>

#include "base/json.h"
#include "catalog/number_text.h"

namespace zellige {
namespace {

using enum Meaning;

// Ordered: the first whose signature is in the file is taken, so the more telling ones stand before the others.
const std::vector<Convention>& conventions() {
  static const std::vector<Convention> all = {
      // MiraData: clips cut from videos by frame numbers; no size.
      {"miradata",
       {"video_id", "start_frame", "end_frame", "fps"},
       {{video_path, "index"},
        {video_path, "video_id"},
        {first_frame, "start_frame"},
        {end_frame, "end_frame"},
        {fps, "fps"}},
       MediaKind::video},
      // Koala-36M: clips cut from videos by clock times; neither size nor rate.
      {"koala36m", {"videoID", "timestamp"}, {{video_path, "videoID"}, {span, "timestamp"}}, MediaKind::video},
      // OpenVid-1M: no size.
      {"openvid",
       {"video", "frame", "fps", "seconds"},
       {{video_path, "video"}, {frames, "frame"}, {fps, "fps"}, {seconds, "seconds"}},
       MediaKind::video},
      // WebVid: only a duration.
      {"webvid", {"contentUrl", "duration"}, {{video_path, "contentUrl"}, {seconds, "duration"}}, MediaKind::video},
      // FastVideo's preprocessed Parquet.
      {"fastvideo-latents",
       {"file_name", "media_type", "num_frames", "height", "width"},
       {{path, "file_name"},
        {kind, "media_type"},
        {frames, "num_frames"},
        {height, "height"},
        {width, "width"},
        {fps, "fps"},
        {seconds, "duration_sec"}},
       std::nullopt},
      // FastVideo / Open-Sora-Plan: size nested in `resolution`, the caption in `cap`.
      {"fastvideo",
       {"path", "cap"},
       {{path, "path"},
        {frames, "num_frames"},
        {height, "resolution.height"},
        {width, "resolution.width"},
        {fps, "fps"},
        {seconds, "duration"}},
       std::nullopt},
      // FastVideo's validation lists: the image is what the video begins with.
      {"fastvideo-i2v",
       {"prompt", "image_path"},
       {{video_path, "image_path"}, {frames, "num_frames"}, {height, "height"}, {width, "width"}, {fps, "fps"}},
       MediaKind::video},
      // EasyAnimate / VideoX-Fun: what has no type is an image.
      {"videoxfun",
       {"file_path", "text"},
       {{path, "file_path"},
        {kind, "type"},
        {frames, "num_frames"},
        {height, "height"},
        {width, "width"},
        {fps, "fps"},
        {seconds, "duration"}},
       MediaKind::image},
      {"videotuna",
       {"path", "caption", "frames", "height", "width"},
       {{path, "path"}, {frames, "frames"}, {height, "height"}, {width, "width"}, {fps, "fps"}},
       std::nullopt},
      {"opensora",
       {"path", "num_frames", "height", "width"},
       {{path, "path"}, {frames, "num_frames"}, {height, "height"}, {width, "width"}, {fps, "fps"}},
       std::nullopt},
      // DiffSynth and finetrainers: the column's name tells the kind; sizes where somebody added them.
      {"diffsynth",
       {"prompt", "video"},
       {{video_path, "video"},
        {image_path, "image"},
        {frames, "num_frames"},
        {height, "height"},
        {width, "width"},
        {fps, "fps"}},
       std::nullopt},
      {"diffsynth",
       {"prompt", "image"},
       {{image_path, "image"}, {frames, "num_frames"}, {height, "height"}, {width, "width"}},
       std::nullopt},
      // Records with the usual names, such as musubi-tuner's JSON lines.
      {"records",
       {},
       {{path, "path"},
        {path, "file_path"},
        {path, "file_name"},
        {video_path, "video_path"},
        {video_path, "video"},
        {image_path, "image_path"},
        {image_path, "image"},
        {kind, "type"},
        {kind, "media_type"},
        {frames, "num_frames"},
        {frames, "frames"},
        {height, "height"},
        {width, "width"},
        {height, "resolution.height"},
        {width, "resolution.width"},
        {fps, "fps"},
        {seconds, "duration"},
        {seconds, "seconds"}},
       std::nullopt},
  };
  return all;
}

constexpr std::size_t kFieldsListed = 24;

bool is_path(Meaning meaning) { return meaning == path || meaning == video_path || meaning == image_path; }

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw Error(Code::input, "catalog.read_manifest", in_quotes(file) + " " + what);
}

std::vector<std::string> missing_of(const Convention& convention, const std::vector<std::string>& field_names) {
  std::vector<std::string> missing;
  for (const std::string_view name : convention.signature) {
    if (field_named(name, field_names) == nullptr) missing.emplace_back(name);
  }
  const bool has_path =
      std::any_of(convention.fields.begin(), convention.fields.end(), [&](const ConventionField& field) {
        return is_path(field.meaning) && field_named(field.name, field_names) != nullptr;
      });
  if (missing.empty() && !has_path) missing.emplace_back("path");
  return missing;
}

std::string listed(const std::vector<std::string>& field_names) {
  std::vector<std::string> quoted;
  for (const std::string& name : field_names) {
    if (quoted.size() == kFieldsListed) {
      quoted.push_back("and " + std::to_string(field_names.size() - kFieldsListed) + " more");
      break;
    }
    quoted.push_back(in_quotes(name));
  }
  return quoted.empty() ? "no fields" : "fields " + joined(quoted);
}

}  // namespace

const std::string* field_named(std::string_view name, const std::vector<std::string>& field_names) {
  const auto found = std::find_if(field_names.begin(), field_names.end(),
                                  [&](const std::string& field) { return trimmed(field) == name; });
  return found == field_names.end() ? nullptr : &*found;
}

std::vector<std::string> convention_names() {
  std::vector<std::string> names;
  for (const Convention& convention : conventions()) {
    if (names.empty() || names.back() != convention.name) names.emplace_back(convention.name);
  }
  return names;
}

const Convention& find_convention(const std::string& path, const std::string& name,
                                  const std::vector<std::string>& field_names) {
  std::vector<std::string> missing;
  bool known = false;
  for (const Convention& convention : conventions()) {
    if (!name.empty() && convention.name != name) continue;
    known = true;
    std::vector<std::string> lacks = missing_of(convention, field_names);
    if (lacks.empty()) return convention;
    if (missing.empty() || lacks.size() < missing.size()) missing = std::move(lacks);
  }
  if (!known) {
    throw Error(Code::input, "catalog.read_manifest",
                "manifest format " + in_quotes(name) + " is not known; known: " + joined(convention_names()));
  }
  const std::string near = nearest(missing.front(), field_names);
  if (!name.empty()) {
    refuse(path, "is not " + name + ": it lacks " + joined(missing) + " and has " + listed(field_names) +
                     (near.empty() ? "" : "; is " + in_quotes(near) + " misspelt?"));
  }
  const bool one_column = field_names.size() == 1 && field_names[0].find_first_of(";\t|") != std::string::npos;
  refuse(path, "follows no convention that is known (" + joined(convention_names()) + "): it has " +
                   listed(field_names) + (one_column ? "; columns must be separated by commas" : ""));
}

}  // namespace zellige
