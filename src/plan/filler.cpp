// SPDX-License-Identifier: Apache-2.0
#include "plan/filler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "plan/wide.h"
#include "zellige/error.h"

namespace zellige {
namespace {

struct Candidate {
  Wide score;
  std::size_t rank;
};

/// For the heap functions, which keep the largest on top: the best score, ties to the lowest rank.
struct IsWorse {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.score != b.score ? a.score < b.score : a.rank > b.rank;
  }
};
constexpr IsWorse is_worse;

}  // namespace

FillerResult pack_fillers(const std::vector<Filler>& fillers, FillerLedger& ledger) {
  const std::size_t ranks = ledger.load_us.size();
  const Wide cap = ledger.memory_cap_bytes;
  const Wide floor_sum = ledger.whole_time_us;  // S
  // Over the common denominator S x cap, what Eq. 8 compares is linear in load and memory:
  //   rhoC = (S - N (C + p)) / S        ->  cap * (S - N C) - (cap * N) * p  =  compute - per_time * p
  //   rhoM = (cap - M - m) / cap        ->  S * (cap - M)   - S * m          =  memory  - per_byte * m
  if (std::log2(static_cast<double>(cap)) + std::log2(static_cast<double>(floor_sum) + 1) +
          std::log2(static_cast<double>(ranks)) >
      125) {
    throw Error(Code::input, "plan.filler",
                "memory cap " + std::to_string(ledger.memory_cap_bytes) + " bytes x " + std::to_string(ranks) +
                    " ranks x " + std::to_string(ledger.whole_time_us) +
                    " us of whole prices leaves 126 bits; check the units of the profile");
  }
  const Wide per_time = cap * static_cast<Wide>(ranks);
  const Wide per_byte = floor_sum;
  std::vector<Wide> compute(ranks), memory(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    compute[r] = cap * floor_sum - per_time * ledger.load_us[r];
    memory[r] = floor_sum * (cap - ledger.memory_bytes[r]);
  }

  std::vector<std::size_t> order(fillers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return fillers[a].time_us > fillers[b].time_us; });

  constexpr Rank kNone = -1;
  FillerResult result;
  result.rank.assign(fillers.size(), kNone);
  std::vector<Candidate> heap;
  for (std::size_t first = 0; first < order.size();) {
    // Fillers of one price and need, usually a bucket: after each of them only its rank's score changes, so a heap of
    // scores serves them all.
    const Filler& kind = fillers[order[first]];
    const Wide time_share = per_time * kind.time_us;
    const Wide memory_share = per_byte * kind.memory_bytes;
    const auto has_room = [&](std::size_t r) { return memory[r] >= memory_share; };  // h^M_r >= M_s: in R_s
    const auto score = [&](std::size_t r) { return std::min(compute[r] - time_share, memory[r] - memory_share); };
    heap.clear();
    for (std::size_t r = 0; r < ranks; ++r) {
      if (has_room(r)) heap.push_back({score(r), r});
    }
    std::make_heap(heap.begin(), heap.end(), is_worse);
    for (; first < order.size(); ++first) {
      const Filler& filler = fillers[order[first]];
      if (filler.time_us != kind.time_us || filler.memory_bytes != kind.memory_bytes) break;
      if (heap.empty()) {
        result.unplaced = order[first];
        return result;
      }
      std::pop_heap(heap.begin(), heap.end(), is_worse);
      const std::size_t best = heap.back().rank;
      compute[best] -= time_share;
      memory[best] -= memory_share;
      ledger.load_us[best] += filler.time_us;
      ledger.memory_bytes[best] += filler.memory_bytes;
      result.rank[order[first]] = static_cast<Rank>(best);
      if (has_room(best)) {
        heap.back().score = score(best);
        std::push_heap(heap.begin(), heap.end(), is_worse);
      } else {
        heap.pop_back();
      }
    }
  }
  return result;
}

}  // namespace zellige
