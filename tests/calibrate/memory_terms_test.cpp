// SPDX-License-Identifier: Apache-2.0
// The analytical memory model against allocations counted while real blocks run on thread ranks.
#include <cstdio>
#include <mutex>

#include <gtest/gtest.h>

#include "calibrate/measurement.h"
#include "zellige/step_timer.h"
#include "zellige/thread_ranks.h"

namespace zellige {
namespace {

Catalog catalog_of(int layers, int heads = 4, int head_dim = 32, int ffn = 512) {
  Catalog catalog;
  catalog.model = {"small", heads, heads, head_dim, layers, ffn, {4, 8, 8}, {1, 2, 2}, 16, TextPlacement::cross};
  for (const int side : {256, 512, 768}) {
    std::string name = "s";
    name.append(std::to_string(side));
    catalog.buckets.push_back({name, MediaKind::image, 1, side, side, sequence_tokens(catalog.model, 1, side, side)});
  }
  return catalog;
}

struct Setting {
  int layers = 3;
  Configuration config;
  bool checkpointing = true;
  bool keep_kv = true;
  at::ScalarType compute = at::kFloat;
  std::size_t bucket = 1;
  int count = 1;
  int heads = 4, head_dim = 32, ffn = 512;
};

std::int64_t peak_of(const Setting& s) {
  const Catalog catalog = catalog_of(s.layers, s.heads, s.head_dim, s.ffn);
  std::int64_t peak = 0;
  run_thread_ranks(s.config.degree(), [&](Rank rank, c10::intrusive_ptr<c10d::ProcessGroup> group) {
    WanTransformer::Options options{.parameters = at::kFloat, .compute = s.compute};
    StepTimer timer(std::move(group), wan_config(catalog.model, 32), options, 0, s.checkpointing);
    Placement placement = uniform_placement(catalog, catalog.buckets[s.bucket], s.config, s.config.degree(), s.count);
    placement.exec.keep_kv = s.keep_kv;
    timer.begin(placement, catalog);
    timer.run();
    const StepTimer::Run run = timer.run();
    if (rank == 0) peak = run.most_bytes;
  });
  return peak;
}

std::int64_t model_of(const Setting& s) {
  const Catalog catalog = catalog_of(s.layers, s.heads, s.head_dim, s.ffn);
  return s.count * memory_terms(catalog.model, catalog.buckets[s.bucket].tokens, s.config,
                                {.checkpointing = s.checkpointing,
                                 .keep_kv = s.keep_kv,
                                 .element_bytes = static_cast<int>(c10::elementSize(s.compute))})
                       .total()
                       .value;
}

TEST(MemoryTerms, Explore) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const bool checkpointing : {true, false}) {
      for (const Configuration& c : {Configuration{}, Configuration{2, 1, 1}, Configuration{1, 2, 1},
                                     Configuration{1, 1, 2}, Configuration{2, 2, 1}, Configuration{1, 1, 4}}) {
        for (const std::size_t bucket : {1u, 2u}) {
          for (const int layers : {1, 3}) {
            Setting s;
            s.layers = layers;
            s.compute = type;
            s.checkpointing = checkpointing;
            s.config = c;
            s.bucket = bucket;
            const double tokens = bucket == 1 ? 1024 : 2304;
            const double l = tokens / c.degree();
            std::printf(
                "%s ckpt %d %s L %5.0f layers %d: measured %8.0f  model %8.0f  ratio %.3f   bytes/token/d %.1f model "
                "%.1f\n",
                c10::toString(type), checkpointing, text(c).c_str(), tokens, layers, double(peak_of(s)),
                double(model_of(s)), double(peak_of(s)) / double(model_of(s)), double(peak_of(s)) / l / 128,
                double(model_of(s)) / l / 128);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace zellige
