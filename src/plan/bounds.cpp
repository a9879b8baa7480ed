// SPDX-License-Identifier: Apache-2.0
#include "plan/bounds.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "plan/wide.h"
#include "zellige/planner.h"

namespace zellige {
namespace {

// A dual feasible function f with total F for a capacity C: whenever sizes add up to at most C, their f add up to at
// most F. So over N ranks the f of all pieces add up to at most N * F. A sequence of group g that takes option j puts
// degree_j pieces of the same size on ranks; whatever it takes, it adds at least min_j degree_j * f(size_j). Therefore
//     sum_g n_g * min_j degree_j * f(size_j) > N * F   proves that no placement keeps the capacity.
// Options whose single piece exceeds the capacity are left out of the minimum, and a group that has no other refutes.
//
// Members of the family:
// * identity, F = C. For loads this is the area bound: N * T >= sum of the least degree x price.
// * rounding by k (Fekete and Schepers): x -> k * x when (k + 1) * x is a multiple of C, else C * floor((k + 1) x / C);
//   F = k * C. Proof: let I be the sizes with (k + 1) x a multiple of C, J the others. With J empty the sum is k times
//   at most C. Else sum_J floor((k+1) x / C) < (k+1) (C - sum_I x) / C, whose right side is an integer, so the left is
//   at most k + 1 - (k+1) sum_I x / C - 1; times C this is k C - (k+1) sum_I x, and sum_I adds only k sum_I x.
// * threshold e, 0 < e <= C/2: x -> C above C - e, 0 below e, else x; F = C. Proof: beside a size above C - e all
// others
//   are below e and count nothing; without one the sum is at most that of the sizes.
struct DualFunction {
  enum class Kind { identity, rounding, threshold } kind = Kind::identity;
  std::int64_t parameter = 0;  // k or e

