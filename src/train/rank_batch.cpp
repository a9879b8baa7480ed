// SPDX-License-Identifier: Apache-2.0
#include "train/rank_batch.h"

#include <utility>
#include <vector>

namespace zellige {
namespace {

// Frames, height and width of a bucket's latent, in patches.
std::array<std::int64_t, 3> grid_of(const ModelGeometry& model, const Bucket& bucket) {
  return {((bucket.frames - 1) / model.vae_stride[0] + 1) / model.patch[0],
          bucket.height / (model.vae_stride[1] * model.patch[1]),
          bucket.width / (model.vae_stride[2] * model.patch[2])};
}

}  // namespace

RankBatch make_rank_batch(const Schedule& schedule, const Batch& batch, const LatentSource& source,
                          const FlowMatching& flow, bool fixed_noise, std::int64_t step, const WanConfig& model) {
  const auto segments = static_cast<std::int64_t>(schedule.segments.size());
  RankBatch result;
  result.input.latents = at::empty({schedule.num_tokens, model.in_width()}, at::kDouble);
  result.input.timesteps = at::empty({segments}, at::kDouble);
  result.input.text = at::empty({segments, model.text_tokens, model.text_dim}, at::kDouble);
  result.target = at::empty_like(result.input.latents);
  result.token_weights = at::empty({schedule.num_tokens}, at::kDouble);
  for (std::int64_t i = 0; i < segments; ++i) {
    const Segment& segment = schedule.segments[static_cast<std::size_t>(i)];
    const BatchSequence& sample = batch.sequences[static_cast<std::size_t>(segment.sequence)];
    const auto grid = grid_of(batch.catalog.model, batch.bucket_of(segment.sequence));
    const std::string& noise_key = fixed_noise ? data_key(sample) : sample.id;
    const FlowDraw draw = flow.draw(step, noise_key);

    const at::Tensor clean = source.latents(sample, grid, segment.token_begin, segment.num_tokens);
    const at::Tensor noise = at::empty_like(clean);
    flow.noise(step, noise_key, segment.token_begin, model.in_width(),
               {noise.data_ptr<double>(), static_cast<std::size_t>(noise.numel())});

    const auto rows = [&](const at::Tensor& packed) {
      return packed.narrow(0, segment.local_begin, segment.num_tokens);
    };
    rows(result.input.latents).copy_((1 - draw.sigma) * clean + draw.sigma * noise);
    rows(result.target).copy_(noise - clean);
    const double samples = static_cast<double>(batch.sequences.size());
    rows(result.token_weights).fill_(draw.weight / (samples * static_cast<double>(segment.sequence_tokens)));
    result.input.timesteps[i].fill_(draw.timestep());
    result.input.text[i].copy_(source.text(sample));
    result.input.segments.push_back({grid, segment.token_begin, segment.num_tokens});
  }
  return result;
}

}  // namespace zellige
