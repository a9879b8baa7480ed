// SPDX-License-Identifier: Apache-2.0
#include "placement/anchor_proof_json.h"

#include <limits>

#include "zellige/error.h"

namespace zellige {
namespace {

using Node = AnchorProof::Node;

constexpr std::int64_t kMostInt = std::numeric_limits<std::int32_t>::max();
constexpr std::string_view kPowersOfTwo = "powers-of-two";
constexpr std::string_view kAll = "all";

void write_option(OrderedJson& json, const AnchorProof::OptionRef& option) {
  json["bucket"] = option.bucket;
  json["config"] = {option.config.q, option.config.h, option.config.k};
}

OrderedJson to_json(const Node& node) {
  OrderedJson json;
  if (node.kind != Node::Kind::leaf) {
    write_option(json, node.option);
    if (node.kind == Node::Kind::holders) json["pieces"] = node.pieces;
    json["at_most"] = node.at_most;
    return json;
  }
  json["sequence_values"] = node.sequence_values;
  if (!node.option_values.empty()) {
    OrderedJson values = OrderedJson::array();
    for (const auto& [option, value] : node.option_values) {
      OrderedJson item;
      write_option(item, option);
      item["value"] = value;
      values.push_back(std::move(item));
    }
    json["option_values"] = std::move(values);
  }
  if (!node.holder_values.empty()) {
    OrderedJson values = OrderedJson::array();
    for (const auto& [option, pieces, value] : node.holder_values) {
      OrderedJson item;
      write_option(item, option);
      item["pieces"] = pieces;
      item["value"] = value;
      values.push_back(std::move(item));
    }
    json["holder_values"] = std::move(values);
  }
  if (node.split_value != 0) json["split_value"] = node.split_value;
  if (!node.prices.empty()) {
    OrderedJson prices = OrderedJson::array();
    for (const auto& [per_us, per_byte] : node.prices) prices.push_back({per_us, per_byte});
    json["prices"] = std::move(prices);
  }
  return json;
}

OrderedJson to_json(const std::vector<Node>& tree) {
  OrderedJson json = OrderedJson::array();
  for (const Node& node : tree) json.push_back(to_json(node));
  return json;
}

AnchorProof::OptionRef read_option(JsonObject& object, std::size_t buckets) {
  AnchorProof::OptionRef option;
  const JsonValue bucket = object.at("bucket");
  option.bucket = static_cast<int>(bucket.integer(0, kMostInt));
  if (static_cast<std::size_t>(option.bucket) >= buckets) {
    bucket.refuse("it must be below " + std::to_string(buckets) + ", the number of duals.buckets");
  }
  const JsonValue config = object.at("config");
  const auto factors = config.array();
  if (factors.size() != 3) config.refuse("it must be [q, h, k]");
  const auto factor = [&](int axis) { return static_cast<int>(factors[axis].integer(1, kMostInt)); };
  option.config = {factor(0), factor(1), factor(2)};
  return option;
}

Node read_node(const JsonValue& value, std::size_t buckets) {
  JsonObject object(value);
  Node node;
  if (object.has("at_most")) {
    node.option = read_option(object, buckets);
    node.kind = object.has("pieces") ? Node::Kind::holders : Node::Kind::sequences;
    if (node.kind == Node::Kind::holders) node.pieces = static_cast<int>(object.at("pieces").integer(1, kMostInt));
    node.at_most = object.at("at_most").integer(0, kMostInt);
    object.finish();
    return node;
  }
  for (const JsonValue& item : object.at("sequence_values").array()) node.sequence_values.push_back(item.integer());
  if (object.has("option_values")) {
    for (const JsonValue& item : object.at("option_values").array()) {
      JsonObject entry(item);
      const AnchorProof::OptionRef option = read_option(entry, buckets);
      node.option_values.push_back({option, entry.at("value").integer()});
      entry.finish();
    }
  }
  if (object.has("holder_values")) {
    for (const JsonValue& item : object.at("holder_values").array()) {
      JsonObject entry(item);
      const AnchorProof::OptionRef option = read_option(entry, buckets);
      const int pieces = static_cast<int>(entry.at("pieces").integer(1, kMostInt));
      node.holder_values.push_back({option, pieces, entry.at("value").integer()});
      entry.finish();
    }
  }
  if (object.has("split_value")) node.split_value = object.at("split_value").integer(0);
  if (object.has("prices")) {
    for (const JsonValue& item : object.at("prices").array()) {
      const auto pair = item.array();
      if (pair.size() != 2) item.refuse("it must be [price of a microsecond, price of a byte]");
      node.prices.push_back({pair[0].integer(0), pair[1].integer(0)});
    }
  }
  object.finish();
  return node;
}

std::vector<Node> read_tree(const JsonValue& value, std::size_t buckets) {
  std::vector<Node> tree;
  for (const JsonValue& item : value.array()) tree.push_back(read_node(item, buckets));
  return tree;
}

}  // namespace

OrderedJson to_json(const AnchorProof& proof) {
  OrderedJson json;
  json["menu"] = std::string(proof.menu == Menu::all ? kAll : kPowersOfTwo);
  json["buckets"] = proof.buckets;
  if (proof.counted) json["counted"] = *proof.counted;
  json["load"] = to_json(proof.load);
  json["split_limit_us"] = proof.split_limit.value;
  json["split"] = to_json(proof.split);
  return json;
}

AnchorProof read_anchor_proof(const JsonValue& value) {
  JsonObject object(value);
  AnchorProof proof;
  const JsonValue menu = object.at("menu");
  if (menu.string() == kAll) {
    proof.menu = Menu::all;
  } else if (menu.string() != kPowersOfTwo) {
    menu.refuse("it must be powers-of-two or all");
  }
  for (const JsonValue& item : object.at("buckets").array()) proof.buckets.push_back(item.string());
  if (object.has("counted")) {
    proof.counted = static_cast<int>(object.at("counted").integer(0, static_cast<std::int64_t>(proof.buckets.size())));
  }
  proof.load = read_tree(object.at("load"), proof.buckets.size());
  proof.split_limit = {object.at("split_limit_us").integer(0)};
  proof.split = read_tree(object.at("split"), proof.buckets.size());
  object.finish();
  return proof;
}

}  // namespace zellige
