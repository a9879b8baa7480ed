// SPDX-License-Identifier: Apache-2.0
#include "placement/refutation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>

namespace zellige {
namespace {

using Option = ProofInstance::Option;

/// A weight of pieces such that what fits one rank weighs at most `room`. Then ranks x room is all there is room for.
struct Weighing {
  std::function<Wide(Wide size)> weigh;  ///< never falls as the size grows
  Wide room;
};

/// Sizes themselves.
Weighing plain(Wide capacity) {
  return {[](Wide size) { return size; }, capacity};
}

/// Parts of 1 / (k + 1) of the capacity, rounded down; a size of whole parts counts k / (k + 1) of them.
/// Of a rank's pieces let w be the whole parts of those that are nothing but parts, and r the rounded parts of the
/// rest. If the rest is empty, w <= k + 1 and the weight w k / (k + 1) is at most k. Else r + w < k + 1, so r <= k - w
/// as all are integers, and r + w k / (k + 1) <= k. In units of 1 / (k + 1) part.
Weighing in_parts(Wide capacity, Wide k) {
  return {[capacity, k](Wide size) {
            const Wide parts = (k + 1) * size / capacity;
            return (k + 1) * size % capacity == 0 ? parts * k : parts * (k + 1);
          },
          k * (k + 1)};
}

/// What is larger than the capacity less `small` fills a rank; what is below `small` counts nothing. Beside a piece of
/// the first kind there is room for the second only. @pre 0 < small <= capacity / 2
Weighing large_and_small(Wide capacity, Wide small) {
  return {[capacity, small](Wide size) {
            if (size > capacity - small) return capacity;
            return size < small ? Wide{0} : size;
          },
          capacity};
}

/// What a piece's size is made of. A rank's pieces keep both sums, of time and of exchange, within the limit, so they
/// keep any mixture of the two within as much of the limit.
struct Mixture {
  std::int64_t time, exchange, memory;
};
constexpr Mixture kMemory = {0, 0, 1};
constexpr std::array kLoads = {Mixture{1, 0, 0}, Mixture{3, 1, 0}, Mixture{1, 1, 0}, Mixture{1, 3, 0},
                               Mixture{0, 1, 0}};

class Room {
 public:
  Room(const ProofInstance& instance, Wide capacity, std::int64_t load_limit_us, const Mixture& mixture)
      : instance_(instance), capacity_(capacity), load_limit_us_(load_limit_us), mixture_(mixture) {}

  bool is_too_small() const {
    constexpr Wide kMostParts = 24;
    if (exceeds(plain(capacity_))) return true;
    if (capacity_ == 0) return false;
    for (Wide k = 1; k <= kMostParts; ++k) {
      if (exceeds(in_parts(capacity_, k))) return true;
    }
    constexpr std::size_t kMostSmall = 200;
    std::vector<Wide> smalls;
    for (const auto& group : instance_.groups) {
      for (const Option& option : group.options) {
        if (!fits(option)) continue;
        const Wide size = size_of(option);
        for (const Wide small : {size, capacity_ - size + 1}) {
          if (small > 0 && small <= capacity_ / 2) smalls.push_back(small);
        }
      }
    }
    std::sort(smalls.begin(), smalls.end(), std::greater<>());
    smalls.erase(std::unique(smalls.begin(), smalls.end()), smalls.end());
    if (smalls.size() > kMostSmall) smalls.resize(kMostSmall);
    return std::any_of(smalls.begin(), smalls.end(),
                       [&](Wide small) { return exceeds(large_and_small(capacity_, small)); });
  }

 private:
  Wide size_of(const Option& option) const {
    return Wide{option.time_us} * mixture_.time + Wide{option.exchange_us} * mixture_.exchange +
           Wide{option.memory_bytes} * mixture_.memory;
  }
  bool fits(const Option& option) const {
    return option.load_us() <= load_limit_us_ && option.memory_bytes <= instance_.memory_cap_bytes;
  }
  /// A sequence weighs at least degree x weight of the option for which that is least.
  bool exceeds(const Weighing& weighing) const {
    const Wide available = weighing.room * instance_.ranks;
    Wide needed = 0;
    for (const auto& group : instance_.groups) {
      Wide least = -1;
      for (const Option& option : group.options) {
        if (!fits(option)) continue;
        const Wide weight = weighing.weigh(size_of(option)) * option.degree;
        if (least < 0 || weight < least) least = weight;
      }
      if (least < 0) return true;  // a sequence that fits nowhere
      needed += least * group.count;
      if (needed > available) return true;
    }
    return false;
  }

