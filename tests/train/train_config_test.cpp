// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <map>

#include <unistd.h>

#include "zellige/error.h"
#include "zellige/trainer.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;

using Tables = std::map<std::string, std::map<std::string, std::string>>;

const Tables kLeast = {
    {"model", {{"preset", "'tiny'"}}},
    {"data", {{"manifest", "'clips.csv'"}, {"rules", "'rules.toml'"}}},
    {"batch", {{"tokens_per_rank", "4096"}}},
    {"plan", {{"profile", "'cpu'"}}},
    {"ranks", {{"backend", "'threads'"}, {"count", "4"}}},
    {"run", {{"steps", "20"}}},
};

TrainConfig read(const Tables& tables) {
  std::string path = ::testing::TempDir() + "zellige_train_" + std::to_string(getpid()) + ".toml";
  std::ofstream file(path);
  for (const auto& [name, keys] : tables) {
    file << "[" << name << "]\n";
    for (const auto& [key, value] : keys) file << key << " = " << value << "\n";
  }
  file.close();
  struct Remove {
    const std::string& path;
    ~Remove() { std::remove(path.c_str()); }
  } remove{path};
  return read_train_config(path);
}

// What reading is refused with after one change; empty when it is taken.
std::string refusal(const std::string& table, const std::string& key, const std::string& value) {
  Tables tables = kLeast;
  if (value.empty()) {
    tables[table].erase(key);
  } else {
    tables[table][key] = value;
  }
  try {
    read(tables);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::input);
    return error.what();
  }
}

TEST(TrainConfig, LeavesDefaultsWhereNothingIsSaid) {
  const TrainConfig config = read(kLeast);
  EXPECT_EQ(config.model, model_preset("tiny"));
  EXPECT_EQ(config.text_dim, 64);
  EXPECT_EQ(config.data.latents, "synthetic");
  EXPECT_EQ(config.batch.tokens_per_rank.value, 4096);
  EXPECT_FALSE(config.batch.video_share.has_value());
  EXPECT_EQ(config.plan.method, "zellige");
  EXPECT_EQ(config.plan.profile, "cpu") << "a built-in profile is no path";
  EXPECT_EQ(config.ranks.count, 4);
  EXPECT_EQ(config.optimizer.lr, 1e-4);
  EXPECT_EQ(config.flow.sampling, SigmaSampling::shifted_grid);
  EXPECT_TRUE(config.run.checkpointing);
  EXPECT_EQ(config.run.precision, Precision::fp32);
  EXPECT_EQ(config.run.log, "");
}

TEST(TrainConfig, TakesEveryKey) {
  Tables tables = kLeast;
  tables["model"] = {{"name", "'mine'"}, {"heads", "6"},       {"head_dim", "16"}, {"layers", "3"},
                     {"ffn", "100"},     {"text_tokens", "7"}, {"text_dim", "9"}};
  tables["data"]["latents"] = "'synthetic'";
  tables["batch"]["video_share"] = "0.25";
  tables["batch"]["seed"] = "11";
  tables["plan"] = {{"profile", "'p.json'"},     {"method", "'naive'"}, {"menu", "'all'"},
                    {"time_limit_s", "2.5"},     {"layout", "'g2n2'"},  {"waves", "3"},
                    {"keep_kv", "false"},        {"overlap", "true"},   {"load_model", "'overlapped'"},
                    {"hidden_per_mille", "250"}, {"engine", "'paper'"}};
  tables["ranks"]["threads_per_rank"] = "2";
  tables["ranks"]["timeout_s"] = "7";
  tables["optimizer"] = {
      {"lr", "3e-4"}, {"betas", "[0.8, 0.9]"}, {"eps", "1e-6"}, {"weight_decay", "0"}, {"clip_norm", "0.5"}};
  tables["flow"] = {
      {"sampling", "'logit-normal'"}, {"shift", "3"}, {"mean", "-0.5"}, {"std", "2"}, {"fixed_noise", "true"}};
  tables["run"] = {{"steps", "5"},         {"checkpointing", "false"}, {"precision", "'bf16'"},
                   {"kernel", "'plain'"},  {"deterministic", "true"},  {"seed", "13"},
                   {"log", "'log.jsonl'"}, {"report", "'page.html'"}};
  const TrainConfig config = read(tables);
  EXPECT_EQ(config.model.name, "mine");
  EXPECT_EQ(config.model.heads, 6);
  EXPECT_EQ(config.model.kv_heads, 6);
  EXPECT_EQ(config.model.head_dim, 16);
  EXPECT_EQ(config.model.layers, 3);
  EXPECT_EQ(config.model.ffn, 100);
  EXPECT_EQ(config.model.text_tokens, 7);
  EXPECT_EQ(config.model.patch, (std::array<int, 3>{1, 2, 2})) << "Wan's";
  EXPECT_EQ(config.text_dim, 9);
  const std::string folder = ::testing::TempDir();
  EXPECT_EQ(config.data.manifest, folder + "clips.csv") << "beside train.toml";
  EXPECT_EQ(config.data.rules, folder + "rules.toml");
  EXPECT_EQ(config.plan.profile, folder + "p.json");
  EXPECT_EQ(config.batch.video_share, 0.25);
  EXPECT_EQ(config.batch.seed, 11u);
  EXPECT_EQ(config.plan.method, "naive");
  EXPECT_EQ(config.plan.options.menu, Menu::all);
  EXPECT_EQ(config.plan.options.time_limit_s, 2.5);
  EXPECT_EQ(config.plan.options.layout, "g2n2");
  EXPECT_EQ(config.plan.options.exec.waves, 3);
  EXPECT_FALSE(config.plan.options.exec.keep_kv);
  EXPECT_TRUE(config.plan.options.exec.overlap);
  EXPECT_EQ(config.plan.options.load_model, (LoadModel{LoadModel::Kind::overlapped, 250}));
  EXPECT_EQ(config.plan.options.exec.engine, "paper");
  EXPECT_EQ(config.run.kernel, "plain");
  EXPECT_TRUE(config.run.deterministic);
  EXPECT_EQ(config.ranks.threads_per_rank, 2);
  EXPECT_EQ(config.ranks.timeout_s, 7);
  EXPECT_EQ(config.optimizer.lr, 3e-4);
  EXPECT_EQ(config.optimizer.betas, (std::array<double, 2>{0.8, 0.9}));
  EXPECT_EQ(config.optimizer.eps, 1e-6);
  EXPECT_EQ(config.optimizer.weight_decay, 0);
  EXPECT_EQ(config.optimizer.clip_norm, 0.5);
  EXPECT_EQ(config.flow.sampling, SigmaSampling::logit_normal);
  EXPECT_EQ(config.flow.shift, 3);
  EXPECT_EQ(config.flow.logit_mean, -0.5);
  EXPECT_EQ(config.flow.logit_std, 2);
  EXPECT_TRUE(config.flow.fixed_noise);
  EXPECT_EQ(config.run.steps, 5);
  EXPECT_FALSE(config.run.checkpointing);
  EXPECT_EQ(config.run.precision, Precision::bf16);
  EXPECT_EQ(config.run.seed, 13u);
  EXPECT_EQ(config.flow.seed, 13u);
  EXPECT_EQ(config.run.log, "log.jsonl") << "where one stands";
  EXPECT_EQ(config.run.report, "page.html");
}

