// SPDX-License-Identifier: Apache-2.0
#include "zellige/load_model.h"

#include <algorithm>
#include <string>

#include "zellige/error.h"

namespace zellige {

Charge charge(Microseconds time, Microseconds exchange, const LoadModel& model) {
  if (!model.is_overlapped()) return {time, {0}};
  // Of thousands and of what is left of them apart, so that no product leaves 64 bits.
  const std::int64_t hidden_us = exchange.value / 1000 * model.hidden_per_mille +  //
                                 exchange.value % 1000 * model.hidden_per_mille / 1000;
  return {{std::max<std::int64_t>(1, time.value - hidden_us)}, exchange};
}

void check_load_model(const LoadModel& model) {
  if (model.hidden_per_mille >= 0 && model.hidden_per_mille <= 1000) return;
  throw Error(Code::input, "placement.load_model",
              "the hidden part of an exchange is " + std::to_string(model.hidden_per_mille) +
                  " thousandths; it must be 0 to 1000");
}

std::string_view name(LoadModel::Kind kind) {
  switch (kind) {
    case LoadModel::Kind::additive: return "additive";
    case LoadModel::Kind::overlapped: return "overlapped";
  }
  throw Error(Code::internal, "placement.name", "a load model that is none");
}

}  // namespace zellige
