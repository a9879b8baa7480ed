// SPDX-License-Identifier: Apache-2.0
#include "catalog/sample_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "catalog/number_text.h"

namespace zellige {
namespace {

constexpr double kMostCount = std::numeric_limits<int>::max();
constexpr double kMostRate = 1e6;     // frames a second; microscopy stays below
constexpr double kMostSeconds = 1e9;  // 30 years

std::string shown(const Cell& cell) {
  if (const auto* text = std::get_if<std::string_view>(&cell)) return in_quotes(*text);
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return std::to_string(*whole);
  if (const auto* truth = std::get_if<bool>(&cell)) return *truth ? "true" : "false";
  if (const auto* other = std::get_if<OtherValue>(&cell)) return std::string(other->kind);
  if (const auto* value = std::get_if<double>(&cell)) {
    std::array<char, 32> buffer{};
    return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), *value).ptr};
  }
  return "missing";
}

/// A row that can't be a sample.
struct BrokenRow {
  std::string reason;
};

[[noreturn]] void refuse(const std::string& field, const Cell& cell, const char* expected) {
  throw BrokenRow{"column " + field + " is " + shown(cell) + "; " + expected};
}

/// Where a number was looked for, and what stood there when it is none.
struct Number {
  std::optional<double> value;
  std::string_view field;  // empty: the file has no such field
  Cell cell;
  bool is_zero = false;  // which says unknown, in another way

  /// E.g. "num_frames is 0", "fps is empty", "num_frames is missing", "no column for height".
  std::string why_none(std::string_view meaning) const {
    if (field.empty()) return std::string("no column for ").append(meaning);
    const std::string name(field);
    if (std::holds_alternative<std::monostate>(cell)) return name + " is missing";
    if (is_zero) return name + " is 0";
    const auto* text = std::get_if<std::string_view>(&cell);
    if (text != nullptr) return name + " is " + (trimmed(*text).empty() ? "empty" : shown(cell));
    return name + " is NaN";
  }
};

std::optional<double> parsed(Meaning meaning, std::string_view text) {
  switch (meaning) {
    case Meaning::fps: return decimal_or_ratio(text);
    case Meaning::seconds: return duration_seconds(text);
    case Meaning::span: return span_seconds(text);
    default: return decimal(text);
  }
}

bool is_count(Meaning meaning) {
  return meaning != Meaning::fps && meaning != Meaning::seconds && meaning != Meaning::span;
}

/// Checks a number by its meaning; refuses what can't be, and returns none for zero where zero means unknown.
std::optional<double> checked(Meaning meaning, const std::string& field, const Cell& cell, double value) {
  if (is_count(meaning) && std::floor(value) != value) refuse(field, cell, "it must be a whole number");
  if (value < 0) refuse(field, cell, "it must not be negative");
  const double most = meaning == Meaning::fps ? kMostRate : is_count(meaning) ? kMostCount : kMostSeconds;
  if (value > most) refuse(field, cell, "it is too large");
  if (value == 0 && meaning != Meaning::first_frame) return std::nullopt;
  return value;
}

/// Reads a number of a record, and notes what stood there.
void read_number(Meaning meaning, const std::string& field, const Cell& cell, Number& into) {
  into = Number{std::nullopt, field, cell, false};
  double value = 0;
  if (const auto* text = std::get_if<std::string_view>(&cell)) {
    const std::string_view bare = trimmed(*text);
    if (says_nothing(bare)) return;
    const auto number = parsed(meaning, bare);
    if (!number) {
      refuse(field, cell,
             meaning == Meaning::span      ? "it must be two clock times, as in ['0:00:01.5', '0:00:04']"
             : meaning == Meaning::seconds ? "it must be seconds, as in 12.5, 0:00:12.5 or PT00H00M12S"
                                           : "it must be a number");
    }
    value = *number;
  } else if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
    value = static_cast<double>(*whole);
  } else if (const auto* fraction = std::get_if<double>(&cell)) {
    if (std::isnan(*fraction)) return;
    value = *fraction;
  } else if (std::holds_alternative<std::monostate>(cell)) {
    return;
  } else {
    refuse(field, cell, "it must be a number");
  }
  into.value = checked(meaning, field, cell, value);
  into.is_zero = !into.value;
}

