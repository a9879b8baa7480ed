// SPDX-License-Identifier: Apache-2.0
#include "placement/lowerable.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "zellige/error.h"
#include "zellige/schedule.h"
#include "zellige/text.h"

namespace zellige {
namespace {

// Every rank keeps counts for every other in every exchange; a world beyond this is a corrupt file.
constexpr int kMaxRanks = 1 << 16;

[[noreturn]] void refuse(const std::string& message) { throw Error(Code::input, "placement.lower", message); }

[[noreturn]] void refuse(const PlacedSequence& placed, const std::string& message) {
  refuse("sequence " + in_quotes(placed.id) + ": " + message);
}

void require_model(const ModelGeometry& model) {
  const auto positive = [](const char* field, int value) {
    if (value < 1) refuse("model." + std::string(field) + " is " + std::to_string(value) + "; use at least 1");
  };
  positive("heads", model.heads);
  positive("kv_heads", model.kv_heads);
  positive("head_dim", model.head_dim);
  if (model.heads % model.kv_heads != 0) {
    refuse("model.kv_heads is " + std::to_string(model.kv_heads) + "; use a divisor of the " +
           std::to_string(model.heads) + " heads");
  }
}

void require_exec(const ExecOptions& exec) {
  if (exec.engine != "coalesced" && exec.engine != "paper") {
    refuse("exec.engine is " + in_quotes(exec.engine) + "; use 'coalesced' or 'paper'");
  }
  if (exec.waves < 1 || exec.waves > kMaxWaves) {
    refuse("exec.waves is " + std::to_string(exec.waves) + "; use 1 .. " + std::to_string(kMaxWaves));
  }
}

/// @param holder  [ranks], the last sequence seen on each rank, to find a rank that comes twice
void require_rank_set(const Placement& placement, std::size_t index, std::vector<std::int64_t>& holder) {
  const PlacedSequence& placed = placement.sequences[index];
  const auto degree = static_cast<std::size_t>(placed.config.degree());
  if (placed.ranks.size() != degree) {
    refuse(placed,
           std::to_string(placed.ranks.size()) + " ranks; " + text(placed.config) + " needs " + std::to_string(degree));
  }
  for (const Rank rank : placed.ranks) {
    if (rank < 0 || rank >= placement.ranks) {
      refuse(placed, "rank " + std::to_string(rank) + "; use 0 .. " + std::to_string(placement.ranks - 1));
    }
    auto& last = holder[static_cast<std::size_t>(rank)];
    if (last == static_cast<std::int64_t>(index)) {
      refuse(placed,
             "rank " + std::to_string(rank) + " comes twice; use " + std::to_string(degree) + " distinct ranks");
    }
    last = static_cast<std::int64_t>(index);
  }
}

}  // namespace

void require_lowerable(const Placement& placement) {
  if (placement.ranks < 1 || placement.ranks > kMaxRanks) {
    refuse("ranks is " + std::to_string(placement.ranks) + "; use 1 .. " + std::to_string(kMaxRanks));
  }
  require_model(placement.model);
  require_exec(placement.exec);

  // No buffer holds more than four payloads of every token: key, value and their gradients, in a ring step.
  const std::int64_t width = static_cast<std::int64_t>(placement.model.heads) * placement.model.head_dim;
  const std::int64_t most_tokens = (INT64_MAX / 4) / width;
  std::int64_t tokens = 0;
  std::vector<std::int64_t> holder(static_cast<std::size_t>(placement.ranks), -1);
  for (std::size_t i = 0; i < placement.sequences.size(); ++i) {
    const PlacedSequence& placed = placement.sequences[i];
    const std::string why = why_illegal(placement.model, placed.tokens, placed.config, placement.ranks);
    if (!why.empty()) refuse(placed, why);
    require_rank_set(placement, i, holder);
    if (placed.tokens.value > most_tokens - tokens) {
      refuse(placed, std::to_string(placed.tokens.value) + " tokens take the placement over " +
                         std::to_string(most_tokens) + ", which 64-bit counts can hold");
    }
    tokens += placed.tokens.value;
  }
}

}  // namespace zellige
