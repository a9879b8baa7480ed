// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loss and gradients of one step of tiny data (tiny_data.h) under any placement.

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "engine/torch.h"
#include "train/rank_trainer.h"
#include "train/tiny_data.h"
#include "zellige/thread_ranks.h"

namespace zellige::testing {

struct Outcome {
  double loss = 0;
  std::vector<at::Tensor> gradients;
  std::vector<std::string> names;
};

/// Loss and gradients of step `step` on as many thread ranks as the placement has. Expects every rank to end with the
/// same ones.
inline Outcome run_step(const TrainConfig& config, const Batch& batch, const Placement& placement,
                        std::int64_t step = 0) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(placement.ranks));
  run_thread_ranks(placement.ranks, [&](Rank rank, c10::intrusive_ptr<c10d::ProcessGroup> group) {
    RankTrainer trainer(config, rank, std::move(group));
    Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    outcome.loss = trainer.run(batch, placement, step);
    outcome.names = trainer.model().names();
    for (const at::Tensor& parameter : trainer.model().parameters()) {
      outcome.gradients.push_back(parameter.grad().clone());
    }
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.loss, outcomes[0].loss);
    for (std::size_t i = 0; i < outcome.gradients.size(); ++i) {
      EXPECT_TRUE(at::equal(outcome.gradients[i], outcomes[0].gradients[i])) << outcome.names[i];
    }
  }
  return outcomes[0];
}

/// ||a - b|| / ||b||, in fp64.
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  const double norm = b.to(at::kDouble).norm().item<double>();
  return (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>() / norm;
}

inline void expect_same(const Outcome& found, const Outcome& wanted, double tolerance) {
  EXPECT_NEAR(found.loss, wanted.loss, tolerance * wanted.loss);
  ASSERT_EQ(found.gradients.size(), wanted.gradients.size());
  for (std::size_t i = 0; i < found.gradients.size(); ++i) {
    EXPECT_LE(distance(found.gradients[i], wanted.gradients[i]), tolerance) << found.names[i];
  }
}

}  // namespace zellige::testing
