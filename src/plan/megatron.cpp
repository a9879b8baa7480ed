// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/baseline.h"
#include "plan/baselines.h"
#include "zellige/error.h"
#include "zellige/text.h"

namespace zellige {
namespace {

/// The cheapest configuration of that degree whose memory alone is within the cap; null when there is none.
const Price* cheapest(const BaselineProblem& problem, const Lot& lot, int degree) {
  const Price* best = nullptr;
  for (const Price& price : problem.profile.menu(lot.bucket)) {
    if (price.config.degree() != degree || price.memory > problem.cap) continue;
    if (problem.find(lot, price.config) == nullptr) continue;
    if (best == nullptr || price.time < best->time) best = &price;
  }
  return best;
}

/// Work and memory of every rank while sequences are placed one after another.
class AlignedGroups {
 public:
  AlignedGroups(int ranks, Bytes cap) : work_(ranks), memory_(ranks), cap_(cap) {}

  /// First rank of the aligned group of that many ranks whose busiest rank has the least work, among those with room
  /// for the memory on each rank; ties to the lowest.
  std::optional<Rank> least_busy(int degree, Bytes memory) const {
    std::optional<Rank> best;
    double least = 0;
    for (std::size_t first = 0; first + degree <= work_.size(); first += degree) {
      const auto fullest = *std::max_element(memory_.begin() + first, memory_.begin() + first + degree);
      if (fullest + memory > cap_) continue;
      const double busiest = *std::max_element(work_.begin() + first, work_.begin() + first + degree);
      if (!best || busiest < least) {
        best = static_cast<Rank>(first);
        least = busiest;
      }
    }
    return best;
  }

  void add(Rank first, int degree, double work, Bytes memory) {
    for (Rank rank = first; rank < first + degree; ++rank) {
      work_[rank] += work;
      memory_[rank] += memory;
    }
  }

 private:
  std::vector<double> work_;
  std::vector<Bytes> memory_;
  Bytes cap_;
};

class Megatron final : public Baseline {
 public:
  std::string_view name() const override { return "megatron"; }

 protected:
  Decision decide(const BaselineProblem& problem, const PlanOptions& options, const Deadline& deadline) const override {
    const std::optional<std::int64_t> most_tokens = most_tokens_per_rank(options.layout);
    struct Item {
      const Lot* lot;
      int degree;
      double work;  // s^2 / cp
    };
    std::vector<Item> items;
    for (const Lot& lot : problem.lots) {
      const int degree = smallest_degree(problem, lot, most_tokens);
      if (degree == 0) return no_placement(why_no_degree(problem, lot, most_tokens));
      items.push_back({&lot, degree, work(lot, degree)});
    }
    std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.work > b.work; });

    Decision decision;
    decision.layout = options.layout;
    decision.spots.resize(problem.num_sequences());
    AlignedGroups groups(problem.ranks, problem.cap);
    for (const Item& item : items) {
      for (const SequenceIndex sequence : item.lot->members) {
        if (deadline.is_over()) return timed_out(deadline, "placing sequences");
        std::optional<Rank> first;
        const Price* price = nullptr;
        // Where memory has run out at the smallest degree, a wider group needs less of each rank.
        int degree = item.degree;
        for (; degree <= problem.ranks && !first; degree *= 2) {
          price = cheapest(problem, *item.lot, degree);
          if (price != nullptr) first = groups.least_busy(degree, price->memory);
        }
        if (!first) {
          return no_placement("OOM: no aligned group of ranks has memory left for sequence " +
                              in_quotes(problem.batch.sequences[sequence].id) + " under the memory cap of " +
                              std::to_string(problem.cap.value) + " bytes a rank");
        }
        const int taken = price->config.degree();
        groups.add(*first, taken, work(*item.lot, taken), price->memory);
        decision.spots[sequence] = {price->config, *first};
      }
    }
    return decision;
  }

 private:
  static double work(const Lot& lot, int degree) {
    const auto tokens = static_cast<double>(lot.tokens.value);
    return tokens * tokens / degree;
  }

  /// Smallest power of two whose chunk fits: into `most_tokens` when that is set, into the memory cap always. 0: none.
  static int smallest_degree(const BaselineProblem& problem, const Lot& lot, std::optional<std::int64_t> most_tokens) {
    for (int degree = 1; degree <= problem.ranks; degree *= 2) {
      if (most_tokens && (lot.tokens.value + degree - 1) / degree > *most_tokens) continue;
      if (cheapest(problem, lot, degree) != nullptr) return degree;
    }
    return 0;
  }

  static std::string why_no_degree(const BaselineProblem& problem, const Lot& lot,
                                   std::optional<std::int64_t> most_tokens) {
    return "OOM: sequence " + in_quotes(problem.batch.sequences[lot.members.front()].id) + " (" +
           std::to_string(lot.tokens.value) + " tokens) fits no power of two of the " + std::to_string(problem.ranks) +
           " ranks: " +
           (most_tokens ? "at most " + std::to_string(*most_tokens) + " tokens a rank, and " : std::string()) +
           "at most " + std::to_string(problem.cap.value) + " bytes a rank";
  }

  /// "t65536": at most that many tokens of a sequence on a rank.
  std::optional<std::int64_t> most_tokens_per_rank(std::string_view layout) const {
    if (layout.empty()) return std::nullopt;
    std::int64_t tokens = 0;
    const char* end = layout.data() + layout.size();
    const auto [stop, error] = std::from_chars(layout.data() + 1, end, tokens);
    if (layout.front() != 't' || error != std::errc() || stop != end || tokens < 1) {
      throw Error(Code::input, where(),
                  "layout '" + std::string(layout) +
                      "': leave it empty (the memory cap decides) or write the most tokens of a sequence that a rank "
                      "may hold, such as t65536");
    }
    return tokens;
  }
};

}  // namespace

std::unique_ptr<Planner> make_megatron() { return std::make_unique<Megatron>(); }

}  // namespace zellige
