// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/json.h"
#include "catalog/catalog_json.h"
#include "zellige/batch.h"

namespace zellige {
namespace {

constexpr const char* kFormat = "zellige.batch";
constexpr int kVersion = 1;
constexpr std::int64_t kMostRanks = 1 << 16;

}  // namespace

Batch read_batch(const std::string& path) {
  const JsonDocument document = JsonDocument::from_file(path);
  JsonObject object(document.root());
  object.expect_format(kFormat, kVersion);
  Batch batch;
  batch.ranks = static_cast<int>(object.at("ranks").integer(1, kMostRanks));
  batch.catalog = catalog_from(object.at("catalog"));

  // Both maps view strings that stay where they are: the catalog's, and the document's.
  std::unordered_map<std::string_view, BucketIndex> bucket_index;
  for (const Bucket& bucket : batch.catalog.buckets) {
    bucket_index.emplace(bucket.name, static_cast<BucketIndex>(bucket_index.size()));
  }
  std::unordered_set<std::string_view> ids;
  const std::vector<JsonValue> items = object.at("sequences").array();
  batch.sequences.reserve(items.size());
  ids.reserve(items.size());
  for (const JsonValue& item : items) {
    JsonObject fields(item);
    BatchSequence sequence;
    const JsonValue id = fields.at("id");
    sequence.id = id.string();
    if (sequence.id.empty()) id.refuse("it must not be empty");
    if (!ids.insert(id.string()).second) id.refuse("another sequence already has this id");
    const JsonValue bucket = fields.at("bucket");
    const auto found = bucket_index.find(bucket.string());
    if (found == bucket_index.end()) {
      std::vector<std::string> names;
      for (const Bucket& known : batch.catalog.buckets) names.push_back(known.name);
      bucket.refuse("the batch's catalog has no such bucket; it has: " + joined(names));
    }
    sequence.bucket = found->second;
    if (fields.has("source")) sequence.source = fields.at("source").string();
    fields.finish();
    batch.sequences.push_back(std::move(sequence));
  }
  object.finish();
  return batch;
}

std::string batch_json(const Batch& batch) {
  OrderedJson sequences = OrderedJson::array();
  for (const BatchSequence& sequence : batch.sequences) {
    OrderedJson fields = {{"id", sequence.id}, {"bucket", batch.catalog.buckets.at(sequence.bucket).name}};
    if (!sequence.source.empty()) fields["source"] = sequence.source;
    sequences.push_back(std::move(fields));
  }
  const OrderedJson json = {{"format", kFormat},
                            {"version", kVersion},
                            {"ranks", batch.ranks},
                            {"catalog", to_json(batch.catalog)},
                            {"sequences", std::move(sequences)}};
  return pretty(json);
}

void write_batch(const Batch& batch, const std::string& path) { write_text_file(path, batch_json(batch)); }

}  // namespace zellige
