// SPDX-License-Identifier: Apache-2.0
#include "catalog/catalog_json.h"

#include <array>
#include <limits>
#include <unordered_set>

namespace zellige {
namespace {

constexpr const char* kFormat = "zellige.catalog";
constexpr int kVersion = 1;
constexpr std::int64_t kMostOfAnything = 1 << 20;  // heads, layers, strides: far above any model, far below overflow

int small_integer(const JsonValue& value, std::int64_t least) {
  return static_cast<int>(value.integer(least, kMostOfAnything));
}

int size(const JsonValue& value) { return static_cast<int>(value.integer(1, std::numeric_limits<int>::max())); }

std::string text_in(const JsonValue& value) {
  if (value.string().empty()) value.refuse("it must not be empty");
  return value.string();
}

std::array<int, 3> three(const JsonValue& value) {
  const std::vector<JsonValue> items = value.array();
  if (items.size() != 3) value.refuse("it must have three numbers: frames, height, width");
  return {small_integer(items[0], 1), small_integer(items[1], 1), small_integer(items[2], 1)};
}

TextPlacement text_placement(const JsonValue& value) {
  for (TextPlacement placement : {TextPlacement::cross, TextPlacement::joint_front, TextPlacement::joint_rear}) {
    if (value.string() == name(placement)) return placement;
  }
  value.refuse("it must be \"cross\", \"joint-front\" or \"joint-rear\"");
}

MediaKind media_kind(const JsonValue& value) {
  for (MediaKind kind : {MediaKind::image, MediaKind::video}) {
    if (value.string() == name(kind)) return kind;
  }
  value.refuse("it must be \"image\" or \"video\"");
}

Bucket bucket_from(const JsonValue& value, const ModelGeometry& model) {
  JsonObject object(value);
  Bucket bucket;
  bucket.name = text_in(object.at("name"));
  bucket.kind = media_kind(object.at("kind"));
  const JsonValue frames = object.at("frames");
  bucket.frames = size(frames);
  bucket.height = size(object.at("height"));
  bucket.width = size(object.at("width"));
  const JsonValue tokens = object.at("tokens");
  bucket.tokens.value = tokens.integer(1);
  object.finish();
  if (bucket.kind == MediaKind::image && bucket.frames != 1) frames.refuse("an image has 1 frame");
  const std::string unfit = why_unfit(model, bucket.frames, bucket.height, bucket.width);
  if (!unfit.empty()) value.refuse("its size does not fit the model: " + unfit);
  const Tokens follows = sequence_tokens(model, bucket.frames, bucket.height, bucket.width);
  if (bucket.tokens != follows) {
    tokens.refuse("bucket " + in_quotes(bucket.name) + " of that size has " + std::to_string(follows.value));
  }
  return bucket;
}

OrderedJson to_json(const Bucket& bucket) {
  return {{"name", bucket.name},     {"kind", name(bucket.kind)}, {"frames", bucket.frames},
          {"height", bucket.height}, {"width", bucket.width},     {"tokens", bucket.tokens.value}};
}

}  // namespace

ModelGeometry model_from(const JsonValue& value) {
  JsonObject object(value);
  ModelGeometry model;
  model.name = text_in(object.at("name"));
  model.heads = small_integer(object.at("heads"), 1);
  const JsonValue kv_heads = object.at("kv_heads");
  model.kv_heads = small_integer(kv_heads, 1);
  model.head_dim = small_integer(object.at("head_dim"), 1);
  model.layers = small_integer(object.at("layers"), 1);
  model.ffn = small_integer(object.at("ffn"), 1);
  model.vae_stride = three(object.at("vae_stride"));
  model.patch = three(object.at("patch"));
  model.text_tokens = small_integer(object.at("text_tokens"), 0);
  model.text = text_placement(object.at("text"));
  object.finish();
  if (model.heads % model.kv_heads != 0) {
    kv_heads.refuse("it must divide the " + std::to_string(model.heads) + " heads");
  }
  return model;
}

Catalog catalog_from(const JsonValue& value) {
  JsonObject object(value);
  object.expect_format(kFormat, kVersion);
  Catalog catalog;
  catalog.model = model_from(object.at("model"));
  std::unordered_set<std::string> names;
  for (const JsonValue& item : object.at("buckets").array()) {
    catalog.buckets.push_back(bucket_from(item, catalog.model));
    if (!names.insert(catalog.buckets.back().name).second) {
      item.refuse("another bucket is already named " + in_quotes(catalog.buckets.back().name));
    }
  }
  object.finish();
  return catalog;
}

OrderedJson to_json(const ModelGeometry& model) {
  return {{"name", model.name},
          {"heads", model.heads},
          {"kv_heads", model.kv_heads},
          {"head_dim", model.head_dim},
          {"layers", model.layers},
          {"ffn", model.ffn},
          {"vae_stride", model.vae_stride},
          {"patch", model.patch},
          {"text_tokens", model.text_tokens},
          {"text", name(model.text)}};
}

OrderedJson to_json(const Catalog& catalog) {
  OrderedJson buckets = OrderedJson::array();
  for (const Bucket& bucket : catalog.buckets) buckets.push_back(to_json(bucket));
  return {
      {"format", kFormat}, {"version", kVersion}, {"model", to_json(catalog.model)}, {"buckets", std::move(buckets)}};
}

Catalog read_catalog(const std::string& path) { return catalog_from(JsonDocument::from_file(path).root()); }

std::string catalog_json(const Catalog& catalog) { return pretty(to_json(catalog)); }

void write_catalog(const Catalog& catalog, const std::string& path) { write_text_file(path, catalog_json(catalog)); }

}  // namespace zellige
