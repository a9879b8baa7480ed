// SPDX-License-Identifier: Apache-2.0
#include "plan/own/cover_lp.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace zellige::own {
namespace {

constexpr int kArtificial = -1'000'000;
constexpr double kTolerance = 1e-9;

}  // namespace

void CoverLp::start(std::vector<Row> rows, double cost) {
  rows_ = std::move(rows);
  cost_ = cost;
  const std::size_t size = rows_.size();
  basis_.resize(size);
  basic_.resize(size);
  inverse_.assign(size * size, 0);
  for (std::size_t i = 0; i < size; ++i) {
    basis_[i] = (rows_[i].is_cover ? kArtificial : -1) - static_cast<int>(i);
    basic_[i] = rows_[i].right;
    inverse_[i * size + i] = 1;
  }
  price();
}

void CoverLp::price() {
  const std::size_t size = rows_.size();
  objective_ = artificial_ = 0;
  duals_.assign(size, 0);
  for (std::size_t i = 0; i < size; ++i) {
    const bool is_artificial = basis_[i] <= kArtificial;
    const double cost = basis_[i] >= 0 ? 1 : is_artificial ? cost_ : 0;
    if (is_artificial) artificial_ += basic_[i];
    objective_ += cost * basic_[i];
    if (cost == 0) continue;
    for (std::size_t k = 0; k < size; ++k) duals_[k] += cost * inverse_[i * size + k];
  }
}

int CoverLp::entering_slack() const {
  int row = -1;
  double best = kTolerance;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const double gain = slack_gain(static_cast<int>(i));
    if (gain > best) best = gain, row = static_cast<int>(i);
  }
  return row;
}

void CoverLp::enter_slack(int row) {
  column_.assign(rows_.size(), 0);
  column_[row] = rows_[row].is_cover ? -1 : 1;
  pivot(-1 - row);
}

void CoverLp::enter(const std::vector<double>& column, int name) {
  column_ = column;
  pivot(name);
}

void CoverLp::pivot(int name) {
  const std::size_t size = rows_.size();
  direction_.assign(size, 0);
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t k = 0; k < size; ++k) direction_[i] += inverse_[i * size + k] * column_[k];
  }
  int leaving = -1;
  double step = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (direction_[i] <= kTolerance) continue;
    const double ratio = basic_[i] / direction_[i];
    bool is_first = leaving < 0 || ratio < step - 1e-12;
    if (!is_first && ratio < step + 1e-12) {
      // Among equals an artificial column leaves first, then the largest pivot.
      const bool here = basis_[i] <= kArtificial, there = basis_[leaving] <= kArtificial;
      is_first = here != there ? here : direction_[i] > direction_[leaving];
    }
    if (!is_first) continue;
    leaving = static_cast<int>(i);
    step = std::max(0.0, ratio);
  }
  if (leaving < 0) return;
  const double scale = 1 / direction_[leaving];
  double* pivot_row = &inverse_[static_cast<std::size_t>(leaving) * size];
  for (std::size_t k = 0; k < size; ++k) pivot_row[k] *= scale;
  for (std::size_t i = 0; i < size; ++i) {
    if (static_cast<int>(i) == leaving || direction_[i] == 0) continue;
    for (std::size_t k = 0; k < size; ++k) inverse_[i * size + k] -= direction_[i] * pivot_row[k];
    basic_[i] = std::max(0.0, basic_[i] - direction_[i] * step);
  }
  basic_[leaving] = step;
  basis_[leaving] = name;
  price();
}

std::vector<int> CoverLp::basis() const {
  std::vector<int> names;
  std::copy_if(basis_.begin(), basis_.end(), std::back_inserter(names), [](int name) { return name >= 0; });
  return names;
}

std::vector<std::pair<int, double>> CoverLp::values() const {
  std::vector<std::pair<int, double>> result;
  for (std::size_t i = 0; i < basis_.size(); ++i) {
    if (basis_[i] >= 0 && basic_[i] > 1e-12) result.emplace_back(basis_[i], basic_[i]);
  }
  return result;
}

}  // namespace zellige::own
