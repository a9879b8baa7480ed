// SPDX-License-Identifier: Apache-2.0
#include "zellige/placement.h"

#include <algorithm>
#include <charconv>

#include "base/json.h"
#include "base/sha256.h"
#include "catalog/catalog_json.h"
#include "placement/plan_json.h"

namespace zellige {
namespace {

void append_integer(std::string& out, std::int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

template <class Integers>
void append_list(std::string& out, const Integers& values) {
  out += '[';
  bool first = true;
  for (const auto value : values) {
    if (!first) out += ',';
    first = false;
    append_integer(out, value);
  }
  out += ']';
}

void append_string(std::string& out, const std::string& text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (plain) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += canonical(text);
  }
}

}  // namespace

std::string digest(const Placement& placement) {
  // The text of canonical({"exec": ..., "model": ..., "sequences": ...}), written directly: every rank computes it in
  // every step, over up to 100,000 sequences.
  std::string text = "{\"exec\":" + canonical(nlohmann::json(to_json(placement.exec))) +
                     ",\"model\":" + canonical(nlohmann::json(to_json(placement.model))) + ",\"sequences\":[";
  text.reserve(text.size() + 48 * placement.sequences.size());
  bool first = true;
  for (const PlacedSequence& sequence : placement.sequences) {
    text += first ? "[" : ",[";
    first = false;
    append_string(text, sequence.id);
    text += ',';
    append_integer(text, sequence.tokens.value);
    text += ',';
    append_list(text, std::initializer_list<int>{sequence.config.q, sequence.config.h, sequence.config.k});
    text += ',';
    append_list(text, sequence.ranks);
    text += ']';
  }
  text += "]}";
  return sha256(text);
}

std::string_view name(PlanStatus status) {
  switch (status) {
    case PlanStatus::optimal: return "optimal";
    case PlanStatus::feasible: return "feasible";
    case PlanStatus::infeasible: return "infeasible";
    case PlanStatus::timeout: return "timeout";
    case PlanStatus::unknown: return "unknown";
  }
  throw Error(Code::internal, "placement.name", "a plan status that is none");
}

std::string_view name(SolveStatus status) {
  switch (status) {
    case SolveStatus::optimal: return "optimal";
    case SolveStatus::feasible: return "feasible";
    case SolveStatus::infeasible: return "infeasible";
    case SolveStatus::timeout: return "timeout";
  }
  throw Error(Code::internal, "placement.name", "a solve status that is none");
}

}  // namespace zellige
