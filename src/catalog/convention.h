// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zellige/catalog.h"

namespace zellige {

/// What a field of a record says about its sample.
enum class Meaning {
  path,         ///< of a sample of either kind
  video_path,   ///< of a video, whatever its extension
  image_path,   ///< of an image
  kind,         ///< "image" or "video"
  frames,       ///< whole number
  height,       ///< pixels
  width,        ///< pixels
  fps,          ///< decimal or ratio
  seconds,      ///< duration: decimal, clock or ISO 8601
  first_frame,  ///< of a longer video; with end_frame it gives the frames
  end_frame,    ///< one past the last
  span,         ///< begin and end in a longer video, as clock times; gives the seconds
};

struct ConventionField {
  Meaning meaning;
  std::string_view name;  ///< of the column
};

/// How one public project describes a data set. Of fields with the same meaning, the first that says something counts.
struct Convention {
  std::string_view name;
  std::vector<std::string_view> signature;  ///< fields that together tell this convention from the others
  std::vector<ConventionField> fields;
  std::optional<MediaKind> kind_otherwise;  ///< when neither a field, the extension nor the frames tell it
};

std::vector<std::string> convention_names();

/// The file's field of that name, blanks around it aside; null when there is none.
const std::string* field_named(std::string_view name, const std::vector<std::string>& field_names);

/// The convention of that name, whose signature must be among the file's fields; or the one that the fields tell when
/// `name` is empty. Errors: Code::input naming the file, its fields and what would be right.
const Convention& find_convention(const std::string& path, const std::string& name,
                                  const std::vector<std::string>& field_names);

}  // namespace zellige
