// SPDX-License-Identifier: Apache-2.0
// The model against tests/model/wan_reference.py, which shares no code with it.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "model/packed_sample.h"

namespace zellige {
namespace {

using namespace testing;

class ReferenceFolder {
 public:
  ReferenceFolder()
      : path_(std::filesystem::temp_directory_path() / ("zellige_wan_reference_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~ReferenceFolder() {
    // File by file: libtorch brings its own, older remove_all, which crashes.
    for (const char* file : {"spec.json", "input.bin", "output.bin", ""}) std::filesystem::remove(path_ / file);
  }

  void write(const nlohmann::json& spec, const std::vector<at::Tensor>& values) const {
    std::ofstream(path_ / "spec.json") << spec;
    std::ofstream file(path_ / "input.bin", std::ios::binary);
    for (const at::Tensor& value : values) {
      const at::Tensor flat = value.detach().to(at::kDouble).contiguous();
      file.write(static_cast<const char*>(flat.data_ptr()), std::streamsize(flat.nbytes()));
    }
  }
  // Runs the reference; false when it failed.
  bool run() const {
    const std::string command =
        std::string(ZELLIGE_PYTHON) + " " + ZELLIGE_TEST_DATA + "/wan_reference.py " + path_.string();
    return std::system(command.c_str()) == 0;
  }
  at::Tensor read() const {
    const auto size = std::int64_t(std::filesystem::file_size(path_ / "output.bin") / sizeof(double));
    at::Tensor values = at::empty({size}, at::kDouble);
    std::ifstream(path_ / "output.bin", std::ios::binary)
        .read(static_cast<char*>(values.data_ptr()), std::streamsize(values.nbytes()));
    return values;
  }

 private:
  std::filesystem::path path_;
};

// Two different sizes, among them one frame, and a patch that is cut in every direction.
void compare(const WanConfig& config, std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  WanTransformer model(config, {.parameters = at::kDouble, .compute = at::kDouble});
  scatter_parameters(model, seed);
  const auto samples = make_samples(config, {{3, 2, 4}, {1, 3, 2}}, seed + 1000);

  nlohmann::json spec = {{"heads", config.heads},       {"layers", config.layers},
                         {"freq_dim", config.freq_dim}, {"text_tokens", config.text_tokens},
                         {"text_dim", config.text_dim}, {"out_channels", config.out_channels},
                         {"patch", config.patch},       {"eps", config.eps}};
  std::vector<at::Tensor> values;
  for (std::size_t i = 0; i < model.names().size(); ++i) {
    spec["parameters"].push_back({{"name", model.names()[i]}, {"shape", model.parameters()[i].sizes().vec()}});
    values.push_back(model.parameters()[i]);
  }
  for (const Sample& sample : samples) {
    const at::Tensor latent = unpatchify(sample.latents, sample.grid, config.patch);
    spec["samples"].push_back(
        {{"latent", latent.sizes().vec()}, {"timestep", sample.timestep}, {"weight", sample.weight}});
    values.insert(values.end(), {latent, unpatchify(sample.target, sample.grid, config.patch), sample.text});
  }
  const ReferenceFolder folder;
  folder.write(spec, values);
  ASSERT_TRUE(folder.run());
  const at::Tensor wanted = folder.read();

  const Outcome found = train_once(model, samples, whole(samples, {0, 1}), false);
  std::int64_t at = 0;
  const auto next = [&](const at::Tensor& like) {
    at += like.numel();
    return wanted.narrow(0, at - like.numel(), like.numel()).view(like.sizes());
  };
  std::int64_t row = 0;
  for (const Sample& sample : samples) {
    const at::Tensor tokens = found.prediction.narrow(0, row, sample.tokens());
    const at::Tensor latent = unpatchify(tokens, sample.grid, config.patch);
    EXPECT_LE(distance(latent, next(latent)), 1e-12);
    row += sample.tokens();
  }
  EXPECT_NEAR(found.loss, wanted[at++].item<double>(), 1e-12 * found.loss);
  for (std::size_t i = 0; i < found.gradients.size(); ++i) {
    const at::Tensor gradient = next(found.gradients[i]);
    EXPECT_GT(gradient.norm().item<double>(), 1e-9) << model.names()[i] << ": the comparison must mean something";
    EXPECT_LE(distance(found.gradients[i], gradient), 1e-11) << model.names()[i];
  }
  EXPECT_EQ(at, wanted.numel());
}

TEST(WanReference, PredictionLossAndGradientsAreThoseOfPlainPyTorch) {
  WanConfig config = small_config();
  config.out_channels = config.in_channels;
  compare(config, 11);
}

TEST(WanReference, AlsoWithOddThirdsOfChannelsAndAPatchInTime) {
  WanConfig config = small_config();
  config.out_channels = config.in_channels;
  config.head_dim = 20;  // 10 pairs: 4, 3, 3
  config.layers = 1;
  config.patch = {2, 1, 3};
  compare(config, 12);
}

}  // namespace
}  // namespace zellige
