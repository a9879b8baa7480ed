// SPDX-License-Identifier: Apache-2.0
#include "placement/plan_json.h"

#include "placement/anchor_proof_json.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <unordered_set>
#include <utility>

#include "zellige/error.h"

namespace zellige {
namespace {

constexpr std::string_view kFormat = "zellige.plan";
constexpr int kVersion = 1;
constexpr std::int64_t kMostInt = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostRanks = 1 << 16;  // as in a batch

// ---- writing

template <class Unit>
OrderedJson to_json(const std::vector<Quantity<Unit>>& quantities) {
  OrderedJson json = OrderedJson::array();
  for (const auto& quantity : quantities) json.push_back(quantity.value);
  return json;
}

template <class Unit>
OrderedJson to_json(const std::optional<Quantity<Unit>>& quantity) {
  return quantity ? OrderedJson(quantity->value) : OrderedJson(nullptr);
}
OrderedJson to_json(const std::optional<int>& count) { return count ? OrderedJson(*count) : OrderedJson(nullptr); }
OrderedJson to_json(const std::optional<SolveStatus>& status) {
  return status ? OrderedJson(std::string(name(*status))) : OrderedJson(nullptr);
}

OrderedJson to_json(const PlacedSequence& sequence, const LoadModel& model) {
  OrderedJson json;
  json["id"] = sequence.id;
  json["bucket"] = sequence.bucket;
  json["kind"] = std::string(name(sequence.kind));
  json["tokens"] = sequence.tokens.value;
  json["config"] = {sequence.config.q, sequence.config.h, sequence.config.k};
  json["ranks"] = sequence.ranks;
  json["time_us"] = sequence.time.value;
  json["memory_bytes"] = sequence.memory.value;
  if (model.is_overlapped()) json["exchange_us"] = sequence.exchange.value;
  return json;
}

OrderedJson to_json(const LoadModel& model) {
  OrderedJson json;
  json["kind"] = std::string(name(model.kind));
  json["hidden_per_mille"] = model.hidden_per_mille;
  return json;
}

OrderedJson to_json(const RankContent& content) {
  OrderedJson json;
  json["ranks"] = content.ranks;
  json["holds"] = OrderedJson::array();
  for (const RankContent::Pieces& held : content.holds) {
    OrderedJson item;
    item["bucket"] = held.bucket;
    item["config"] = {held.config.q, held.config.h, held.config.k};
    item["pieces"] = held.pieces;
    json["holds"].push_back(std::move(item));
  }
  return json;
}

OrderedJson to_json(const Certificate& certificate) {
  OrderedJson json;
  json["anchor_load_us"] = to_json(certificate.anchor_load);
  json["anchor_bound_us"] = to_json(certificate.anchor_bound);
  json["anchor_status"] = to_json(certificate.anchor_status);
  json["split_count"] = to_json(certificate.split_count);
  json["split_bound"] = to_json(certificate.split_bound);
  json["split_status"] = to_json(certificate.split_status);
  json["makespan_bound_us"] = to_json(certificate.makespan_bound);
  if (certificate.duals) json["duals"] = to_json(*certificate.duals);
  if (certificate.makespan_duals) json["makespan_duals"] = to_json(*certificate.makespan_duals);
  if (certificate.anchor_buckets) json["anchor_buckets"] = *certificate.anchor_buckets;
  if (!certificate.anchor_placement.empty()) {
    OrderedJson ranks = OrderedJson::array();
    for (const RankContent& content : certificate.anchor_placement) ranks.push_back(to_json(content));
    json["anchor_placement"] = std::move(ranks);
  }
  return json;
}

// ---- reading

template <class Enum, std::size_t Size>
Enum read_enum(const JsonValue& value, const std::array<Enum, Size>& all) {
  std::vector<std::string> known;
  for (const Enum candidate : all) {
    if (value.string() == name(candidate)) return candidate;
    known.emplace_back(name(candidate));
  }
  value.refuse("it must be one of " + joined(known));
}

constexpr std::array kPlanStatuses = {PlanStatus::optimal, PlanStatus::feasible, PlanStatus::infeasible,
                                      PlanStatus::timeout, PlanStatus::unknown};
constexpr std::array kSolveStatuses = {SolveStatus::optimal, SolveStatus::feasible, SolveStatus::infeasible,
                                       SolveStatus::timeout};
constexpr std::array kMediaKinds = {MediaKind::image, MediaKind::video};

std::int64_t amount(const JsonValue& value) { return value.integer(0); }
int count(const JsonValue& value, int least) { return static_cast<int>(value.integer(least, kMostInt)); }

template <class Quantity>
std::vector<Quantity> read_amounts(const JsonValue& value) {
  std::vector<Quantity> quantities;
  for (const JsonValue& item : value.array()) quantities.push_back({amount(item)});
  return quantities;
}

std::string read_digest(const JsonValue& value) {
  constexpr std::string_view kPrefix = "sha256:";
  const std::string& text = value.string();
  if (text.size() != kPrefix.size() + 64 || !text.starts_with(kPrefix) ||
      text.find_first_not_of("0123456789abcdef", kPrefix.size()) != std::string::npos) {
    value.refuse("it must be \"sha256:\" and 64 hexadecimal digits");
  }
  return text;
}

Configuration read_configuration(const JsonValue& value) {
  const auto factors = value.array();
  if (factors.size() != 3) value.refuse("it must be [q, h, k]");
  return {count(factors[0], 1), count(factors[1], 1), count(factors[2], 1)};
}

/// Absent: additive. An additive model has nothing more to say, so it is written by leaving it out.
LoadModel read_load_model(const JsonValue& value) {
  JsonObject object(value);
  LoadModel model;
  model.kind = read_enum(object.at("kind"), std::array{LoadModel::Kind::overlapped});
  model.hidden_per_mille = static_cast<int>(object.at("hidden_per_mille").integer(0, 1000));
  object.finish();
  return model;
}

PlacedSequence read_sequence(const JsonValue& value, const LoadModel& model) {
  JsonObject object(value);
  PlacedSequence sequence;
  const JsonValue id = object.at("id");
  sequence.id = id.string();
  if (sequence.id.empty()) id.refuse("it must not be empty");
  sequence.bucket = object.at("bucket").string();
  sequence.kind = read_enum(object.at("kind"), kMediaKinds);
  sequence.tokens = {object.at("tokens").integer(1)};
  sequence.config = read_configuration(object.at("config"));
  for (const JsonValue& rank : object.at("ranks").array()) sequence.ranks.push_back(count(rank, 0));
  sequence.time = {amount(object.at("time_us"))};
  sequence.memory = {amount(object.at("memory_bytes"))};
  if (model.is_overlapped()) {
    const JsonValue exchange = object.at("exchange_us");
    sequence.exchange = {amount(exchange)};
    if (sequence.exchange > sequence.time) exchange.refuse("it is a part of time_us and cannot exceed it");
  }
  object.finish();
  return sequence;
}

ExecOptions read_exec(const JsonValue& value) {
  JsonObject object(value);
  ExecOptions exec;
  const JsonValue engine = object.at("engine");
  exec.engine = engine.string();
  if (exec.engine != "coalesced" && exec.engine != "paper") engine.refuse("it must be coalesced or paper");
  exec.keep_kv = object.at("keep_kv").boolean();
  exec.overlap = object.at("overlap").boolean();
  exec.waves = count(object.at("waves"), 1);
  object.finish();
  return exec;
}

RankContent read_content(const JsonValue& value) {
  JsonObject object(value);
  RankContent content;
  content.ranks = count(object.at("ranks"), 1);
  for (const JsonValue& item : object.at("holds").array()) {
    JsonObject held(item);
    content.holds.push_back(
        {held.at("bucket").string(), read_configuration(held.at("config")), count(held.at("pieces"), 1)});
    held.finish();
  }
  object.finish();
  return content;
}

Certificate read_certificate(const JsonValue& value) {
  JsonObject object(value);
  Certificate certificate;
  const auto proved = [&](std::string_view field, auto&& read) {
    const JsonValue item = object.at(field);
    if (!item.is_null()) read(item);
  };
  proved("anchor_load_us", [&](const JsonValue& item) { certificate.anchor_load = Microseconds{amount(item)}; });
  proved("anchor_bound_us", [&](const JsonValue& item) { certificate.anchor_bound = Microseconds{amount(item)}; });
  proved("anchor_status", [&](const JsonValue& item) { certificate.anchor_status = read_enum(item, kSolveStatuses); });
  proved("split_count", [&](const JsonValue& item) { certificate.split_count = count(item, 0); });
  proved("split_bound", [&](const JsonValue& item) { certificate.split_bound = count(item, 0); });
  proved("split_status", [&](const JsonValue& item) { certificate.split_status = read_enum(item, kSolveStatuses); });
  proved("makespan_bound_us", [&](const JsonValue& item) { certificate.makespan_bound = Microseconds{amount(item)}; });
  if (object.has("duals")) {
    proved("duals", [&](const JsonValue& item) { certificate.duals = read_anchor_proof(item); });
  }
  if (object.has("makespan_duals")) {
    proved("makespan_duals", [&](const JsonValue& item) { certificate.makespan_duals = read_anchor_proof(item); });
  }
  if (object.has("anchor_buckets")) {
    certificate.anchor_buckets.emplace();
    for (const JsonValue& item : object.at("anchor_buckets").array()) {
      certificate.anchor_buckets->push_back(item.string());
    }
  }
  if (object.has("anchor_placement")) {
    for (const JsonValue& item : object.at("anchor_placement").array()) {
      certificate.anchor_placement.push_back(read_content(item));
    }
  }
  object.finish();
  return certificate;
}

/// @param model   null: for display, the digest stays unverified.
/// @param refuse  throw at another digest than the placement's
Plan read(const JsonDocument& document, const ModelGeometry* model, bool refuse) {
  JsonObject object(document.root());
  object.expect_format(kFormat, kVersion);
  Plan plan;
  plan.method = object.at("method").string();
  plan.solver = object.at("solver").string();
  plan.placement.ranks = static_cast<int>(object.at("ranks").integer(1, kMostRanks));
  plan.status = read_enum(object.at("status"), kPlanStatuses);
  plan.certified = object.at("certified").boolean();
  plan.reason = object.at("reason").string();
  if (object.has("load_model")) plan.load_model = read_load_model(object.at("load_model"));

  const auto sequences = object.at("sequences").array();
  plan.placement.sequences.reserve(sequences.size());
  std::unordered_set<std::string> ids;
  for (const JsonValue& item : sequences) {
    plan.placement.sequences.push_back(read_sequence(item, plan.load_model));
    if (!ids.insert(plan.placement.sequences.back().id).second) JsonObject(item).at("id").refuse("this id comes twice");
  }

  plan.load = read_amounts<Microseconds>(object.at("load_us"));
  plan.memory = read_amounts<Bytes>(object.at("memory_bytes"));
  plan.makespan = {amount(object.at("makespan_us"))};
  plan.floor = {amount(object.at("floor_us"))};
  plan.split_count = count(object.at("split_count"), 0);
  plan.certificate = read_certificate(object.at("certificate"));
  plan.placement.exec = read_exec(object.at("exec"));
  plan.solve_time = {amount(object.at("solve_us"))};
  plan.profile_digest = read_digest(object.at("profile_digest"));
  const JsonValue claimed = object.at("digest");
  plan.stated_digest = read_digest(claimed);
  object.finish();

  if (model != nullptr) {
    plan.placement.model = *model;
    if (const std::string right = refuse ? digest(plan.placement) : plan.stated_digest; plan.stated_digest != right) {
      claimed.refuse("the plan's sequences and exec with the batch's model give \"" + right +
                     "\": the plan was changed after it was written, or the batch is not the one that it was made for");
    }
  }
  return plan;
}

/// Refuses a plan whose loads, memory, makespan or number of splits are not what its own sequences add up to: that much
/// can be told without batch and profile.
/// @param refuse  called with what is wrong; does not return
void expect_sums_of(const Plan& plan, const std::function<void(const std::string&)>& refuse) {
  const auto ranks = static_cast<std::size_t>(plan.placement.ranks);
  std::vector<std::int64_t> load_us(ranks), exchange_us(ranks), memory_bytes(ranks);
  std::int64_t splits = 0;
  for (const PlacedSequence& sequence : plan.placement.sequences) {
    if (!sequence.config.is_whole()) ++splits;
    const Charge charged = charge(sequence.time, sequence.exchange, plan.load_model);
    for (const Rank rank : sequence.ranks) {
      const auto r = static_cast<std::size_t>(rank);
      if (__builtin_add_overflow(load_us[r], charged.time.value, &load_us[r]) ||
          __builtin_add_overflow(exchange_us[r], charged.exchange.value, &exchange_us[r]) ||
          __builtin_add_overflow(memory_bytes[r], sequence.memory.value, &memory_bytes[r])) {
        refuse("the sequences of rank " + std::to_string(rank) + " add up beyond 64 bits");
      }
    }
  }
  const auto expect = [&](const std::string& field, std::int64_t said, std::int64_t is) {
    if (said != is) {
      refuse(field + " is " + std::to_string(said) + "; the plan's own sequences make it " + std::to_string(is));
    }
  };
  for (std::size_t r = 0; r < ranks; ++r) {
    load_us[r] = std::max(load_us[r], exchange_us[r]);
    expect("load_us[" + std::to_string(r) + "]", plan.load[r].value, load_us[r]);
    expect("memory_bytes[" + std::to_string(r) + "]", plan.memory[r].value, memory_bytes[r]);
  }
  expect("makespan_us", plan.makespan.value, *std::max_element(load_us.begin(), load_us.end()));
  expect("split_count", plan.split_count, splits);
}

}  // namespace

OrderedJson to_json(const ExecOptions& exec) {
  OrderedJson json;
  json["engine"] = exec.engine;
  json["keep_kv"] = exec.keep_kv;
  json["overlap"] = exec.overlap;
  json["waves"] = exec.waves;
  return json;
}

std::string plan_json(const Plan& plan) {
  OrderedJson json;
  json["format"] = std::string(kFormat);
  json["version"] = kVersion;
  json["method"] = plan.method;
  json["solver"] = plan.solver;
  json["ranks"] = plan.placement.ranks;
  json["status"] = std::string(name(plan.status));
  json["certified"] = plan.certified;
  json["reason"] = plan.reason;
  if (plan.load_model.is_overlapped()) json["load_model"] = to_json(plan.load_model);
  OrderedJson sequences = OrderedJson::array();
  for (const PlacedSequence& sequence : plan.placement.sequences)
    sequences.push_back(to_json(sequence, plan.load_model));
  json["sequences"] = std::move(sequences);
  json["load_us"] = to_json(plan.load);
  json["memory_bytes"] = to_json(plan.memory);
  json["makespan_us"] = plan.makespan.value;
  json["floor_us"] = plan.floor.value;
  json["split_count"] = plan.split_count;
  json["certificate"] = to_json(plan.certificate);
  json["exec"] = to_json(plan.placement.exec);
  json["solve_us"] = plan.solve_time.value;
  json["profile_digest"] = plan.profile_digest;
  json["digest"] = digest(plan.placement);
  return pretty(json);
}

Plan read_plan(const std::string& path, const Batch& batch) {
  return read(JsonDocument::from_file(path), &batch.catalog.model, true);
}

Plan read_plan_to_check(const std::string& path, const Batch& batch) {
  return read(JsonDocument::from_file(path), &batch.catalog.model, false);
}

Plan read_plan_for_display(const std::string& path) {
  Plan plan = read(JsonDocument::from_file(path), nullptr, false);
  if (!plan.has_placement()) return plan;
  // Nobody checks a plan that is only looked at, so whoever draws it must be able to index by rank.
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::input, "placement.read_plan", path + ": " + what);
  };
  const auto ranks = static_cast<std::size_t>(plan.placement.ranks);
  const auto expect_each_rank = [&](const char* field, std::size_t size) {
    if (size == ranks) return;
    refuse(std::string(field)
               .append(" has ")
               .append(std::to_string(size))
               .append(" entries; it must have one for each of ")
               .append(std::to_string(ranks))
               .append(" ranks"));
  };
  expect_each_rank("load_us", plan.load.size());
  expect_each_rank("memory_bytes", plan.memory.size());
  for (const auto& sequence : plan.placement.sequences) {
    if (static_cast<std::int64_t>(sequence.ranks.size()) != sequence.config.degree()) {
      refuse("sequence " + in_quotes(sequence.id) + " has " + std::to_string(sequence.ranks.size()) +
             " ranks; its configuration needs " + std::to_string(sequence.config.degree()));
    }
    for (const Rank rank : sequence.ranks) {
      if (rank >= 0 && static_cast<std::size_t>(rank) < ranks) continue;
      refuse("sequence " + in_quotes(sequence.id) + " names rank " + std::to_string(rank) + "; ranks are 0 to " +
             std::to_string(ranks - 1));
    }
  }
  expect_sums_of(plan, refuse);
  return plan;
}

void write_plan(const Plan& plan, const std::string& path) { write_text_file(path, plan_json(plan)); }

}  // namespace zellige
