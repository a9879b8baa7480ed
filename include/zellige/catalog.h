// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zellige/units.h"

namespace zellige {

/// Where a model's text tokens go: apart, by cross-attention (Wan), or into the same attention as the picture's tokens.
enum class TextPlacement { cross, joint_front, joint_rear };

/// What the planner and the engine need to know of a video diffusion transformer. Written as the `model` of a catalog.
struct ModelGeometry {
  std::string name;                 ///< e.g. "wan2.1-t2v-1.3b"
  int heads = 0;                    ///< query heads
  int kv_heads = 0;                 ///< key/value heads; equal to `heads` unless they are grouped; divides `heads`
  int head_dim = 0;                 ///< elements of one head
  int layers = 0;                   ///< transformer blocks
  int ffn = 0;                      ///< inner width of the feed-forward network
  std::array<int, 3> vae_stride{};  ///< frames, height, width
  std::array<int, 3> patch{};       ///< latent frames, latent height, latent width
  int text_tokens = 0;              ///< text length, padded
  TextPlacement text = TextPlacement::cross;

  int width() const { return heads * head_dim; }  ///< d, the model's width
  bool operator==(const ModelGeometry&) const = default;
};

/// Returns a built-in geometry by name ("wan2.1-t2v-1.3b", "wan2.1-t2v-14b", "tiny", ...).
/// Errors: Code::input for an unknown name, listing the known ones.
ModelGeometry model_preset(std::string_view name);
std::vector<std::string> model_preset_names();

/// Explains why pixels of this size make no whole number of patches; empty when they do. A causal video VAE takes
/// 1 + n * vae_stride[0] frames (Wan: 4n+1).
std::string why_unfit(const ModelGeometry& model, int frames, int height, int width);

/// Returns the attention length of a sample: ((frames - 1) / stride + 1) x latent height x latent width over the patch,
/// plus the text's tokens where they share the attention. Errors: Code::input when why_unfit says something.
Tokens sequence_tokens(const ModelGeometry& model, int frames, int height, int width);

enum class MediaKind { image, video };

/// A size in which samples are trained. All samples of a bucket have the same number of tokens, hence the same prices.
struct Bucket {
  std::string name;
  MediaKind kind = MediaKind::image;
  int frames = 1;
  int height = 0;  ///< pixels
  int width = 0;   ///< pixels
  Tokens tokens;

  bool operator==(const Bucket&) const = default;
};

/// A model's geometry and the buckets that it is trained on. File format "zellige.catalog" version 1.
struct Catalog {
  ModelGeometry model;
  std::vector<Bucket> buckets;

  /// Position of the bucket of that name, or none. Linear in the number of buckets.
  std::optional<BucketIndex> find(std::string_view bucket_name) const;
  bool operator==(const Catalog&) const = default;
};

/// How one sequence is split: query axis (all-gather of K/V), head axis (Ulysses), key/value axis (ring).
/// The paper's theta_c = (q_c, h_c, k_c), section III-A. (1, 1, 1) keeps the sequence whole.
struct Configuration {
  int q = 1;
  int h = 1;
  int k = 1;

  constexpr int degree() const { return q * h * k; }  ///< split degree  // lambda_c
  constexpr bool is_whole() const { return degree() == 1; }
  constexpr auto operator<=>(const Configuration&) const = default;
};

/// Says why `configuration` cannot run a sequence of `length` tokens on `num_ranks` ranks; empty = legal. The one place
/// where legality is decided: factors >= 1, degree <= num_ranks, degree <= length (no empty chunk), h divides the
/// query heads and the key/value heads.
std::string why_illegal(const ModelGeometry& model, Tokens length, Configuration configuration, int num_ranks);

/// Which legal configurations a planner considers.
enum class Menu {
  powers_of_two,  ///< degree a power of two, at most min(num_ranks, 16): the paper's 18 for degrees 2, 4, 8 and 12
                  ///< heads
  all,            ///< every degree up to min(num_ranks, 16)
};
inline constexpr int kLargestMenuDegree = 16;

/// Lists the legal configurations of a menu, by degree, then q, then h. (1, 1, 1) is always the first.
std::vector<Configuration> menu(const ModelGeometry& model, Tokens length, int num_ranks, Menu which);

/// Reads / writes a catalog. Errors: Code::input, naming file, field and value (unknown, missing, wrong type, duplicate
/// bucket name, tokens that do not follow from the size).
Catalog read_catalog(const std::string& path);
void write_catalog(const Catalog& catalog, const std::string& path);
std::string catalog_json(const Catalog& catalog);

std::string_view name(MediaKind kind);           ///< "image", "video"
std::string_view name(TextPlacement placement);  ///< "cross", "joint-front", "joint-rear"
std::string text(Configuration configuration);   ///< "q2h4k1"

}  // namespace zellige
