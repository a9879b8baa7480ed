// SPDX-License-Identifier: Apache-2.0
#include "calibrate/assemble.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "calibrate/length_curve.h"
#include "zellige/error.h"

namespace zellige {
namespace {

/// Times of all blocks, from those of `depth`: ends are run once, blocks `layers` times.
double scaled_to(int layers, const Points& points, std::int64_t tokens, int degree, double of_depth_us) {
  const double chunk = std::ceil(static_cast<double>(tokens) / degree);
  const double ends = std::min(points.token_us.value_or(0) * chunk + points.sequence_us.value_or(0), 0.5 * of_depth_us);
  return ends + (of_depth_us - ends) * layers / points.depth;
}

MemoryOptions options_of(const Assembly& assembly) {
  return {.checkpointing = assembly.key.checkpointing,
          .element_bytes = assembly.element_bytes,
          .text_dim = assembly.text_dim};
}

/// What one sequence takes of a rank with all blocks, from the peak of a run of `depth` of them.
double need_bytes(const MeasuredPoint& p, const Points& points, const Assembly& assembly) {
  const ModelGeometry& model = assembly.catalog.model;
  const double peak = std::max(1.0, static_cast<double>(p.peak_bytes - workspace(points).value)) / p.sequences;
  // What a block more keeps, with checkpointing or without, the model counts exactly.
  const auto modelled = [&](int layers) {
    ModelGeometry of_layers = model;
    of_layers.layers = layers;
    return static_cast<double>(memory_terms(of_layers, p.tokens, p.config, options_of(assembly)).total().value);
  };
  return peak + modelled(model.layers) - modelled(points.depth);
}

/// How much of one configuration another one shares: the priority with which it stands in for it.
int likeness(Configuration a, Configuration b) {
  return 2 * ((a.q > 1) == (b.q > 1)) + 2 * ((a.h > 1) == (b.h > 1)) + 2 * ((a.k > 1) == (b.k > 1)) +
         (a.is_whole() == b.is_whole());
}

Price exact_price(Configuration config, double time_us, double exchange_us) {
  Price price;
  price.config = config;
  price.time.value = std::max<std::int64_t>(1, std::llround(time_us));
  price.exchange.value = std::clamp<std::int64_t>(std::llround(exchange_us), 0, price.time.value);
  return price;
}

}  // namespace

Bytes workspace(const Points& points) {
  const MeasuredPoint* longest = nullptr;
  const MeasuredPoint* shortest = nullptr;
  for (const MeasuredPoint& p : points.points) {
    // Many short sequences also hold many texts: one sequence alone tells tokens from the rest.
    if (!p.config.is_whole() || p.sequences > 1) continue;
    if (longest == nullptr || p.tokens > longest->tokens) longest = &p;
    if (shortest == nullptr || p.tokens < shortest->tokens) shortest = &p;
  }
  if (longest == shortest) return {};
  const double slope = static_cast<double>(longest->peak_bytes - shortest->peak_bytes) /
                       static_cast<double>(longest->tokens.value - shortest->tokens.value);
  const double rest = static_cast<double>(shortest->peak_bytes) - slope * static_cast<double>(shortest->tokens.value);
  return {std::llround(std::clamp(rest, 0.0, static_cast<double>(shortest->peak_bytes)))};
}

double predicted_us(const Points& points, int layers, const MeasuredPoint& point, int count) {
  return points.full_fixed_us.value_or(0) +
         count * scaled_to(layers, points, point.tokens.value, point.config.degree(), point.time_us);
}

Profile assemble(const Points& points, const Assembly& assembly) {
  const ModelGeometry& model = assembly.catalog.model;
  std::map<Configuration, LengthCurve> times, exchanges, needs;
  for (const MeasuredPoint& p : points.points) {
    times[p.config].add(p.tokens.value, scaled_to(model.layers, points, p.tokens.value, p.config.degree(), p.time_us));
    needs[p.config].add(p.tokens.value, need_bytes(p, points, assembly));
    if (!p.config.is_whole()) {
      exchanges[p.config].add(p.tokens.value, std::max(1e-3, p.exchange_us * model.layers / points.depth));
    }
  }
  if (!times.contains(Configuration{})) {
    throw Error(Code::input, "calibrate",
                "no whole sequence was measured, so nothing can be priced; a larger budget may");
  }
  const Profile estimates = built_in_profile(assembly.estimate, assembly.catalog, assembly.key.checkpointing);

  Profile profile;
  profile.catalog = assembly.catalog;
  profile.key = assembly.key;
  profile.links = estimates.links;
  profile.memory_base = assembly.memory_base + workspace(points);
  profile.memory_usable = assembly.memory_usable;
  profile.step_base.value = std::llround(points.full_fixed_us.value_or(0) + points.gradient_sync_us.value_or(0) +
                                         points.optimizer_us.value_or(0));
  // The measured configuration that is most like another; of equals the one of most ranks.
  const auto like = [](const std::map<Configuration, LengthCurve>& curves, Configuration config) {
    return std::ranges::max_element(
        curves, {}, [&](const auto& entry) { return std::pair(likeness(entry.first, config), entry.first.degree()); });
  };
  const auto need_of = [&](Tokens tokens, Configuration config) -> Bytes {
    if (const auto curve = needs.find(config); curve != needs.end()) {
      return {std::llround(curve->second.at(tokens.value).value)};
    }
    const auto nearest = like(needs, config);
    const auto modelled = [&](Configuration c) {
      return static_cast<double>(memory_terms(model, tokens, c, options_of(assembly)).total().value);
    };
    return {std::llround(nearest->second.at(tokens.value).value * modelled(config) / modelled(nearest->first))};
  };
  for (std::size_t b = 0; b < assembly.catalog.buckets.size(); ++b) {
    const auto bucket = static_cast<BucketIndex>(b);
    const Tokens tokens = assembly.catalog.buckets[b].tokens;
    std::vector<Price> prices;
    for (const Price& estimate : estimates.menu(bucket)) {
      const auto curve = times.find(estimate.config);
      Price price;
      if (curve != times.end()) {
        const CurveValue time = curve->second.at(tokens.value);
        const double exchange = estimate.config.is_whole() ? 0 : exchanges.at(estimate.config).at(tokens.value).value;
        price = exact_price(estimate.config, time.value, exchange);
        price.source = time.source;
        if (const MeasuredPoint* point = points.find(tokens, estimate.config)) {
          price.spread = point->spread;
        } else {
          price.error = time.error;
        }
      } else {
        const auto nearest = like(times, estimate.config);
        const Price& estimated_like = *estimates.find(bucket, nearest->first);
        const double ratio = nearest->second.at(tokens.value).value / static_cast<double>(estimated_like.time.value);
        price = exact_price(estimate.config, static_cast<double>(estimate.time.value) * ratio,
                            static_cast<double>(estimate.exchange.value));
        price.source = PriceSource::estimated;
      }
      price.memory = need_of(tokens, price.config);
      prices.push_back(std::move(price));
    }
    profile.set_prices(bucket, std::move(prices));
  }
  return profile;
}

}  // namespace zellige
