// SPDX-License-Identifier: Apache-2.0
#include "plan/knapformer_routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "base/random.h"

namespace zellige {
namespace {

// Golden vectors, produced by the original planner: d = 3072, gamma = 0.4, per-rank lengths
// [[512], [512, 512], [1024], [256, 256, 256, 256]], sequences numbered in that order.
const std::vector<std::int64_t> kLengths = {512, 512, 512, 1024, 256, 256, 256, 256};
constexpr int kWidth = 3072;
constexpr double kGamma = 0.4;

struct Golden {
  const char* layout;
  std::vector<std::int32_t> bag_of;
  std::vector<double> occupancy;  // to four digits
  double max_over_min;            // of ranks' work, to four digits
};

const Golden kGolden[] = {
    {"g1n4", {1, 2, 3, 0, 1, 2, 3, 1}, {1.1536, 1.1379, 0.8542, 0.8542}, 1.3505},
    {"g2n2", {1, 1, 1, 0, 0, 0, 1, 0}, {1.0024, 0.9976}, 1.0047},
    {"g3n1+g1n1", {0, 1, 0, 1, 1, 1, 1, 1}, {1.1411, 0.9530}, 1.1974},
};

/// Largest over smallest work of a rank, every bag's work spread evenly over its ranks.
double max_over_min(const RoutingOrder& order, const GroupLayout& layout, const Routing& routing) {
  const std::vector<RankGroup> bags = rank_groups(layout);
  std::vector<double> work(bags.size(), 0);
  for (std::size_t s = 0; s < routing.bag_of.size(); ++s) {
    work[routing.bag_of[s]] += order.work[s] / bags[routing.bag_of[s]].size;
  }
  return *std::max_element(work.begin(), work.end()) / *std::min_element(work.begin(), work.end());
}

TEST(KnapformerRouting, GoldenBagsAndOccupancies) {
  const RoutingOrder order = routing_order(kLengths, kWidth, kGamma);
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(golden.layout);
    const GroupLayout layout = parse_group_layout(golden.layout, 4, "test");
    const Routing routing = route(order, layout);
    EXPECT_EQ(routing.bag_of, golden.bag_of);
    ASSERT_EQ(routing.occupancy.size(), golden.occupancy.size());
    for (std::size_t bag = 0; bag < golden.occupancy.size(); ++bag) {
      EXPECT_NEAR(routing.occupancy[bag], golden.occupancy[bag], 5e-5) << bag;
    }
    EXPECT_NEAR(max_over_min(order, layout, routing), golden.max_over_min, 1e-4);
  }
}

TEST(KnapformerRouting, GoldenChunks) {
  const RoutingOrder order = routing_order(kLengths, kWidth, kGamma);
  const GroupLayout layout = parse_group_layout("g3n1+g1n1", 4, "test");
  const auto chunks = routed_chunks(kLengths, layout, route(order, layout));
  std::vector<std::int64_t> tokens;
  for (const RoutedChunk& chunk : chunks.at(1)) tokens.push_back(chunk.tokens);
  EXPECT_EQ(tokens, (std::vector<std::int64_t>{170, 342, 85, 85, 86, 85}));
}

TEST(KnapformerRouting, WorkIsTheModelsFlopsInTera) {
  // 24 * 1000 * 2^2 + 0.5 * 4 * 1000^2 * 2 = 96,000 + 4,000,000.
  EXPECT_DOUBLE_EQ(knapformer_work(1000, 2, 0.5), 4'096'000e-12);
}

/// Token counts of a public workload of KnapFormer's: gXbYiZfWsV is X GPUs, Y samples each, image side Z, W frames,
/// compressed in time or not; 196 text tokens.
std::vector<std::vector<std::int64_t>> workload_lengths(const std::string& codes) {
  std::vector<std::vector<std::int64_t>> ranks;
  std::istringstream all(codes);
  for (std::string code; std::getline(all, code, ',');) {
    char g, b, i, f, s;
    int gpus, samples, side, frames, compressed;
    std::istringstream(code) >> g >> gpus >> b >> samples >> i >> side >> f >> frames >> s >> compressed;
    const int latent = compressed == 0 ? frames : std::max(static_cast<int>(frames / 3.4), 1);
    const std::int64_t tokens = (side / 16) * (side / 16) * latent + 196;
    for (int gpu = 0; gpu < gpus; ++gpu) ranks.emplace_back(samples, tokens);
  }
  return ranks;
}

TEST(KnapformerRouting, PublicWorkloadsBalanceAsPublished) {
  struct Case {
    const char* codes;
    double unbalanced;
    std::vector<std::pair<const char*, double>> layouts;  // modelled max/mean, gamma = 1
  };
  const Case cases[] = {
      {"g8b4i256f1s0,g2b5i512f1s0,g2b5i1024f1s0,g4b1i2048f1s0,g1b10i256f4s0,g3b1i512f4s0,g8b2i256f85s1,g4b1i512f85s1",
       3.162,
       {{"g1n32", 3.162}, {"g2n16", 1.581}, {"g4n8", 1.0018}, {"g8n4", 1.0004}}},
      {"g16b4i256f1s0,g4b5i512f1s0,g4b5i1024f1s0,g8b1i2048f1s0",
       2.438,
       {{"g1n32", 2.438}, {"g2n16", 1.219}, {"g4n8", 1.0028}, {"g8n4", 1.0000}}},
  };
  for (const Case& one : cases) {
    const auto ranks = workload_lengths(one.codes);
    ASSERT_EQ(ranks.size(), 32u);
    std::vector<std::int64_t> lengths;
    double heaviest = 0;
    for (const std::vector<std::int64_t>& rank : ranks) {
      double work = 0;
      for (const std::int64_t length : rank) {
        lengths.push_back(length);
        work += knapformer_work(length, 3072, 1);
      }
      heaviest = std::max(heaviest, work);
    }
    const RoutingOrder order = routing_order(lengths, 3072, 1);
    EXPECT_NEAR(heaviest / (order.total_work / 32), one.unbalanced, 6e-4);
    for (const auto& [notation, expected] : one.layouts) {
      const Routing routing = route(order, parse_group_layout(notation, 32, "test"));
      const double tolerance = expected < 1.1 ? 6e-5 : 6e-4;  // as many digits as are published
      EXPECT_NEAR(*std::max_element(routing.occupancy.begin(), routing.occupancy.end()), expected, tolerance)
          << notation;
    }
  }
}

/// The same rules, read again and written down without any shortcut.
Routing route_plainly(const std::vector<std::int64_t>& lengths, const std::vector<int>& bag_sizes, int width,
                      double gamma) {
  double total = 0;
  int ranks = 0;
  for (const std::int64_t length : lengths) total += knapformer_work(length, width, gamma);
  for (const int size : bag_sizes) ranks += size;
  std::vector<std::size_t> ids(lengths.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  Routing result;
  result.bag_of.assign(lengths.size(), -1);
  result.occupancy.assign(bag_sizes.size(), 0);
  for (const std::size_t id : ids) {
    const double work = knapformer_work(lengths[id], width, gamma);
    std::vector<std::size_t> candidates;
    for (std::size_t bag = 0; bag < bag_sizes.size(); ++bag) {
      if (bag_sizes[bag] * (total / ranks) >= work && lengths[id] >= bag_sizes[bag]) candidates.push_back(bag);
    }
    if (candidates.empty()) {
      for (std::size_t bag = 0; bag < bag_sizes.size(); ++bag) {
        if (bag_sizes[bag] == bag_sizes.back()) candidates.push_back(bag);
      }
    }
    std::size_t best = candidates.front();
    for (const std::size_t bag : candidates) {
      if (result.occupancy[bag] < result.occupancy[best]) best = bag;
    }
    result.bag_of[id] = static_cast<std::int32_t>(best);
    result.occupancy[best] += work / (bag_sizes[best] * (total / ranks));
  }
  return result;
}

TEST(KnapformerRouting, AgreesWithThePlainReadingOnRandomBatches) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEngine engine(seed);
    GroupLayout layout;
    for (int size = 1; size <= 6; ++size) {
      if (draw_below(engine, 2) == 0) layout.groups.push_back({size, 1 + static_cast<int>(draw_below(engine, 3))});
    }
    if (layout.groups.empty()) layout.groups.push_back({2, 2});
    std::vector<int> bag_sizes;
    for (const RankGroup& bag : rank_groups(layout)) bag_sizes.push_back(bag.size);
    std::vector<std::int64_t> lengths(draw_below(engine, 40));
    for (std::int64_t& length : lengths)
      length = 1 + static_cast<std::int64_t>(draw_below(engine, 1 << draw_below(engine, 14)));
    const Routing expected = route_plainly(lengths, bag_sizes, 64, 0.7);
    const Routing actual = route(routing_order(lengths, 64, 0.7), layout);
    EXPECT_EQ(actual.bag_of, expected.bag_of);
    EXPECT_EQ(actual.occupancy, expected.occupancy);

    std::vector<std::int64_t> received(lengths.size(), 0);
    for (const auto& rank : routed_chunks(lengths, layout, actual)) {
      for (const RoutedChunk& chunk : rank) received[chunk.sequence] += chunk.tokens;
    }
    EXPECT_EQ(received, lengths);
  }
}

TEST(KnapformerRouting, ARankWithoutWorkIsAResult) {
  const std::vector<std::int64_t> lengths = {100};
  const GroupLayout layout = parse_group_layout("g1n3", 3, "test");
  const auto chunks = routed_chunks(lengths, layout, route(routing_order(lengths, 64, 1), layout));
  EXPECT_EQ(chunks, (std::vector<std::vector<RoutedChunk>>{{{0, 100}}, {}, {}}));
}

}  // namespace
}  // namespace zellige
