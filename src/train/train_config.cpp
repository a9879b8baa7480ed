// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/json.h"
#include "catalog/toml_document.h"
#include "zellige/trainer.h"

namespace zellige {
namespace {

constexpr int kMostInt = std::numeric_limits<int>::max();

// One table of the file. Each key is taken once; what is left over is refused at the end.
class Table {
 public:
  explicit Table(const JsonValue& value) : object_(value) {}

  void take(const char* key, int& into, std::int64_t least, std::int64_t most = kMostInt) {
    if (object_.has(key)) into = static_cast<int>(object_.at(key).integer(least, most));
  }
  void take(const char* key, std::uint64_t& into) {
    if (object_.has(key)) into = static_cast<std::uint64_t>(object_.at(key).integer(0));
  }
  void take(const char* key, bool& into) {
    if (object_.has(key)) into = object_.at(key).boolean();
  }
  void take(const char* key, std::string& into) {
    if (object_.has(key)) into = text(key);
  }
  void take_positive(const char* key, double& into) {
    if (!object_.has(key)) return;
    const JsonValue value = object_.at(key);
    into = value.number();
    if (into <= 0) value.refuse("it must be positive");
  }
  // In [least, below).
  void take_number(const char* key, double& into, double least,
                   double below = std::numeric_limits<double>::infinity()) {
    if (!object_.has(key)) return;
    const JsonValue value = object_.at(key);
    into = value.number();
    if (into >= least && into < below) return;
    const std::string limit = below < std::numeric_limits<double>::infinity() ? " and below " + short_text(below) : "";
    value.refuse("it must be at least " + short_text(least) + limit);
  }
  // One of `words`; returns its place.
  std::size_t choice(const char* key, const std::vector<std::string>& words, std::size_t otherwise) {
    if (!object_.has(key)) return otherwise;
    const JsonValue value = object_.at(key);
    const auto found = std::ranges::find(words, value.string());
    if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
    const std::string near = nearest(value.string(), words);
    value.refuse("it must be one of " + joined(words) +
                 (near.empty() ? "" : "; did you mean " + in_quotes(near) + "?"));
  }
  std::string text(const char* key) {
    const JsonValue value = object_.at(key);
    if (value.string().empty()) value.refuse("it must not be empty");
    return value.string();
  }
  bool has(const char* key) { return object_.has(key); }
  JsonValue at(const char* key) { return object_.at(key); }
  void finish() const { object_.finish(); }

 private:
  static std::string short_text(double value) { return nlohmann::json(value).dump(); }

