// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "zellige/placement.h"

/// The worked case of tests/golden/worked_case, written out by hand, so that tests of one room don't lean on the
/// readers of another: two ranks, one split video, four images.
namespace zellige::worked_case {

inline std::string file(const std::string& name) {
  return std::string(ZELLIGE_SOURCE_DIR) + "/tests/golden/worked_case/" + name + ".json";
}

inline Catalog catalog() {
  return {.model = {.name = "wan2.1-t2v-1.3b",
                    .heads = 12,
                    .kv_heads = 12,
                    .head_dim = 128,
                    .layers = 30,
                    .ffn = 8960,
                    .vae_stride = {4, 8, 8},
                    .patch = {1, 2, 2},
                    .text_tokens = 512,
                    .text = TextPlacement::cross},
          .buckets = {{"720p", MediaKind::image, 1, 720, 1280, {3600}},
                      {"1080p", MediaKind::image, 1, 1088, 1920, {8160}},
                      {"480p10s", MediaKind::video, 161, 480, 832, {63960}}}};
}

inline Batch batch() {
  return {.ranks = 2,
          .catalog = catalog(),
          .sequences = {{"clip-7", 2, ""}, {"img-1", 1, ""}, {"img-2", 1, ""}, {"img-3", 0, ""}, {"img-4", 0, ""}}};
}

inline Profile profile() {
  Profile profile;
  profile.catalog = catalog();
  profile.key = {.device = "NVIDIA H200", .driver = "580.159", .executor = 1, .checkpointing = true};
  profile.step_base = {210'000};
  profile.memory_base = {23'000'000'000};
  profile.memory_usable = {140'000'000'000};
  profile.links = {{"node", 40, 330'000}};
  const auto price = [](Configuration config, std::int64_t time_us, std::int64_t exchange_us, std::int64_t memory) {
    return Price{.config = config, .time = {time_us}, .exchange = {exchange_us}, .memory = {memory}};
  };
  profile.set_prices(0, {price({1, 1, 1}, 75'524, 0, 381'542'400)});
  profile.set_prices(1, {price({1, 1, 1}, 219'261, 0, 864'829'440)});
  profile.set_prices(
      2, {price({1, 1, 1}, 6'431'933, 0, 6'778'736'640), price({1, 2, 1}, 3'269'554, 53'587, 3'536'732'160)});
  return profile;
}

inline Placement placement() {
  const auto image = [](const char* id, const char* bucket, std::int64_t tokens, Rank rank, std::int64_t time_us,
                        std::int64_t memory) {
    return PlacedSequence{id, bucket, MediaKind::image, {tokens}, {1, 1, 1}, {rank}, {time_us}, {memory}};
  };
  return {
      .ranks = 2,
      .model = catalog().model,
      .sequences = {{"clip-7", "480p10s", MediaKind::video, {63960}, {1, 2, 1}, {0, 1}, {3'269'554}, {3'536'732'160}},
                    image("img-1", "1080p", 8160, 0, 219'261, 864'829'440),
                    image("img-2", "1080p", 8160, 1, 219'261, 864'829'440),
                    image("img-3", "720p", 3600, 0, 75'524, 381'542'400),
                    image("img-4", "720p", 3600, 1, 75'524, 381'542'400)},
      .exec = {}};
}

inline constexpr const char* kDigest = "sha256:106b3c61e734ad4697a41889cb9fe6d39a5a7a812a64c2eca54d7771e4f86369";
inline constexpr const char* kProfileDigest = "sha256:303facf00123108d97d5b40fb4cc0d16e68f129b6d4540acfdf6c43a4acf5d25";

inline Plan plan() {
  return {.method = "zellige",
          .solver = "own",
          .status = PlanStatus::optimal,
          .certified = true,
          .reason = "",
          .placement = placement(),
          .load = {{3'564'339}, {3'564'339}},
          .memory = {{4'783'104'000}, {4'783'104'000}},
          .makespan = {3'564'339},
          .floor = {3'510'751},
          .split_count = 1,
          .certificate = {.anchor_load = Microseconds{3'269'554},
                          .anchor_bound = Microseconds{3'269'554},
                          .anchor_status = SolveStatus::optimal,
                          .split_count = 1,
                          .split_bound = 1,
                          .split_status = SolveStatus::optimal,
                          .makespan_bound = Microseconds{3'564'339}},
          .solve_time = {900},
          .profile_digest = kProfileDigest};
}

}  // namespace zellige::worked_case
