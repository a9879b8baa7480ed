// SPDX-License-Identifier: Apache-2.0
// The analytical memory model against allocations counted while real blocks run on thread ranks.
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

// A checkpointed block more keeps its input and nothing else: to the byte, whole and split, in either precision.
TEST(MemoryTerms, ABlocksInputIsCountedExactly) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const Configuration& c :
         {Configuration{}, Configuration{2, 1, 1}, Configuration{1, 2, 1}, Configuration{1, 1, 2}}) {
      SCOPED_TRACE(text(c));
      Setting s;
      s.compute = type;
      s.config = c;
      s.bucket = 0;
      const std::int64_t three = peak_of(s), three_modelled = model_of(s);
      s.layers = 2;
      EXPECT_EQ(three - peak_of(s), three_modelled - model_of(s));
      EXPECT_GT(three_modelled, model_of(s));
    }
  }
}

// What the model leaves out (copies in fp32 for norms, rows of the modulation, kernels' workspaces) is measured by the
// profiler; it never counts more than there is.
TEST(MemoryTerms, NeverCountsWhatIsNotThere) {
  for (const bool checkpointing : {true, false}) {
    Setting s;
    s.checkpointing = checkpointing;
    s.bucket = 0;
    EXPECT_LT(model_of(s), peak_of(s));
  }
}

}  // namespace
}  // namespace zellige
