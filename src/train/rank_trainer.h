// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "engine/torch.h"
#include "train/adamw.h"
#include "train/latent_source.h"
#include "zellige/engine.h"
#include "zellige/model.h"
#include "zellige/trainer.h"

namespace c10d {
class Reducer;
}

namespace zellige {

/// What all ranks know after a step.
struct StepOutcome {
  double loss = 0;
  double gradient_norm = 0;
  std::vector<RankRecord> ranks;  ///< `predicted` is not filled in
};

/// One rank of a training run: the model, its engine, gradient sync and optimizer.
/// Collective: every rank makes one with the same configuration, and makes the same calls in the same order.
class RankTrainer {
 public:
  /// @param device  where the rank computes: the CPU for thread ranks, else its GPU
  RankTrainer(const TrainConfig& config, Rank rank, c10::intrusive_ptr<c10d::ProcessGroup> group,
              at::Device device = at::kCPU, const EngineOptions& engine = {});
  ~RankTrainer();
  RankTrainer(const RankTrainer&) = delete;
  RankTrainer& operator=(const RankTrainer&) = delete;

  /// Forward and backward of one batch under a placement, with gradient sync: afterwards parameter.grad() is the whole
  /// batch's gradient on every rank. Returns the whole batch's loss.
  double run(const Batch& batch, const Placement& placement, std::int64_t step);

  /// `run`, then one update of the parameters; with what every rank measured.
  /// Errors: Code::input on every rank when loss, gradients or updated parameters are no numbers.
  StepOutcome step(const Batch& batch, const Placement& placement, std::int64_t step);

  /// On how many ranks `flag` is set. Collective.
  int count_ranks(bool flag) const;

  WanTransformer& model() { return model_; }
  std::string_view data_label() const { return source_->label(); }

 private:
  at::Tensor sum_over_ranks(at::Tensor values) const;

  TrainConfig config_;
  Rank rank_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  at::Device device_;
  WanTransformer model_;
  Engine engine_;
  std::unique_ptr<LatentSource> source_;
  FlowMatching flow_;
  AdamW optimizer_;
  std::unique_ptr<c10d::Reducer> reducer_;  // goes first: it hangs on the parameters
};

/// The model that a configuration asks for. Errors: as wan_config.
WanConfig wan_config(const TrainConfig& config);

}  // namespace zellige
