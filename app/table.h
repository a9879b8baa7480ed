// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace zellige::app {

/// A table for stdout: the first column aligned left, the others right, as wide as their widest cell.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  /// Adds a row; missing cells at its end are empty.
  /// Cells are made printable: names come from files.
  void add(std::vector<std::string> row);
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace zellige::app
