// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

namespace zellige::own {

/// A small linear program whose columns come one by one: the least sum of columns, each costing 1, such that every row
/// reaches its right side (cover) or does not exceed it. Primal simplex with a dense inverse, for up to some hundred
/// rows.
class CoverLp {
 public:
  struct Row {
    bool is_cover = true;
    double right = 0;
  };
  /// Starts anew, without columns: covers are held by artificial ones at a high cost.
  /// @param cost  of an artificial column: far above any sum that matters
  void start(std::vector<Row> rows, double cost);

  double objective() const { return objective_; }
  bool has_artificial() const { return artificial_ > 1e-9; }
  /// [rows] >= 0 for covers, <= 0 for the others, once no slack enters.
  const std::vector<double>& duals() const { return duals_; }
  /// A row whose slack would lower the objective, or -1; the largest gain first.
  int entering_slack() const;
  double slack_gain(int row) const { return rows_[row].is_cover ? -duals_[row] : duals_[row]; }
  void enter_slack(int row);
  /// @param column  [rows]
  /// @param name    >= 0, by which values() knows it
  void enter(const std::vector<double>& column, int name);
  /// Names of the columns in the basis, those of which there is nothing included.
  std::vector<int> basis() const;
  /// Columns in the basis, and how much of each.
  std::vector<std::pair<int, double>> values() const;

 private:
  void pivot(int name);
  void price();

  std::vector<Row> rows_;
  double cost_ = 0, objective_ = 0, artificial_ = 0;
  std::vector<int> basis_;  // name; -1 - i: slack of row i; kArtificial - i
  std::vector<double> inverse_, basic_, duals_, column_, direction_;
};

}  // namespace zellige::own
