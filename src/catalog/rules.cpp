// SPDX-License-Identifier: Apache-2.0
#include "zellige/manifest.h"

#include <limits>
#include <unordered_set>

#include "base/json.h"
#include "catalog/musubi_rules.h"
#include "catalog/toml_document.h"

namespace zellige {
namespace {

int size(const JsonValue& value) { return static_cast<int>(value.integer(1, std::numeric_limits<int>::max())); }

MediaKind kind_from(const JsonValue& value) {
  for (const MediaKind kind : {MediaKind::image, MediaKind::video}) {
    if (value.string() == name(kind)) return kind;
  }
  value.refuse("it must be \"image\" or \"video\"");
}

RuleBucket bucket_from(const JsonValue& value, const ModelGeometry& model) {
  expect_keys(value, {"name", "kind", "size", "frames", "orientation"});
  JsonObject table(value);
  RuleBucket bucket;
  const JsonValue name = table.at("name");
  bucket.name = name.string();
  if (bucket.name.empty()) name.refuse("it must not be empty");
  bucket.kind = kind_from(table.at("kind"));
  const JsonValue size_value = table.at("size");
  const std::vector<JsonValue> sides = size_value.array();
  if (sides.size() != 2) size_value.refuse("it must be [height, width]");
  bucket.height = size(sides[0]);
  bucket.width = size(sides[1]);
  if (table.has("frames")) {
    const JsonValue frames = table.at("frames");
    bucket.frames = size(frames);
    if (bucket.kind == MediaKind::image && bucket.frames != 1) frames.refuse("an image has 1 frame");
  } else if (bucket.kind == MediaKind::video) {
    table.at("frames");  // refuses: a video bucket without frames has no length
  }
  if (table.has("orientation")) {
    const JsonValue orientation = table.at("orientation");
    if (orientation.string() != "any" && orientation.string() != "fixed") {
      orientation.refuse("it must be \"any\" (also takes height and width swapped) or \"fixed\"");
    }
    bucket.any_orientation = orientation.string() == "any";
  }
  const std::string unfit = why_unfit(model, bucket.frames, bucket.height, bucket.width);
  if (!unfit.empty()) value.refuse("its size does not fit " + model.name + ": " + unfit);
  return bucket;
}

void read_sampling(const JsonValue& value, BucketRules& rules) {
  expect_keys(value, {"fps", "video_share", "max_tokens", "on_unfit"});
  JsonObject table(value);
  if (table.has("fps")) {
    const JsonValue fps = table.at("fps");
    rules.fps = fps.number();
    if (*rules.fps <= 0) fps.refuse("it must be positive");
  }
  if (table.has("video_share")) {
    const JsonValue share = table.at("video_share");
    rules.video_share = share.number();
    if (rules.video_share < 0 || rules.video_share > 1) share.refuse("it must be between 0 and 1");
  }
  if (table.has("max_tokens")) rules.max_tokens = Tokens{table.at("max_tokens").integer(1)};
  if (table.has("on_unfit")) {
    const JsonValue on_unfit = table.at("on_unfit");
    if (on_unfit.string() != "skip" && on_unfit.string() != "error")
      on_unfit.refuse("it must be \"skip\" or \"error\"");
    rules.on_unfit = on_unfit.string() == "error" ? OnUnfit::error : OnUnfit::skip;
  }
}

ModelGeometry model_of(const JsonValue& value) {
  expect_keys(value, {"preset"});
  JsonObject table(value);
  const JsonValue preset = table.at("preset");
  const std::string& name = preset.string();
  const std::vector<std::string> known = model_preset_names();
  for (const std::string& candidate : known) {
    if (candidate == name) return model_preset(name);
  }
  const std::string near = nearest(name, known);
  preset.refuse("it must be one of " + joined(known) + (near.empty() ? "" : "; did you mean " + in_quotes(near) + "?"));
}

}  // namespace

BucketRules read_rules(const std::string& path) {
  const JsonDocument document = toml_document(path);
  JsonObject root(document.root());
  if (root.has("datasets")) return musubi_rules(document, path);
  for (const char* key : {"directory", "resolutions", "frame_buckets"}) {
    if (!root.has(key)) continue;
    throw Error(Code::input, "catalog.read_rules",
                in_quotes(path) + " has " + in_quotes(key) +
                    " and looks like a diffusion-pipe dataset file, which is not read; write its sizes as [[bucket]] "
                    "tables of a rules.toml");
  }
  expect_keys(document.root(), {"model", "bucket", "sampling"});
  BucketRules rules;
  rules.path = path;
  rules.model = model_of(root.at("model"));
  const JsonValue buckets = root.at("bucket");
  std::unordered_set<std::string> names;
  for (const JsonValue& bucket : buckets.array()) {
    rules.buckets.push_back(bucket_from(bucket, rules.model));
    if (!names.insert(rules.buckets.back().name).second) {
      bucket.refuse("another bucket is already named " + in_quotes(rules.buckets.back().name));
    }
  }
  if (rules.buckets.empty()) buckets.refuse("at least one [[bucket]] is needed");
  if (root.has("sampling")) read_sampling(root.at("sampling"), rules);
  return rules;
}

}  // namespace zellige
