// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "placement/check_parts.h"

namespace zellige {

PieceLoads piece_loads(const Price& price, const LoadModel& model) {
  if (model.kind != LoadModel::Kind::overlapped) return {price.time.value, 0};
  const Wide hidden_us = Wide{price.exchange.value} * model.hidden_per_mille / 1000;  // rounded down: both are >= 0
  return {std::max(static_cast<std::int64_t>(price.time.value - hidden_us), std::int64_t{1}), price.exchange.value};
}

std::string why_no_load_model(const LoadModel& model) {
  if (model.kind != LoadModel::Kind::additive && model.kind != LoadModel::Kind::overlapped) {
    return "load_model is number " + std::to_string(static_cast<int>(model.kind));
  }
  if (model.hidden_per_mille < 0 || model.hidden_per_mille > 1000) {
    return "load_model.hidden_per_mille is " + std::to_string(model.hidden_per_mille) + "; it must be 0 to 1000";
  }
  return "";
}

}  // namespace zellige
