// SPDX-License-Identifier: Apache-2.0
// Prices of a device that nobody has measured:
//   time = layers * (compute of forward, recomputation and backward + exchanges + fixed costs)
// of the rank of the set that owns most tokens. Every figure is in device_figures.cpp, every count of work and bytes in
// transformer_work, exchange_volume and memory_model.
#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "profile/device_figures.h"
#include "profile/transformer_work.h"
#include "zellige/profile.h"
#include "zellige/version.h"

namespace zellige {
namespace {

constexpr double kBackwardGemm = 2;         // gradients of input and of weight
constexpr double kBackwardAttention = 2.5;  // five products against two
constexpr double kCoalescedTokens = 32768;
constexpr double kMostCoalesced = 16;
constexpr double kMostMicroseconds = 0x1p53;

struct Rates {
  double forward;
  double backward;
};

Rates rates_at(const DeviceFigures& device, double length) {
  const std::vector<AttentionRate>& rows = device.attention;
  if (length <= static_cast<double>(rows.front().length)) return {rows.front().forward, rows.front().backward};
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (length > static_cast<double>(rows[i].length)) continue;
    const double low = static_cast<double>(rows[i - 1].length);
    const double part = std::log(length / low) / std::log(static_cast<double>(rows[i].length) / low);
    return {std::lerp(rows[i - 1].forward, rows[i].forward, part),
            std::lerp(rows[i - 1].backward, rows[i].backward, part)};
  }
  return {rows.back().forward, rows.back().backward};
}

/// Rates of one rank's part: those of the keys that one call sees, which a ring cuts into blocks.
Rates part_rates(const DeviceFigures& device, Tokens length, Configuration c) {
  Rates rates = rates_at(device, static_cast<double>(length.value) / c.k);
  if (c.h > 1) rates.forward *= device.head_shard_forward;
  return rates;
}

/// Sequences that share the fixed costs of exchanges and calls: a step that splits short sequences splits many of them,
/// and the engine runs their exchanges as one.
double coalesced(Tokens length) {
  return std::clamp(kCoalescedTokens / static_cast<double>(length.value), 1.0, kMostCoalesced);
}

/// Exchanges of one layer in one pass (docs/concepts/schedule.md), as many as it waits for.
struct ExchangeCount {
  int forward;
  int backward;
};

ExchangeCount exchange_count(Configuration c) {
  if (c.is_whole()) return {0, 0};
  const int a = c.q * c.h > 1 ? 1 : 0;
  const int by_heads = c.h > 1 ? 1 : 0;
  return {.forward = a + (c.k - 1) + by_heads,    // A, ring, B
          .backward = by_heads + (c.k - 1) + 1};  // A' (K/V were kept), ring, B'
}

struct LayerTime {
  double compute_us;
  double exchange_us;
};

LayerTime layer_time(const DeviceFigures& device, const ModelGeometry& model, Tokens length, Configuration c,
                     bool checkpointing) {
  const double forwards = checkpointing ? 2 : 1;
  const int degree = c.degree();
  const double chunk = std::ceil(static_cast<double>(length.value) / degree);

  const LayerWork work = layer_work(model, chunk);
  const double gemm_us = work.projections / device.projection_rate + work.feed_forward / device.feed_forward_rate;
  const Rates text = rates_at(device, model.text_tokens);
  const double cross_us = work.cross_attention * (forwards / text.forward + kBackwardAttention / text.backward);

  const double attention = attention_work(model, length) / degree;
  const Rates rates = part_rates(device, length, c);
  const double attention_us = attention * (forwards / rates.forward + kBackwardAttention / rates.backward);

  // Ring: every block but the first is merged into the fp32 result, which is read and written.
  const double merged = static_cast<double>(length.value) / (c.q * c.k) * (model.width() / c.h) * (2 * 4 + 2);
  const double merge_us = (forwards + 1) * (c.k - 1) * merged / device.memory_bytes_per_us;
  const double shared = coalesced(length);
  const double call_us = c.is_whole() ? 0 : device.shard_call_us * c.k / shared;
  const double fixed_us = (forwards + 1) * (device.sequence_us + call_us);

  const Link& link = degree > device.node_ranks ? device.cluster : device.node;
  const ExchangeCount count = exchange_count(c);
  const double elements =
      forwards * forward_volume(model, length, c).total() + backward_volume(model, length, c, /*keep_kv=*/true).total();
  const double bytes = elements / degree * device.element_bytes;

  LayerTime time;
  time.compute_us = (forwards + kBackwardGemm) * gemm_us + cross_us + attention_us + merge_us + fixed_us;
  time.exchange_us = bytes / static_cast<double>(link.bytes_per_us) +
                     static_cast<double>(link.latency_us) * (forwards * count.forward + count.backward) / shared;
  return time;
}

Microseconds rounded(double us, const Bucket& bucket) {
  if (us > kMostMicroseconds) {
    throw Error(Code::input, "profile.built_in_profile",
                "bucket " + in_quotes(bucket.name) + " of " + std::to_string(bucket.tokens.value) +
                    " tokens is too large to price");
  }
  return {std::llround(us)};
}

Price estimated_price(const DeviceFigures& device, const ModelGeometry& model, const Bucket& bucket, Configuration c,
                      bool checkpointing) {
  const LayerTime layer = layer_time(device, model, bucket.tokens, c, checkpointing);
  Price price;
  price.config = c;
  price.exchange = rounded(model.layers * layer.exchange_us, bucket);
  price.time = rounded(model.layers * (layer.compute_us + layer.exchange_us), bucket);
  price.time.value = std::max({price.time.value, price.exchange.value, std::int64_t{1}});
  price.memory.value =
      memory_terms(model, bucket.tokens, c, {.checkpointing = checkpointing, .element_bytes = device.element_bytes})
          .total()
          .value;
  price.source = PriceSource::estimated;
  return price;
}

/// Legal configurations up to the menu's largest degree, and those over exactly `ranks` ranks.
std::vector<Configuration> priced_configurations(const ModelGeometry& model, Tokens length, int ranks) {
  std::vector<Configuration> all = menu(model, length, kLargestMenuDegree, Menu::all);
  if (ranks <= kLargestMenuDegree) return all;
  for (int q = 1; q <= ranks; ++q) {
    for (int h = 1; ranks % q == 0 && h <= ranks / q; ++h) {
      const Configuration c{q, h, ranks / q / h};
      if (c.degree() == ranks && why_illegal(model, length, c, ranks).empty()) all.push_back(c);
    }
  }
  return all;
}

/// What a step costs whatever is placed where: gradients summed over the ranks, and the optimizer's pass over its
/// states, read and written.
Microseconds step_base(const DeviceFigures& device, double parameters) {
  const double gradient_bytes = parameters * device.element_bytes;
  const double sync_us = 2 * gradient_bytes / static_cast<double>(device.node.bytes_per_us);
  const double optimizer_us = 2 * parameters * device.state_bytes / device.memory_bytes_per_us;
  return {std::llround(sync_us + optimizer_us)};
}

}  // namespace

