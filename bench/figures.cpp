// SPDX-License-Identifier: Apache-2.0
// The numbers behind pictures like the paper's Figs. 1, 3(a) and 6, modelled.
//   figures NAME [OUT.json]     NAME: fig1, fig3a or fig6
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/methods.h"
#include "bench/result_file.h"
#include "profile/transformer_work.h"
#include "zellige/score.h"

namespace zellige {
namespace {

using Rows = nlohmann::ordered_json;

/// Forward operations of one block on one sequence, attention included.
double layer_operations(const ModelGeometry& model, Tokens length) {
  const LayerWork work = layer_work(model, static_cast<double>(length.value));
  return work.projections + work.feed_forward + work.cross_attention + attention_work(model, length);
}

/// (a) Memory and operations over length, whole sequences of the four image and six video sizes; (b) two ranks of
/// equal tokens, one with images only, one with a video: what each has to do.
Rows fig1() {
  Rows rows = Rows::array();
  std::vector<Bucket> buckets;
  Catalog catalog = make_workload("high:V50").catalog;
  buckets = catalog.buckets;
  for (const Bucket& bucket : make_workload("a800x16:V50").catalog.buckets) {
    if (bucket.kind == MediaKind::video) buckets.push_back(bucket);
  }
  std::stable_sort(buckets.begin(), buckets.end(),
                   [](const Bucket& a, const Bucket& b) { return a.tokens < b.tokens; });
  const ModelGeometry& model = catalog.model;
  const auto memory_of = [&](const Bucket& bucket) {
    return static_cast<double>(memory_terms(model, bucket.tokens, {}).total().value);
  };
  for (const Bucket& bucket : buckets) {
    const double memory = memory_of(bucket), work = layer_operations(model, bucket.tokens);
    rows.push_back({{"panel", "a"},
                    {"bucket", bucket.name},
                    {"tokens", bucket.tokens.value},
                    {"memory_bytes", memory},
                    {"layer_forward_flop", work},
                    {"attention_share", attention_work(model, bucket.tokens) / work},
                    {"memory_over_256p", memory / memory_of(buckets.front())},
                    {"flop_over_256p", work / layer_operations(model, buckets.front().tokens)}});
  }
  for (const char* device : {"a800", "h200"}) {
    const Profile profile = built_in_profile(device, catalog);
    // Equal tokens: one 720p video of 10 s is 41 images of 720p; 205 of them are five videos.
    struct Rank {
      const char* name;
      int videos, images;
    };
    for (const Rank& rank : {Rank{"205 images", 0, 205}, Rank{"1 video, 164 images", 1, 164}, Rank{"5 videos", 5, 0}}) {
      const BucketIndex video = *catalog.find("720p10s"), image = *catalog.find("720p");
      const std::int64_t tokens =
          rank.videos * catalog.buckets[video].tokens.value + rank.images * catalog.buckets[image].tokens.value;
      const Microseconds load = profile.whole(video).time * rank.videos + profile.whole(image).time * rank.images;
      rows.push_back({{"panel", "b"},
                      {"prices", "modelled: " + profile.key.device},
                      {"rank_holds", rank.name},
                      {"tokens", tokens},
                      {"load_us", load.value}});
    }
  }
  return rows;
}

/// The paper's Fig. 2 (three 720p videos and 228 images of 720p on four ranks: 35% of the tokens in videos) and the
/// same with fewer images, so that the videos' share is another.
Batch like_fig2(int share) {
  Batch batch;
  batch.ranks = 4;
  batch.catalog = make_workload("high:V50").catalog;
  const BucketIndex video = *batch.catalog.find("720p10s"), image = *batch.catalog.find("720p");
  const std::int64_t of_videos = 3 * batch.catalog.buckets[video].tokens.value;
  const std::int64_t of_image = batch.catalog.buckets[image].tokens.value;
  const std::int64_t images = share == 35 ? 228 : of_videos * (100 - share) / share / of_image;
  for (int i = 0; i < 3; ++i) batch.sequences.push_back({"v" + std::to_string(i), video, ""});
  for (std::int64_t i = 0; i < images; ++i) batch.sequences.push_back({"i" + std::to_string(i), image, ""});
  return batch;
}

/// Largest over mean rank load of the whole-sequence methods on four ranks, and of ours beside them. A step's base is
/// the same on every rank and is counted in `step_imbalance`, as the paper times full steps.
Rows fig3a() {
  Rows rows = Rows::array();
  for (int share = 35; share <= 60; share += 5) {
    for (const char* mix : {"three 720p videos", "high"}) {
      const Batch batch =
          std::string(mix) == "high" ? make_workload("high:V" + std::to_string(share), 4) : like_fig2(share);
      Profile profile = built_in_profile("a800", batch.catalog, true, 4);
      for (const char* name : {"naive", "karmarkar-karp", "adaptiveload", "zellige"}) {
        const auto method = std::find_if(bench::compared_methods().begin(), bench::compared_methods().end(),
                                         [&](const bench::Method& m) { return m.name == name; });
        const bench::MethodRun run = bench::run_method(*method, batch, profile);
        Rows row = {{"video_share_percent", share}, {"mix", mix}, {"videos", 0}, {"images", 0}};
        for (SequenceIndex s = 0; s < static_cast<SequenceIndex>(batch.sequences.size()); ++s) {
          const char* kind = batch.bucket_of(s).kind == MediaKind::video ? "videos" : "images";
          row[kind] = row[kind].get<int>() + 1;
        }
        row.update(bench::row_of(*method, run, batch, profile));
        if (run.plan.has_placement()) {
          std::vector<double> steps;
          for (const Microseconds load : run.plan.load) {
            steps.push_back(static_cast<double>((load + profile.step_base).value));
          }
          row["step_imbalance"] = bench::imbalance(steps);
        }
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

/// high:V50 on eight ranks: bytes moved by primitive, over USP's and KnapFormer's, and every rank's load.
Rows fig6() {
  Rows rows = Rows::array();
  const Batch batch = make_workload("high:V50");
  for (const char* device : {"a800", "h200"}) {
    const Profile profile = built_in_profile(device, batch.catalog, true, batch.ranks);
    Rows of_device = Rows::array();
    double usp = 0, knapformer = 0;
    for (const bench::Method& method : bench::compared_methods()) {
      const bench::MethodRun run = bench::run_method(method, batch, profile);
      Rows row = {{"workload", "high:V50"}};
      row.update(bench::row_of(method, run, batch, profile));
      if (run.plan.has_placement()) {
        const double moved = static_cast<double>(score(run.plan.placement, profile).moved.total().value);
        row["moved_bytes"] = moved;
        if (method.name == "usp") usp = moved;
        if (method.name == "knapformer") knapformer = moved;
        Rows loads = Rows::array();
        for (const Microseconds load : run.plan.load) loads.push_back(load.value);
        row["rank_load_us"] = std::move(loads);
      }
      of_device.push_back(std::move(row));
    }
    for (Rows& row : of_device) {
      if (!row.contains("moved_bytes")) continue;
      if (usp > 0) row["moved_over_usp"] = row["moved_bytes"].get<double>() / usp;
      if (knapformer > 0) row["moved_over_knapformer"] = row["moved_bytes"].get<double>() / knapformer;
    }
    rows.insert(rows.end(), of_device.begin(), of_device.end());
  }
  return rows;
}

int run(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "fig1";
  const std::string path = argc > 2 ? argv[2] : "bench/results/" + name + ".json";
  if (name != "fig1" && name != "fig3a" && name != "fig6") {
    std::fprintf(stderr, "%s: it must be fig1, fig3a or fig6\n", name.c_str());
    return 2;
  }
  const Rows rows = name == "fig1" ? fig1() : name == "fig3a" ? fig3a() : fig6();
  bench::write_results(path, name, bench::host_cpu(), "figures " + name + " " + path, rows);
  return 0;
}

}  // namespace
}  // namespace zellige

int main(int argc, char** argv) { return zellige::run(argc, argv); }