struct Wrong {
  const char* table;
  const char* key;
  const char* value;  // empty: the key is left out
  const char* says;
};

class WrongConfig : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongConfig, IsRefusedByName) {
  const Wrong& wrong = GetParam();
  const std::string text = refusal(wrong.table, wrong.key, wrong.value);
  EXPECT_THAT(text, HasSubstr(".toml"));
  EXPECT_THAT(text, HasSubstr(wrong.key));
  EXPECT_THAT(text, HasSubstr(wrong.says));
}

INSTANTIATE_TEST_SUITE_P(
    TrainConfig, WrongConfig,
    ::testing::Values(
        Wrong{"model", "preset", "'tinny'", "did you mean 'tiny'"}, Wrong{"model", "preset", "3", "3"},
        Wrong{"model", "heads", "12", "heads"}, Wrong{"model", "text_dim", "0", "0"},
        Wrong{"data", "manifest", "", "missing"}, Wrong{"data", "rules", "''", "empty"},
        Wrong{"data", "latents", "'cache'", "synthetic"}, Wrong{"data", "latent", "'synthetic'", "latent"},
        Wrong{"batch", "tokens_per_rank", "", "missing"}, Wrong{"batch", "tokens_per_rank", "0", "0"},
        Wrong{"batch", "tokens_per_rank", "4096.5", "4096.5"}, Wrong{"batch", "video_share", "1.5", "between 0 and 1"},
        Wrong{"batch", "seed", "-1", "-1"}, Wrong{"plan", "method", "'zelige'", "did you mean 'zellige'"},
        Wrong{"plan", "profile", "", "missing"}, Wrong{"plan", "menu", "'some'", "powers-of-two"},
        Wrong{"plan", "waves", "0", "0"}, Wrong{"plan", "keep_kv", "'yes'", "yes"},
        Wrong{"plan", "time_limit_s", "0", "positive"}, Wrong{"plan", "load_model", "'hidden'", "additive, overlapped"},
        Wrong{"plan", "hidden_per_mille", "800", "hidden_per_mille"},
        Wrong{"ranks", "backend", "'mpi'", "threads, nccl"}, Wrong{"ranks", "backend", "", "missing"},
        Wrong{"ranks", "count", "0", "0"}, Wrong{"ranks", "cuont", "4", "cuont"},
        Wrong{"optimizer", "lr", "-1", "positive"}, Wrong{"optimizer", "betas", "[0.9]", "two numbers"},
        Wrong{"optimizer", "betas", "[0.9, 1.0]", "below 1"}, Wrong{"optimizer", "weight_decay", "-0.1", "at least 0"},
        Wrong{"optimizer", "momentum", "0.9", "momentum"}, Wrong{"flow", "sampling", "'uniform'", "shifted-grid"},
        Wrong{"flow", "std", "1", "std"}, Wrong{"flow", "shift", "0", "positive"},
        Wrong{"flow", "fixed_noise", "1", "1"}, Wrong{"run", "steps", "", "missing"}, Wrong{"run", "steps", "0", "0"},
        Wrong{"plan", "engine", "'papr'", "did you mean 'paper'"}, Wrong{"plan", "overlap", "1", "1"},
        Wrong{"run", "kernel", "3", "3"}, Wrong{"run", "checkpointing", "'on'", "on"},
        Wrong{"run", "precision", "'fp16'", "bf16"}, Wrong{"run", "logs", "'x'", "logs"},
        Wrong{"runs", "steps", "1", "runs"}));

TEST(TrainConfig, MissingTablesAreNamed) {
  for (const char* table : {"model", "data", "batch", "plan", "ranks", "run"}) {
    Tables tables = kLeast;
    tables.erase(table);
    try {
      read(tables);
      ADD_FAILURE() << table;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(table));
    }
  }
}

}  // namespace
}  // namespace zellige
