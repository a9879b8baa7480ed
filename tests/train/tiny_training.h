// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <fstream>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

#include "train/tiny_data.h"
#include "zellige/manifest.h"

namespace zellige::testing {

// A manifest and rules of a few small samples; a profile whose prices make splitting pay.
class TinyTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream manifest(path("clips.csv"));
    manifest << "path,text,num_frames,height,width,aspect_ratio,resolution,fps\n";
    for (int i = 0; i < 4; ++i) manifest << "v" << i << ".mp4,a clip,17,48,80,0.6,3840,24\n";
    for (int i = 0; i < 12; ++i) manifest << "i" << i << ".jpg,a picture,1,64,80,0.8,5120,0\n";
    std::ofstream rules(path("rules.toml"));
    rules << "[model]\npreset = 'tiny'\n"
             "[[bucket]]\nname = 'image20'\nkind = 'image'\nsize = [64, 80]\n"
             "[[bucket]]\nname = 'video75'\nkind = 'video'\nsize = [48, 80]\nframes = 17\n"
             "[sampling]\nvideo_share = 0.5\n";
    manifest.close();
    rules.close();
    config_ = small_config(Precision::fp32, true);
    config_.data.manifest = path("clips.csv");
    config_.data.rules = path("rules.toml");
    config_.batch.tokens_per_rank = Tokens{60};
    config_.batch.seed = 1;
    config_.ranks.count = 3;
    config_.run.steps = 4;
    config_.plan.options.menu = Menu::all;
    config_.plan.options.time_limit_s = 5;
    write_profile(profile(), path("profile.json"));
    config_.plan.profile = path("profile.json");
  }
  void TearDown() override {
    for (const char* name : {"clips.csv", "rules.toml", "profile.json"}) std::remove(path(name).c_str());
  }

  static std::string path(const std::string& name) {
    return ::testing::TempDir() + "zellige_training_" + std::to_string(getpid()) + "_" + name;
  }

  static Profile profile() {
    Profile result = small_profile();
    const Catalog all = result.catalog;
    Profile kept = result;
    kept.catalog.buckets = {all.buckets[1], all.buckets[3]};
    for (const int b : {0, 1}) {
      const auto prices = result.menu(b == 0 ? 1 : 3);
      kept.set_prices(b, {prices.begin(), prices.end()});
    }
    return kept;
  }

  TrainConfig config_;
};

}  // namespace zellige::testing
