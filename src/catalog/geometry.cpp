// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <vector>

#include "base/json.h"
#include "zellige/catalog.h"
#include "zellige/error.h"

namespace zellige {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 53;  // as for every whole number in our files

// Published sizes of the models. `layers` counts all blocks (HunyuanVideo: 20 double + 40 single; Flux.1: 19 + 38);
// `tiny` keeps Wan's strides and head count, so that its menu of configurations is that of Wan 1.3B.
const std::vector<ModelGeometry>& presets() {
  static const std::vector<ModelGeometry> all = {
      {"wan2.1-t2v-1.3b", 12, 12, 128, 30, 8960, {4, 8, 8}, {1, 2, 2}, 512, TextPlacement::cross},
      {"wan2.1-t2v-14b", 40, 40, 128, 40, 13824, {4, 8, 8}, {1, 2, 2}, 512, TextPlacement::cross},
      {"tiny", 12, 12, 8, 2, 256, {4, 8, 8}, {1, 2, 2}, 16, TextPlacement::cross},
      {"hunyuan-video", 24, 24, 128, 60, 12288, {4, 8, 8}, {1, 2, 2}, 256, TextPlacement::joint_rear},
      {"flux.1", 24, 24, 128, 57, 12288, {1, 8, 8}, {1, 2, 2}, 512, TextPlacement::joint_front},
      {"open-sora-2.0", 24, 24, 128, 57, 12288, {4, 8, 8}, {1, 2, 2}, 512, TextPlacement::joint_front},
      {"cogvideox-2b", 30, 30, 64, 30, 7680, {4, 8, 8}, {1, 2, 2}, 226, TextPlacement::joint_front},
      {"cogvideox-5b", 48, 48, 64, 42, 12288, {4, 8, 8}, {1, 2, 2}, 226, TextPlacement::joint_front},
      {"ltx-video", 32, 32, 64, 28, 8192, {8, 32, 32}, {1, 1, 1}, 128, TextPlacement::cross},
  };
  return all;
}

std::string number(std::int64_t value) { return std::to_string(value); }

/// Latent frames, rows and columns in patches; only for sizes that fit.
std::array<std::int64_t, 3> patches(const ModelGeometry& model, int frames, int height, int width) {
  const std::int64_t latent_frames = (frames - 1) / model.vae_stride[0] + 1;
  return {latent_frames / model.patch[0], height / (std::int64_t{model.vae_stride[1]} * model.patch[1]),
          width / (std::int64_t{model.vae_stride[2]} * model.patch[2])};
}

std::string why_no_multiple(const char* what, int pixels, int stride, int patch) {
  const std::int64_t unit = std::int64_t{stride} * patch;
  if (pixels >= 1 && pixels % unit == 0) return "";
  const std::int64_t below = pixels / unit * unit;
  std::string near = below >= unit && pixels > 0 ? number(below) + " or " + number(below + unit) : number(unit);
  return std::string(what) + " " + number(pixels) + " is no positive multiple of " + number(unit) + " (VAE stride " +
         number(stride) + " x patch " + number(patch) + "); nearest: " + near;
}

}  // namespace

ModelGeometry model_preset(std::string_view name) {
  for (const ModelGeometry& preset : presets()) {
    if (preset.name == name) return preset;
  }
  const std::string near = nearest(name, model_preset_names());
  throw Error(Code::input, "catalog.model_preset",
              "model " + in_quotes(name) + " is not known; " +
                  (near.empty() ? "" : "did you mean " + in_quotes(near) + "? ") +
                  "Known: " + joined(model_preset_names()));
}

std::vector<std::string> model_preset_names() {
  std::vector<std::string> names;
  for (const ModelGeometry& preset : presets()) names.push_back(preset.name);
  return names;
}

std::string why_unfit(const ModelGeometry& model, int frames, int height, int width) {
  const int stride = model.vae_stride[0];
  if (frames < 1) return "frames " + number(frames) + " must be at least 1";
  if ((frames - 1) % stride != 0) {
    const std::int64_t below = (frames - 1) / stride * std::int64_t{stride} + 1;
    return "frames " + number(frames) + " is not 1 + a multiple of " + number(stride) +
           " (the VAE's stride); nearest: " + number(below) + " or " + number(below + stride);
  }
  const std::int64_t latent_frames = (frames - 1) / stride + 1;
  if (latent_frames % model.patch[0] != 0) {
    return "frames " + number(frames) + " make " + number(latent_frames) +
           " latent frames, no multiple of the patch's " + number(model.patch[0]);
  }
  for (std::string reason : {why_no_multiple("height", height, model.vae_stride[1], model.patch[1]),
                             why_no_multiple("width", width, model.vae_stride[2], model.patch[2])}) {
    if (!reason.empty()) return reason;
  }
  const auto [t, h, w] = patches(model, frames, height, width);
  if (h > kMostTokens / w || t > kMostTokens / (h * w)) {
    return number(frames) + " frames of " + number(height) + "x" + number(width) + " make more than 2^53 tokens";
  }
  return "";
}

Tokens sequence_tokens(const ModelGeometry& model, int frames, int height, int width) {
  if (std::string reason = why_unfit(model, frames, height, width); !reason.empty()) {
    throw Error(Code::input, "catalog.sequence_tokens", reason);
  }
  const auto [t, h, w] = patches(model, frames, height, width);
  return Tokens{t * h * w + (model.text == TextPlacement::cross ? 0 : model.text_tokens)};
}

std::optional<BucketIndex> Catalog::find(std::string_view bucket_name) const {
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].name == bucket_name) return static_cast<BucketIndex>(i);
  }
  return std::nullopt;
}

std::string_view name(MediaKind kind) { return kind == MediaKind::image ? "image" : "video"; }

std::string_view name(TextPlacement placement) {
  switch (placement) {
    case TextPlacement::cross: return "cross";
    case TextPlacement::joint_front: return "joint-front";
    case TextPlacement::joint_rear: return "joint-rear";
  }
  return "cross";
}

}  // namespace zellige