  const ProofInstance& instance_;
  Wide capacity_;
  std::int64_t load_limit_us_;
  Mixture mixture_;
};

bool is_too_small(const ProofInstance& instance, std::int64_t limit_us) {
  // Where no exchange exceeds its piece's time, times say all.
  bool exchange_counts = false;
  for (const auto& group : instance.groups) {
    for (const Option& option : group.options) exchange_counts |= option.exchange_us > option.time_us;
  }
  for (const Mixture& mixture : kLoads) {
    if (mixture.exchange > 0 && !exchange_counts) continue;
    const Wide capacity = Wide{limit_us} * (mixture.time + mixture.exchange);
    if (Room(instance, capacity, limit_us, mixture).is_too_small()) return true;
  }
  return false;
}

}  // namespace

bool is_chosen(Choice choice, int degree) {
  switch (choice) {
    case Choice::powers_of_two:
      return degree <= kLargestMenuDegree && std::has_single_bit(static_cast<unsigned>(degree));
    case Choice::all: return degree <= kLargestMenuDegree;
    case Choice::priced: break;
  }
  return true;
}

ProofInstance instance_of(const Batch& batch, const Profile& profile, const std::vector<BucketIndex>& bucket_of,
                          const std::vector<bool>& wanted, Choice choice, const LoadModel& model) {
  ProofInstance instance;
  instance.ranks = batch.ranks;
  instance.memory_cap_bytes = profile.memory_cap().value;
  std::vector<int> group_of(profile.catalog.buckets.size(), -1);
  for (const BucketIndex bucket : bucket_of) {
    if (!wanted[bucket]) continue;
    if (group_of[bucket] < 0) {
      group_of[bucket] = static_cast<int>(instance.groups.size());
      std::vector<Option> options;
      for (const Price& price : profile.menu(bucket)) {
        const Tokens tokens = profile.catalog.buckets[bucket].tokens;
        if (!why_illegal(batch.catalog.model, tokens, price.config, batch.ranks).empty()) continue;
        if (!is_chosen(choice, price.config.degree())) continue;
        const PieceLoads piece = piece_loads(price, model);
        options.push_back({price.config, price.config.degree(), piece.time_us, price.memory.value, piece.exchange_us});
      }
      instance.groups.push_back({0, needed_options(options, instance.memory_cap_bytes)});
    }
    ++instance.groups[group_of[bucket]].count;
  }
  return instance;
}

bool refutes_load(const ProofInstance& instance, std::int64_t limit_us) {
  if (instance.groups.empty()) return false;
  if (limit_us <= 0) return true;  // a price is at least 1
  // Loads are multiples of what divides all prices and exchanges that fit.
  std::int64_t divisor = 0;
  for (const auto& group : instance.groups) {
    for (const Option& option : group.options) {
      if (option.load_us() > limit_us) continue;
      divisor = std::gcd(std::gcd(divisor, option.time_us), option.exchange_us);
    }
  }
  if (divisor == 0) return true;
  const std::int64_t reachable = limit_us / divisor * divisor;
  if (reachable == 0) return true;
  // The weights in parts depend on the limit, and not only in one direction: any limit between the reachable one and
  // the claimed one will do.
  constexpr std::int64_t kMostTries = 32;
  const std::int64_t step = std::max<std::int64_t>(1, (limit_us - reachable) / kMostTries);
  for (std::int64_t limit = limit_us; limit > reachable; limit -= step) {
    if (is_too_small(instance, limit)) return true;
  }
  return is_too_small(instance, reachable);
}

bool refutes_memory(const ProofInstance& instance) {
  return Room(instance, instance.memory_cap_bytes, std::numeric_limits<std::int64_t>::max(), kMemory).is_too_small();
}

std::int64_t recomputed_load_bound(const ProofInstance& instance, std::int64_t most_us) {
  std::int64_t refuted = -1, open = most_us;
  while (refuted + 1 < open) {
    const std::int64_t limit = refuted + (open - refuted) / 2;
    (refutes_load(instance, limit) ? refuted : open) = limit;
  }
  return refuted + 1;
}

std::int64_t recomputed_split_bound(const ProofInstance& instance, std::int64_t limit_us) {
  // Sequences of which no rank holds `together` whole, since that many exceed the limit or the cap: all but
  // (together - 1) x ranks of them are split.
  std::int64_t sequences = 0;
  for (const auto& group : instance.groups) sequences += group.count;
  std::int64_t bound = 0;
  for (std::int64_t together = 1; (together - 1) * instance.ranks < sequences; ++together) {
    std::int64_t too_long = 0, too_large = 0;
    for (const auto& group : instance.groups) {
      const auto whole = std::find_if(group.options.begin(), group.options.end(),
                                      [](const Option& option) { return option.degree == 1; });
      const bool never = whole == group.options.end();
      if (never || static_cast<Wide>(together) * whole->time_us > limit_us) too_long += group.count;
      if (never || static_cast<Wide>(together) * whole->memory_bytes > instance.memory_cap_bytes) {
        too_large += group.count;
      }
    }
    bound = std::max(bound, std::max(too_long, too_large) - (together - 1) * instance.ranks);
  }
  return bound;
}

}  // namespace zellige