  Wide total(std::int64_t capacity) const {
    return kind == Kind::rounding ? static_cast<Wide>(parameter) * capacity : static_cast<Wide>(capacity);
  }
  Wide operator()(std::int64_t size, std::int64_t capacity) const {
    switch (kind) {
      case Kind::identity: return size;
      case Kind::rounding: {
        const Wide product = static_cast<Wide>(parameter + 1) * size;
        if (product % capacity == 0) return static_cast<Wide>(parameter) * size;
        return product / capacity * capacity;
      }
      case Kind::threshold: break;
    }
    if (size > capacity - parameter) return capacity;
    return size < parameter ? 0 : size;
  }
};

constexpr std::int64_t kLargestRounding = 16;
constexpr std::size_t kMostThresholds = 32;

using SizeOf = std::int64_t (*)(const Option&);
std::int64_t time_of(const Option& option) { return option.time_us; }
std::int64_t memory_of(const Option& option) { return option.memory_bytes; }

// A rank's sums of time and of exchange both keep the limit C, so its pieces' sizes a x time + b x exchange add up to
// at most (a + b) C: each mixture is a size with a capacity of its own.
template <int a, int b>
std::int64_t mixed(const Option& option) {
  return a * option.time_us + b * option.exchange_us;
}
struct Mixture {
  SizeOf size_of;
  std::int64_t parts;  // a + b
};
constexpr Mixture kMixtures[] = {{mixed<3, 1>, 4}, {mixed<1, 1>, 2}, {mixed<1, 3>, 4}, {mixed<0, 1>, 1}};
constexpr std::int64_t kMostMixed = std::int64_t{1} << 58;  // such limits times the parts stay in 64 bits

/// Where no exchange exceeds its piece's time, times say all.
bool exchange_counts(const Problem& problem) {
  return std::any_of(problem.groups.begin(), problem.groups.end(), [](const Group& group) {
    return std::any_of(group.options.begin(), group.options.end(),
                       [](const Option& option) { return option.exchange_us > option.time_us; });
  });
}

/// An option counts when its piece fits, in time and in memory.
bool counts(const Problem& problem, const Option& option, std::int64_t limit_us) {
  return option.load_us() <= limit_us && option.memory_bytes <= problem.memory_cap_bytes;
}

/// Whether one function of the family refutes the capacity for sizes taken by `size_of`.
bool refutes(const Problem& problem, std::int64_t limit_us, SizeOf size_of, std::int64_t capacity,
             const DualFunction& function) {
  const Wide available = problem.ranks * function.total(capacity);
  Wide needed = 0;
  for (const Group& group : problem.groups) {
    std::optional<Wide> least;
    for (const Option& option : group.options) {
      if (!counts(problem, option, limit_us)) continue;
      const Wide share = option.degree * function(size_of(option), capacity);
      if (!least || share < *least) least = share;
    }
    if (!least) return true;
    needed += *least * group.count();
    if (needed > available) return true;
  }
  return false;
}

bool family_refutes(const Problem& problem, std::int64_t limit_us, SizeOf size_of, std::int64_t capacity) {
  if (refutes(problem, limit_us, size_of, capacity, {DualFunction::Kind::identity, 0})) return true;
  for (std::int64_t k = 1; k <= kLargestRounding; ++k) {
    if (refutes(problem, limit_us, size_of, capacity, {DualFunction::Kind::rounding, k})) return true;
  }
  // Thresholds matter only at the sizes themselves, and just above the complement of one.
  std::set<std::int64_t, std::greater<>> thresholds;
  for (const Group& group : problem.groups) {
    for (const Option& option : group.options) {
      if (!counts(problem, option, limit_us)) continue;
      const std::int64_t size = size_of(option);
      for (const std::int64_t e : {size, capacity - size + 1}) {
        if (e > 0 && e <= capacity / 2) thresholds.insert(e);
      }
    }
  }
  std::size_t tried = 0;
  for (const std::int64_t e : thresholds) {
    if (++tried > kMostThresholds) break;
    if (refutes(problem, limit_us, size_of, capacity, {DualFunction::Kind::threshold, e})) return true;
  }
  return false;
}

/// ceil(sum_g n_g min_j degree_j price_j / N) over options within the limit: the area bound.
std::int64_t area_bound(const Problem& problem, std::int64_t limit_us) {
  Wide area = 0;
  for (const Group& group : problem.groups) {
    std::optional<Wide> least;
    for (const Option& option : group.options) {
      if (!counts(problem, option, limit_us)) continue;
      const Wide share = static_cast<Wide>(option.degree) * option.time_us;
      if (!least || share < *least) least = share;
    }
    if (least) area += *least * group.count();
  }
  return static_cast<std::int64_t>((area + problem.ranks - 1) / problem.ranks);
}

/// max_g min_j load_j: some rank runs a piece of every sequence.
std::int64_t largest_piece(const Problem& problem) {
  std::int64_t largest = 0;
  for (const Group& group : problem.groups) {
    std::optional<std::int64_t> least;
    for (const Option& option : group.options) {
      if (option.memory_bytes > problem.memory_cap_bytes) continue;
      if (!least || option.load_us() < *least) least = option.load_us();
    }
    if (least) largest = std::max(largest, *least);
  }
  return largest;
}

/// Every load is a sum of usable times or of exchanges, hence a multiple of their greatest common divisor.
std::int64_t price_divisor(const Problem& problem, std::int64_t limit_us) {
  std::int64_t divisor = 0;
  for (const Group& group : problem.groups) {
    for (const Option& option : group.options) {
      if (!counts(problem, option, limit_us)) continue;
      divisor = std::gcd(std::gcd(divisor, option.time_us), option.exchange_us);
    }
  }
  return divisor == 0 ? 1 : divisor;
}

}  // namespace

bool load_is_refuted(const Problem& problem, std::int64_t limit_us) {
  if (problem.groups.empty()) return false;
  if (limit_us <= 0) return true;  // prices are at least 1
  if (family_refutes(problem, limit_us, time_of, limit_us)) return true;
  if (limit_us > kMostMixed || !exchange_counts(problem)) return false;
  return std::any_of(std::begin(kMixtures), std::end(kMixtures), [&](const Mixture& mixture) {
    return family_refutes(problem, limit_us, mixture.size_of, mixture.parts * limit_us);
  });
}

bool memory_is_refuted(const Problem& problem) {
  return family_refutes(problem, std::numeric_limits<std::int64_t>::max(), memory_of, problem.memory_cap_bytes);
}

std::int64_t load_lower_bound(const Problem& problem, std::int64_t upper_us) {
  if (problem.groups.empty()) return 0;
  // A best placement is no worse than the known one, so none of its options is dearer than `upper_us`.
  std::int64_t bound = std::max(area_bound(problem, upper_us), largest_piece(problem));
  // Look for the largest refuted limit. The test need not be monotone: bisection finds some refuted limit, and each
  // proves its own bound.
  if (bound < upper_us && load_is_refuted(problem, upper_us - 1)) {
    bound = upper_us;
  }
  std::int64_t open = upper_us;  // not refuted
  while (bound < open) {
    const std::int64_t limit = bound + (open - bound) / 2;
    if (limit < open && load_is_refuted(problem, limit)) {
      bound = limit + 1;
    } else {
      open = limit;
    }
  }
  const std::int64_t divisor = price_divisor(problem, upper_us);
  return (bound + divisor - 1) / divisor * divisor;
}

std::int64_t split_lower_bound(const Problem& problem, std::int64_t limit_us) {
  // Of sequences so large that any c of them exceed the limit together (in time, or the cap in memory) a rank holds at
  // most c - 1 whole, so at most N (c - 1) of them stay whole. c = 1: such a one fits no rank whole.
  const std::int64_t n = problem.num_sequences();
  std::int64_t bound = 0;
  for (std::int64_t c = 1; (c - 1) * problem.ranks < n; ++c) {
    std::int64_t by_time = 0;
    std::int64_t by_memory = 0;
    for (const Group& group : problem.groups) {
      const auto whole = std::find_if(group.options.begin(), group.options.end(),
                                      [](const Option& option) { return !option.is_split(); });
      const bool never = whole == group.options.end() || !counts(problem, *whole, limit_us);
      if (never || static_cast<Wide>(c) * whole->time_us > limit_us) by_time += group.count();
      if (never || static_cast<Wide>(c) * whole->memory_bytes > problem.memory_cap_bytes) by_memory += group.count();
    }
    bound = std::max(bound, std::max(by_time, by_memory) - (c - 1) * problem.ranks);
  }
  return bound;
}

Microseconds makespan_lower_bound(const Batch& batch, const Profile& profile, const PlanOptions& options,
                                  Microseconds upper) {
  const std::vector<BucketIndex> buckets = match_buckets(batch, profile);
  const std::vector<bool> all(profile.catalog.buckets.size(), true);
  const Problem problem = make_problem(batch, profile, buckets, all, options.menu, options.load_model);
  return {load_lower_bound(reduced(problem), upper.value)};
}

}  // namespace zellige
