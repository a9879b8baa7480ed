// SPDX-License-Identifier: Apache-2.0
#include "calibrate/points.h"

#include <algorithm>

#include "base/json.h"
#include "base/sha256.h"
#include "catalog/catalog_json.h"

namespace zellige {
namespace {

constexpr const char* kFormat = "zellige.points";
constexpr int kVersion = 1;

OrderedJson config_json(Configuration c) { return {c.q, c.h, c.k}; }

Configuration config_from(const JsonValue& value) {
  const std::vector<JsonValue> factors = value.array();
  if (factors.size() != 3) value.refuse("it must have three factors: query, head, key/value");
  const auto factor = [&](std::size_t i) { return static_cast<int>(factors[i].integer(1, 1 << 20)); };
  return {factor(0), factor(1), factor(2)};
}

OrderedJson optional_json(const std::optional<double>& value) { return value ? OrderedJson(*value) : OrderedJson(); }

std::optional<double> optional_from(const JsonValue& value) {
  if (value.is_null()) return std::nullopt;
  return value.number();
}

}  // namespace

const MeasuredPoint* Points::find(Tokens tokens, Configuration config) const {
  const auto found =
      std::ranges::find_if(points, [&](const MeasuredPoint& p) { return p.tokens == tokens && p.config == config; });
  return found == points.end() ? nullptr : &*found;
}

std::string identity_of(const CalibrateOptions& options, const ProfileKey& key, int depth) {
  const OrderedJson json = {{"catalog", to_json(options.catalog)},
                            {"text_dim", options.text_dim},
                            {"device", key.device},
                            {"driver", key.driver},
                            {"executor", key.executor},
                            {"checkpointing", key.checkpointing},
                            {"torch", key.torch},
                            {"precision", key.precision},
                            {"ranks", key.ranks},
                            {"depth", depth},
                            {"tokens_per_rank", options.tokens_per_rank.value}};
  return sha256(canonical(nlohmann::json(json)));
}

std::string points_json(const Points& points) {
  OrderedJson rows = OrderedJson::array();
  for (const MeasuredPoint& p : points.points) {
    rows.push_back({{"tokens", p.tokens.value},
                    {"config", config_json(p.config)},
                    {"sequences", p.sequences},
                    {"time_us", p.time_us},
                    {"exchange_us", p.exchange_us},
                    {"spread", p.spread},
                    {"repeats", p.repeats},
                    {"peak_bytes", p.peak_bytes}});
  }
  OrderedJson checks = OrderedJson::array();
  for (const DepthCheck& c : points.checks) {
    checks.push_back({{"tokens", c.tokens.value},
                      {"config", config_json(c.config)},
                      {"sequences", c.sequences},
                      {"measured_us", c.measured_us},
                      {"predicted_us", c.predicted_us}});
  }
  return pretty({{"format", kFormat},
                 {"version", kVersion},
                 {"of", points.of},
                 {"depth", points.depth},
                 {"fixed_us", optional_json(points.fixed_us)},
                 {"full_fixed_us", optional_json(points.full_fixed_us)},
                 {"token_us", optional_json(points.token_us)},
                 {"sequence_us", optional_json(points.sequence_us)},
                 {"gradient_sync_us", optional_json(points.gradient_sync_us)},
                 {"optimizer_us", optional_json(points.optimizer_us)},
                 {"slack_bytes", points.slack_bytes},
                 {"points", std::move(rows)},
                 {"checks", std::move(checks)}});
}

Points points_from(const std::string& text, const std::string& of) {
  const JsonDocument document = JsonDocument::from_text(text, "measurements to resume from");
  JsonObject object(document.root());
  object.expect_format(kFormat, kVersion);
  Points points;
  const JsonValue owner = object.at("of");
  points.of = owner.string();
  if (points.of != of) owner.refuse("this run's is " + of + ": other device, versions, catalog or options");
  points.depth = static_cast<int>(object.at("depth").integer(1, 1 << 20));
  points.fixed_us = optional_from(object.at("fixed_us"));
  points.full_fixed_us = optional_from(object.at("full_fixed_us"));
  points.token_us = optional_from(object.at("token_us"));
  points.sequence_us = optional_from(object.at("sequence_us"));
  points.gradient_sync_us = optional_from(object.at("gradient_sync_us"));
  points.optimizer_us = optional_from(object.at("optimizer_us"));
  points.slack_bytes = object.at("slack_bytes").integer(0);
  const JsonValue rows = object.at("points"), checks = object.at("checks");
  object.finish();
  for (const JsonValue& value : rows.array()) {
    JsonObject row(value);
    MeasuredPoint p;
    p.tokens.value = row.at("tokens").integer(1);
    p.config = config_from(row.at("config"));
    p.sequences = static_cast<int>(row.at("sequences").integer(1, 1 << 20));
    p.time_us = row.at("time_us").number();
    p.exchange_us = row.at("exchange_us").number();
    p.spread = row.at("spread").number();
    p.repeats = static_cast<int>(row.at("repeats").integer(1, 1 << 20));
    p.peak_bytes = row.at("peak_bytes").integer(0);
    row.finish();
    points.points.push_back(p);
  }
  for (const JsonValue& value : checks.array()) {
    JsonObject row(value);
    DepthCheck c;
    c.tokens.value = row.at("tokens").integer(1);
    c.config = config_from(row.at("config"));
    c.sequences = static_cast<int>(row.at("sequences").integer(1, 1 << 20));
    c.measured_us = row.at("measured_us").number();
    c.predicted_us = row.at("predicted_us").number();
    row.finish();
    points.checks.push_back(c);
  }
  return points;
}

}  // namespace zellige