  JsonObject object_;
};

void read_model(const JsonValue& value, TrainConfig& config) {
  Table table(value);
  if (table.has("preset")) {
    const auto known = model_preset_names();
    const std::string preset = known[table.choice("preset", known, 0)];
    config.model = model_preset(preset);
    config.text_dim = preset == "tiny" ? 64 : 4096;
    table.take("text_dim", config.text_dim, 1);
    table.finish();  // a preset has its sizes: others beside it are refused as unknown
    return;
  }
  // Sizes of one's own; what is not said of strides and patches is Wan's.
  ModelGeometry& model = config.model;
  model = model_preset("wan2.1-t2v-1.3b");
  model.name = "custom";
  for (const auto& [key, size] : {std::pair{"heads", &model.heads}, std::pair{"head_dim", &model.head_dim},
                                  std::pair{"layers", &model.layers}, std::pair{"ffn", &model.ffn}}) {
    *size = static_cast<int>(table.at(key).integer(1, kMostInt));
  }
  table.take("name", model.name);
  table.take("text_tokens", model.text_tokens, 1);
  table.take("text_dim", config.text_dim, 1);
  model.kv_heads = model.heads;
  table.finish();
}

void read_data(const JsonValue& value, TrainConfig::Data& data) {
  Table table(value);
  data.manifest = table.text("manifest");
  data.rules = table.text("rules");
  table.choice("latents", {"synthetic"}, 0);
  table.finish();
}

void read_batch(const JsonValue& value, TrainConfig::Draw& batch) {
  Table table(value);
  batch.tokens_per_rank = Tokens{table.at("tokens_per_rank").integer(1)};
  if (table.has("video_share")) {
    const JsonValue share = table.at("video_share");
    batch.video_share = share.number();
    if (*batch.video_share < 0 || *batch.video_share > 1) share.refuse("it must be between 0 and 1");
  }
  table.take("seed", batch.seed);
  table.finish();
}

void read_plan(const JsonValue& value, TrainConfig::Planning& plan) {
  Table table(value);
  plan.profile = table.text("profile");
  const auto methods = planner_names();
  const auto zellige = static_cast<std::size_t>(std::ranges::find(methods, "zellige") - methods.begin());
  plan.method = methods[table.choice("method", methods, zellige)];
  PlanOptions& options = plan.options;
  options.menu = table.choice("menu", {"powers-of-two", "all"}, 0) == 0 ? Menu::powers_of_two : Menu::all;
  table.take_positive("time_limit_s", options.time_limit_s);
  table.take("layout", options.layout);
  options.exec.engine = table.choice("engine", {"coalesced", "paper"}, 0) == 0 ? "coalesced" : "paper";
  table.take("waves", options.exec.waves, 1);
  table.take("keep_kv", options.exec.keep_kv);
  table.take("overlap", options.exec.overlap);
  if (table.choice("load_model", {"additive", "overlapped"}, 0) == 1) {
    options.load_model.kind = LoadModel::Kind::overlapped;
    table.take("hidden_per_mille", options.load_model.hidden_per_mille, 0, 1000);
  }
  table.finish();
}

void read_ranks(const JsonValue& value, TrainConfig::Ranks& ranks) {
  Table table(value);
  const std::vector<std::string> backends = {"threads", "nccl"};
  const JsonValue backend = table.at("backend");
  ranks.backend = backend.string();
  if (std::ranges::find(backends, ranks.backend) == backends.end()) {
    backend.refuse("it must be one of " + joined(backends));
  }
  ranks.count = static_cast<int>(table.at("count").integer(1, 1024));
  table.take("threads_per_rank", ranks.threads_per_rank, 1, 1024);
  table.take_positive("timeout_s", ranks.timeout_s);
  table.finish();
}

void read_optimizer(const JsonValue& value, TrainConfig::Optimizer& optimizer) {
  Table table(value);
  table.take_positive("lr", optimizer.lr);
  if (table.has("betas")) {
    const JsonValue betas = table.at("betas");
    const std::vector<JsonValue> both = betas.array();
    if (both.size() != 2) betas.refuse("it must be two numbers");
    for (std::size_t i = 0; i < 2; ++i) {
      optimizer.betas[i] = both[i].number();
      if (!(optimizer.betas[i] >= 0 && optimizer.betas[i] < 1)) both[i].refuse("it must be at least 0 and below 1");
    }
  }
  table.take_positive("eps", optimizer.eps);
  table.take_number("weight_decay", optimizer.weight_decay, 0);
  table.take_number("clip_norm", optimizer.clip_norm, 0);
  table.finish();
}

void read_flow(const JsonValue& value, FlowOptions& flow) {
  Table table(value);
  const bool grid = table.choice("sampling", {"shifted-grid", "logit-normal"}, 0) == 0;
  flow.sampling = grid ? SigmaSampling::shifted_grid : SigmaSampling::logit_normal;
  table.take_positive("shift", flow.shift);
  if (grid) {
    table.take("bell_weight", flow.bell_weight);
  } else {
    table.take_number("mean", flow.logit_mean, -std::numeric_limits<double>::max());
    table.take_positive("std", flow.logit_std);
  }
  table.take("fixed_noise", flow.fixed_noise);
  table.finish();
}

void read_run(const JsonValue& value, TrainConfig::Run& run) {
  Table table(value);
  run.steps = static_cast<int>(table.at("steps").integer(1, kMostInt));
  table.take("checkpointing", run.checkpointing);
  constexpr Precision kPrecisions[] = {Precision::fp32, Precision::fp64, Precision::bf16};
  run.precision = kPrecisions[table.choice("precision", {"fp32", "fp64", "bf16"}, 0)];
  table.take("kernel", run.kernel);
  table.take("deterministic", run.deterministic);
  table.take("seed", run.seed);
  table.take("log", run.log);
  table.take("report", run.report);
  table.finish();
}

}  // namespace

TrainConfig read_train_config(const std::string& path) {
  const JsonDocument document = toml_document(path);
  TrainConfig config;
  config.path = path;
  JsonObject file(document.root());
  read_model(file.at("model"), config);
  read_data(file.at("data"), config.data);
  read_batch(file.at("batch"), config.batch);
  read_plan(file.at("plan"), config.plan);
  read_ranks(file.at("ranks"), config.ranks);
  if (file.has("optimizer")) read_optimizer(file.at("optimizer"), config.optimizer);
  if (file.has("flow")) read_flow(file.at("flow"), config.flow);
  read_run(file.at("run"), config.run);
  file.finish();
  config.flow.seed = config.run.seed;

  // Inputs lie where the file says, wherever it is read from.
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const auto beside = [&folder](const std::string& name) { return (folder / name).string(); };
  config.data.manifest = beside(config.data.manifest);
  config.data.rules = beside(config.data.rules);
  const auto built_in = built_in_profile_names();
  if (std::ranges::find(built_in, config.plan.profile) == built_in.end()) {
    config.plan.profile = beside(config.plan.profile);
  }
  return config;
}

}  // namespace zellige
