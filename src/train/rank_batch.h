// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/latent_source.h"
#include "zellige/batch.h"
#include "zellige/flow.h"
#include "zellige/model.h"
#include "zellige/schedule.h"

namespace zellige {

/// A rank's part of a step: noised tokens, what the model should say of them, and what each token's error weighs.
struct RankBatch {
  PackedTokens input;
  at::Tensor target;         ///< [tokens_local, in_width], eps - x0
  at::Tensor token_weights;  ///< [tokens_local]: sample weight / (samples in the batch x tokens of the sample)
};

/// Makes the tokens that `schedule` gives this rank, and no others. The same values for a token on any rank, in any
/// placement. fp64, CPU.
RankBatch make_rank_batch(const Schedule& schedule, const Batch& batch, const LatentSource& source,
                          const FlowMatching& flow, bool fixed_noise, std::int64_t step, const WanConfig& model);

}  // namespace zellige