std::optional<int> count_of(const Number& number) {
  if (!number.value) return std::nullopt;
  return static_cast<int>(*number.value);
}

bool says_nothing(const Cell& cell) {
  if (const auto* text = std::get_if<std::string_view>(&cell)) return trimmed(*text).empty();
  return std::holds_alternative<std::monostate>(cell);
}

std::string path_of(const std::string& field, const Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return std::to_string(*whole);
  const auto* text = std::get_if<std::string_view>(&cell);
  if (text == nullptr) refuse(field, cell, "it must be text");
  if (const auto bad = first_bad_utf8(*text)) {
    throw BrokenRow{"column " + field + " is not UTF-8 at byte " + std::to_string(*bad + 1)};
  }
  if (const std::string why = why_not_printable(*text); !why.empty()) {
    throw BrokenRow{"column " + field + " is " + shown(cell) + "; it must be printable text, without " + why};
  }
  return std::string(*text);
}

/// The kind that a file name tells; none for extensions that hold either (gif, webp) or that are not known.
std::optional<MediaKind> kind_by_extension(std::string_view path) {
  const auto dot = path.find_last_of('.');
  if (dot == std::string_view::npos || path.size() - dot > 6) return std::nullopt;
  std::string extension;
  for (const char c : path.substr(dot + 1)) extension += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  constexpr std::array<std::string_view, 9> kImages = {"jpg",  "jpeg", "png",  "bmp", "tif",
                                                       "tiff", "heic", "avif", "jxl"};
  constexpr std::array<std::string_view, 10> kVideos = {"mp4", "mov", "mkv",  "webm", "avi",
                                                        "m4v", "mpg", "mpeg", "wmv",  "flv"};
  if (std::find(kImages.begin(), kImages.end(), extension) != kImages.end()) return MediaKind::image;
  if (std::find(kVideos.begin(), kVideos.end(), extension) != kVideos.end()) return MediaKind::video;
  return std::nullopt;
}

std::optional<MediaKind> kind_named(const std::string& field, const Cell& cell) {
  if (says_nothing(cell)) return std::nullopt;
  const auto* text = std::get_if<std::string_view>(&cell);
  if (text == nullptr) refuse(field, cell, "it must be \"image\" or \"video\"");
  for (const MediaKind kind : {MediaKind::image, MediaKind::video}) {
    if (trimmed(*text) == name(kind)) return kind;
  }
  refuse(field, cell, "it must be \"image\" or \"video\"");
}

/// All that a record says, by meaning.
struct Reading {
  std::string path;
  std::optional<MediaKind> kind;  // named, or told by the path's column
  Number frames, height, width, fps, seconds, first_frame, end_frame;

  Number* number(Meaning meaning) {
    switch (meaning) {
      case Meaning::frames: return &frames;
      case Meaning::height: return &height;
      case Meaning::width: return &width;
      case Meaning::fps: return &fps;
      case Meaning::seconds:
      case Meaning::span: return &seconds;
      case Meaning::first_frame: return &first_frame;
      case Meaning::end_frame: return &end_frame;
      default: return nullptr;
    }
  }
};

/// Frames of a video that states none: of its place in a longer video, or of its duration.
std::optional<int> derived_frames(const Reading& reading, std::optional<double> rate) {
  if (reading.first_frame.value && reading.end_frame.value) {
    const double frames = *reading.end_frame.value - *reading.first_frame.value;
    if (frames <= 0) {
      throw BrokenRow{"column " + std::string(reading.end_frame.field) + " is " + shown(reading.end_frame.cell) +
                      "; it must be above " + std::string(reading.first_frame.field) + ", which is " +
                      shown(reading.first_frame.cell)};
    }
    return static_cast<int>(frames);
  }
  if (!rate || !reading.seconds.value) return std::nullopt;
  const double frames = std::round(*rate * *reading.seconds.value);
  if (frames > kMostCount) {
    throw BrokenRow{"column " + std::string(reading.seconds.field) + " is " + shown(reading.seconds.cell) +
                    "; fps x seconds makes too many frames"};
  }
  if (frames < 1) return std::nullopt;
  return static_cast<int>(frames);
}

