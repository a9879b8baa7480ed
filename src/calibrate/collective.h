// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/torch.h"

namespace zellige {

/// The few words that ranks which measure together exchange beside what they measure. Collective, all of them.
class Together {
 public:
  Together(c10::intrusive_ptr<c10d::ProcessGroup> group, at::Device device)
      : group_(std::move(group)), device_(device) {}

  int rank() const { return group_->getRank(); }
  int ranks() const { return group_->getSize(); }
  at::Device device() const { return device_; }
  c10d::ProcessGroup& group() const { return *group_; }

  void barrier() const;
  /// [ranks] what every rank says.
  std::vector<double> all(double own) const;
  double most(double own) const;
  bool any(bool own) const { return most(own ? 1 : 0) > 0; }
  /// Rank 0's text on every rank.
  std::string from_first(const std::string& text) const;

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  at::Device device_;
};

}  // namespace zellige
