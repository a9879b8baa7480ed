// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "zellige/profile.h"
#include "zellige/units.h"

namespace zellige {

/// How the prices of a rank's sequences make up its load (docs/concepts/load_model.md). Every claim of a plan is about
/// one load model, so the plan states it.
struct LoadModel {
  enum class Kind {
    additive,   ///< the paper's: a load is the sum of prices (Eq. 1)
    overlapped  ///< an exchange runs beside other work: a load is the larger of two sums (`charge`)
  } kind = Kind::additive;
  /// Overlapped: the part of an exchange, in thousandths, that work of the same rank can hide; 0 to 1000.
  int hidden_per_mille = 800;

  bool is_overlapped() const { return kind == Kind::overlapped; }
  bool operator==(const LoadModel&) const = default;
};

/// What a piece adds to the two sums of its rank; the load is the larger sum.
struct Charge {
  Microseconds time;      ///< at least 1
  Microseconds exchange;  ///< 0 where the model is additive
};

/// Additive: the whole time, no exchange. Overlapped: time - floor(h x exchange / 1000), h = hidden_per_mille (but no
/// less than 1), and the exchange. So a rank with computation C and exchange X takes max(C + (1 - h) X, X): of the
/// exchange as much is hidden as may be, but no more than there is computation to hide it.
/// @pre 0 <= exchange <= time, as in a profile
Charge charge(Microseconds time, Microseconds exchange, const LoadModel& model);
inline Charge charge(const Price& price, const LoadModel& model) { return charge(price.time, price.exchange, model); }

/// Errors: Code::input for a hidden part that is not 0 to 1000.
void check_load_model(const LoadModel& model);

std::string_view name(LoadModel::Kind kind);  ///< "additive" or "overlapped"

}  // namespace zellige