std::string why_no_frames(const Reading& reading, std::optional<double> rate) {
  std::string why = "frames unknown: " + reading.frames.why_none("frames");
  if (rate && reading.seconds.value) return why + ", and fps x seconds is below half a frame";
  if (!rate) why += ", " + reading.fps.why_none("fps");
  if (!reading.seconds.value) why += ", " + reading.seconds.why_none("seconds");
  return why;
}

}  // namespace

SampleReader::SampleReader(const Convention& convention, const std::vector<std::string>& field_names,
                           const ManifestOptions& options, Manifest& manifest)
    : convention_(convention), options_(options), manifest_(manifest) {
  for (const ConventionField& field : convention.fields) {
    const std::string* name = field_named(field.name, field_names);
    if (name == nullptr) continue;
    wanted_.push_back(*name);
    meanings_.push_back(field.meaning);
  }
}

void SampleReader::broken(std::int64_t row, std::string reason) {
  manifest_.skipped.push_back({row, "", std::move(reason)});
}

void SampleReader::record(std::int64_t row, std::span<const Cell> cells) {
  Sample sample;
  sample.row = row;
  if (std::all_of(cells.begin(), cells.end(), [](const Cell& cell) { return says_nothing(cell); })) {
    const bool absent = std::all_of(cells.begin(), cells.end(), [](const Cell& cell) { return cell.index() == 0; });
    return broken(row, absent ? "none of " + joined(wanted_) + " is there" : "the row is empty");
  }
  Reading reading;
  try {
    bool has_path = false;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string& field = wanted_[i];
      if (Number* number = reading.number(meanings_[i])) {
        if (!number->value) read_number(meanings_[i], field, cells[i], *number);
      } else if (meanings_[i] == Meaning::kind) {
        if (const auto kind = kind_named(field, cells[i])) reading.kind = kind;
      } else if (!has_path && !says_nothing(cells[i])) {
        reading.path = path_of(field, cells[i]);
        has_path = true;
        if (meanings_[i] == Meaning::video_path && !reading.kind) reading.kind = MediaKind::video;
        if (meanings_[i] == Meaning::image_path && !reading.kind) reading.kind = MediaKind::image;
      }
    }
    if (!has_path) throw BrokenRow{"no path: column " + wanted_.front() + " is empty"};

    if (!reading.kind) reading.kind = kind_by_extension(reading.path);
    if (!reading.kind && reading.frames.value) {
      reading.kind = *reading.frames.value == 1 ? MediaKind::image : MediaKind::video;
    }
    if (!reading.kind) reading.kind = convention_.kind_otherwise;
    if (!reading.kind) throw BrokenRow{"neither a column nor the file's extension says whether it is image or video"};
    sample.kind = *reading.kind;

    if (sample.kind == MediaKind::image && reading.frames.value && *reading.frames.value != 1) {
      refuse(std::string(reading.frames.field), reading.frames.cell, "an image has 1 frame");
    }
    sample.height = count_of(reading.height);
    sample.width = count_of(reading.width);
    // A size of 0 is how Open-Sora's tools write a file that can't be read: nothing to assume there.
    if (!sample.height && !sample.width && !reading.height.is_zero && !reading.width.is_zero) {
      sample.height = options_.assumed_height;
      sample.width = options_.assumed_width;
    }
    sample.fps = reading.fps.value;
    sample.seconds = reading.seconds.value;
    std::optional<double> rate = sample.fps;
    if (!rate && !reading.fps.is_zero) rate = options_.assumed_fps;
    if (sample.kind == MediaKind::image) {
      sample.frames = 1;
    } else {
      sample.frames = reading.frames.value ? count_of(reading.frames) : derived_frames(reading, rate);
      if (!sample.frames) sample.why_unusable = why_no_frames(reading, rate);
    }
    const auto lacks = [&](const std::optional<int>& size, const Number& number, const char* what) {
      if (size) return;
      if (!sample.why_unusable.empty()) sample.why_unusable += "; ";
      sample.why_unusable += what;
      sample.why_unusable += " unknown: ";
      sample.why_unusable += number.why_none(what);
    };
    lacks(sample.height, reading.height, "height");
    lacks(sample.width, reading.width, "width");
  } catch (const BrokenRow& broken_row) {
    manifest_.skipped.push_back({row, std::move(reading.path), broken_row.reason});
    return;
  }
  sample.path = std::move(reading.path);
  manifest_.samples.push_back(std::move(sample));
}

}  // namespace zellige
