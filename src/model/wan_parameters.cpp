// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "engine/torch.h"
#include "model/counter_random.h"
#include "zellige/error.h"
#include "zellige/model.h"

namespace zellige {
namespace {

[[noreturn]] void refuse(std::string_view where, const std::string& message) {
  throw Error(Code::input, where, message);
}

struct Named {
  std::string name;
  std::vector<std::int64_t> shape;
};

// Names and order of Wan's own checkpoints: a module's own tensors first, then its parts as they are declared.
std::vector<Named> parameter_list(const WanConfig& config) {
  const std::int64_t dim = config.dim();
  std::vector<Named> list;
  const auto add = [&list](std::string name, std::vector<std::int64_t> shape) {
    list.push_back({std::move(name), std::move(shape)});
  };
  const auto linear = [&add](const std::string& name, std::int64_t out, std::int64_t in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  };
  add("patch_embedding.weight", {dim, config.in_channels, config.patch[0], config.patch[1], config.patch[2]});
  add("patch_embedding.bias", {dim});
  linear("text_embedding.0", dim, config.text_dim);
  linear("text_embedding.2", dim, dim);
  linear("time_embedding.0", dim, config.freq_dim);
  linear("time_embedding.2", dim, dim);
  linear("time_projection.1", 6 * dim, dim);
  for (int i = 0; i < config.layers; ++i) {
    const std::string block = "blocks." + std::to_string(i) + ".";
    const auto attention = [&](const std::string& name) {
      for (const char* part : {"q", "k", "v", "o"}) linear(block + name + "." + part, dim, dim);
      add(block + name + ".norm_q.weight", {dim});
      add(block + name + ".norm_k.weight", {dim});
    };
    add(block + "modulation", {1, 6, dim});
    attention("self_attn");
    add(block + "norm3.weight", {dim});
    add(block + "norm3.bias", {dim});
    attention("cross_attn");
    linear(block + "ffn.0", config.ffn, dim);
    linear(block + "ffn.2", dim, config.ffn);
  }
  add("head.modulation", {1, 2, dim});
  linear("head.head", config.out_width(), dim);
  return list;
}

// How a parameter starts: a constant, or spread uniformly or normally.
struct Start {
  enum class Kind { constant, uniform, normal } kind;
  double value;  // the constant, the bound, or the deviation
};

Start start_of(const std::string& name, const at::Tensor& parameter, int dim) {
  using enum Start::Kind;
  if (name.ends_with("modulation")) return {normal, 1 / std::sqrt(static_cast<double>(dim))};
  if (name.ends_with(".bias")) return {constant, 0};
  if (parameter.dim() == 1) return {constant, 1};  // the gains of norms
  for (const char* embedding : {"text_embedding.", "time_embedding.", "head."}) {
    if (name.starts_with(embedding)) return {normal, 0.02};
  }
  const double fan_out = static_cast<double>(parameter.size(0));
  const double fan_in = static_cast<double>(parameter.numel()) / fan_out;
  return {uniform, std::sqrt(6 / (fan_in + fan_out))};
}

void require_sizes(const WanConfig& config) {
  constexpr std::string_view where = "model.WanTransformer";
  const std::pair<const char*, int> sizes[] = {
      {"heads", config.heads},       {"head_dim", config.head_dim},
      {"layers", config.layers},     {"ffn", config.ffn},
      {"freq_dim", config.freq_dim}, {"text_tokens", config.text_tokens},
      {"text_dim", config.text_dim}, {"in_channels", config.in_channels},
      {"patch[0]", config.patch[0]}, {"out_channels", config.out_channels},
      {"patch[1]", config.patch[1]}, {"patch[2]", config.patch[2]},
  };
  for (const auto& [what, value] : sizes) {
    if (value < 1) refuse(where, std::string(what) + " " + std::to_string(value) + " must be at least 1");
  }
  // RoPE turns pairs of channels, and gives rows and columns a third each.
  if (config.head_dim % 2 != 0 || config.head_dim < 6) {
    refuse(where, "head_dim " + std::to_string(config.head_dim) + " must be even and at least 6");
  }
  if (config.freq_dim % 2 != 0) refuse(where, "freq_dim " + std::to_string(config.freq_dim) + " must be even");
  if (!(config.eps > 0)) refuse(where, "eps must be positive");
}

}  // namespace

WanConfig wan_config(const ModelGeometry& geometry, int text_dim) {
  const std::string what = "model " + in_quotes(geometry.name) + ": ";
  if (geometry.text != TextPlacement::cross) {
    refuse("model.wan_config", what + "text is " + std::string(name(geometry.text)) +
                                   ", but a Wan transformer attends to its text apart (cross)");
  }
  if (geometry.kv_heads != geometry.heads) {
    refuse("model.wan_config", what + "kv_heads " + std::to_string(geometry.kv_heads) + " must be heads, " +
                                   std::to_string(geometry.heads) + ": a Wan transformer does not group its heads");
  }
  WanConfig config;
  config.heads = geometry.heads;
  config.head_dim = geometry.head_dim;
  config.layers = geometry.layers;
  config.ffn = geometry.ffn;
  config.text_tokens = geometry.text_tokens;
  config.text_dim = text_dim;
  config.patch = geometry.patch;
  require_sizes(config);
  return config;
}

WanConfig wan_preset(std::string_view name) {
  const std::vector<std::string> known = {"tiny", "wan2.1-t2v-1.3b", "wan2.1-t2v-14b"};
  if (std::ranges::find(known, name) == known.end()) {
    refuse("model.wan_preset", in_quotes(name) + " is no preset of a Wan transformer; there are " + joined(known));
  }
  return wan_config(model_preset(name), name == "tiny" ? 64 : 4096);
}

WanTransformer::WanTransformer(const WanConfig& config) : WanTransformer(config, Options()) {}

WanTransformer::WanTransformer(const WanConfig& config, const Options& options) : config_(config), options_(options) {
  require_sizes(config);
  for (Named& parameter : parameter_list(config)) {
    names_.push_back(std::move(parameter.name));
    parameters_.push_back(at::empty(parameter.shape, at::TensorOptions(options.parameters).device(options.device)));
    parameters_.back().set_requires_grad(true);
  }
}

void WanTransformer::initialise(std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  constexpr std::int64_t kRow = 1024;  // values drawn from one row of a parameter's stream
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& parameter = parameters_[i];
    const Start start = start_of(names_[i], parameter, config_.dim());
    if (start.kind == Start::Kind::constant) {
      parameter.fill_(start.value);
      continue;
    }
    const at::Tensor values = at::empty({parameter.numel()}, at::kDouble);
    const std::span<double> all(values.data_ptr<double>(), static_cast<std::size_t>(parameter.numel()));
    const std::uint64_t stream = random_stream(seed, "weights", 0, names_[i]);
    for (std::int64_t begin = 0; begin < parameter.numel(); begin += kRow) {
      CounterRandom random(stream, static_cast<std::uint64_t>(begin / kRow));
      const auto row = all.subspan(begin, std::min(kRow, parameter.numel() - begin));
      if (start.kind == Start::Kind::normal) {
        random.normal(row);
        for (double& value : row) value *= start.value;
      } else {
        for (double& value : row) value = (2 * random.unit() - 1) * start.value;
      }
    }
    parameter.copy_(values.view(parameter.sizes()));
  }
}

const at::Tensor& WanTransformer::parameter(std::string_view name) const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return parameters_[i];
  }
  refuse("model.parameter", in_quotes(name) + " is no parameter of this model; nearest: " + nearest(name, names_));
}

std::int64_t WanTransformer::num_parameters() const {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : parameters_) count += parameter.numel();
  return count;
}

}  // namespace zellige