Profile built_in_profile(std::string_view device_name, const Catalog& catalog, bool checkpointing, int ranks) {
  const auto devices = device_figures();
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const DeviceFigures& figures) { return figures.name == device_name; });
  if (found == devices.end()) {
    throw Error(Code::input, "profile.built_in_profile",
                "device " + in_quotes(device_name) +
                    " has no built-in profile; there are: " + joined(built_in_profile_names()));
  }
  const DeviceFigures& device = *found;
  const std::int64_t parameters = parameter_count(catalog.model);

  Profile profile;
  profile.catalog = catalog;
  profile.key = {
      .device = std::string(device.device), .driver = "", .executor = kExecutorVersion, .checkpointing = checkpointing};
  profile.step_base = step_base(device, static_cast<double>(parameters));
  const double state_bytes = static_cast<double>(parameters) * device.state_bytes;
  profile.memory_base =
      Bytes{std::llround(state_bytes)} + device.context +
      step_workspace(catalog.model, {.checkpointing = checkpointing, .element_bytes = device.element_bytes});
  profile.memory_usable = device.usable;
  if (profile.memory_cap().value <= 0) {
    throw Error(Code::input, "profile.built_in_profile",
                "model " + in_quotes(catalog.model.name) + " of " + std::to_string(parameters) + " parameters takes " +
                    std::to_string(profile.memory_base.value) + " bytes with its optimizer states; " +
                    std::string(device.device) + " has " + std::to_string(device.usable.value) +
                    " usable: give a profile whose base leaves room (states sharded or in lower precision)");
  }
  profile.links = {device.node, device.cluster};
  for (const AttentionRate& rate : device.attention) {
    for (const auto& [direction, flops] : {std::pair("forward", rate.forward), std::pair("backward", rate.backward)}) {
      profile.kernels.push_back({.kernel = std::string(device.kernel),
                                 .device = std::string(device.device),
                                 .direction = direction,
                                 .length = {rate.length},
                                 .count = 1,
                                 .heads = catalog.model.heads,
                                 .flops_per_us = std::llround(flops)});
    }
  }
  for (std::size_t i = 0; i < catalog.buckets.size(); ++i) {
    const Bucket& bucket = catalog.buckets[i];
    std::vector<Price> prices;
    for (Configuration c : priced_configurations(catalog.model, bucket.tokens, ranks)) {
      prices.push_back(estimated_price(device, catalog.model, bucket, c, checkpointing));
    }
    profile.set_prices(static_cast<BucketIndex>(i), std::move(prices));
  }
  return profile;
}

std::vector<std::string> built_in_profile_names() {
  std::vector<std::string> names;
  for (const DeviceFigures& device : device_figures()) names.emplace_back(device.name);
  return names;
}

}  // namespace zellige
