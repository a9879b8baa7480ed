// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/figures.h"
#include "report/markup.h"
#include "report/stacks.h"

namespace zellige {

/// A dashed line across a chart: the load floor, the memory cap.
struct ReferenceLine {
  double value = 0;
  std::string label;
};

/// One chart of a page: a bar a rank, stacked of its sequences.
struct BarChart {
  std::string title;
  Measure measure = Measure::tokens;
  Unit unit;
  double most = 1;  ///< top of the axis, the same for all methods of a page
  std::optional<ReferenceLine> line;
};

/// The axis' top that shows `largest`, and the line too unless that would make the bars tiny.
double axis_top(double largest, const std::optional<ReferenceLine>& line);

/// Draws the chart as one SVG. Bars thinner than a pixel are merged: of every few ranks the fullest is drawn. Like
/// parts that are too low to tell apart become one.
/// @param stacks,totals  [ranks]
void draw(Markup& page, const BarChart& chart, const Placement& placement, const std::vector<Stack>& stacks,
          const std::vector<double>& totals);

/// The hatchings of shards, one a swatch: an SVG that shows nothing and that all charts of the page refer to.
void draw_hatchings(Markup& page, const std::vector<Swatch>& swatches);

}  // namespace zellige
