// SPDX-License-Identifier: Apache-2.0
#include "report/line_chart.h"

#include <algorithm>
#include <cmath>

#include "report/figures.h"
#include "zellige/error.h"

namespace zellige {
namespace {

constexpr double kWidth = 620, kHeight = 260;
constexpr double kLeft = 64, kRight = 14, kTop = 28, kBottom = 40;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr std::size_t kMostDots = 60;  // longer series are a line alone

std::string place(double coordinate) { return shortest(coordinate, 2); }

struct Range {
  double low = 0;
  double high = 1;

  double part(double value) const { return (value - low) / (high - low); }
};

struct Point {
  double x, y;
};

bool drawable(double value) { return std::abs(value) < 1e300; }  // finite, and so are differences
bool drawable(const Point& point) { return drawable(point.x) && drawable(point.y); }

Range range(const std::vector<Point>& points, double Point::*axis) {
  Range range{INFINITY, -INFINITY};
  for (const Point& point : points) {
    if (!drawable(point)) continue;
    range = {std::min(range.low, point.*axis), std::max(range.high, point.*axis)};
  }
  if (range.low > range.high) return {0, 1};
  if (range.low == range.high) {
    const double room = range.low == 0 ? 1 : std::abs(range.low) / 10;
    return {range.low - room, range.high + room};
  }
  return range;
}

/// At most two points a column of the drawing: its lowest and its highest, in their order.
std::vector<Point> thinned(const std::vector<Point>& points) {
  const auto columns = static_cast<std::size_t>(kPlotWidth);
  if (points.size() <= 2 * columns) return points;
  std::vector<Point> result;
  for (std::size_t column = 0; column < columns; ++column) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(points.size() * column / columns);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>(points.size() * (column + 1) / columns);
    if (std::any_of(begin, end, [](const Point& point) { return !drawable(point); })) {
      result.insert(result.end(), begin, end);  // a gap keeps its place
      continue;
    }
    const auto [low, high] = std::minmax_element(begin, end, [](const Point& a, const Point& b) { return a.y < b.y; });
    result.push_back(*std::min(low, high));
    if (low != high) result.push_back(*std::max(low, high));
  }
  return result;
}

/// Digits after the point that tell the ticks apart.
int digits(const std::vector<double>& values) {
  if (values.size() < 2) return 3;
  const double step = values[1] - values[0];
  return std::clamp(static_cast<int>(std::ceil(1 - std::log10(step))), 0, 12);
}

void axes(Markup& page, const Series& series, const Range& x, const Range& y) {
  const std::vector<double> rows = ticks(y.low, y.high, 5);
  for (const double tick : rows) {
    const double at = kTop + kPlotHeight * (1 - y.part(tick));
    page.empty("line", {{"class", "grid"},
                        {"x1", place(kLeft)},
                        {"x2", place(kWidth - kRight)},
                        {"y1", place(at)},
                        {"y2", place(at)}});
    page.element("text", {{"class", "tick"}, {"x", place(kLeft - 6)}, {"y", place(at + 3.5)}, {"text-anchor", "end"}},
                 shortest(tick, digits(rows)));
  }
  const std::vector<double> columns = ticks(x.low, x.high, 8);
  for (const double tick : columns) {
    const double at = kLeft + kPlotWidth * x.part(tick);
    page.empty("line", {{"class", "base"},
                        {"x1", place(at)},
                        {"x2", place(at)},
                        {"y1", place(kTop + kPlotHeight)},
                        {"y2", place(kTop + kPlotHeight + 4)}});
    page.element(
        "text", {{"class", "tick"}, {"x", place(at)}, {"y", place(kTop + kPlotHeight + 16)}, {"text-anchor", "middle"}},
        shortest(tick, digits(columns)));
  }
  page.empty("line", {{"class", "base"},
                      {"x1", place(kLeft)},
                      {"x2", place(kWidth - kRight)},
                      {"y1", place(kTop + kPlotHeight)},
                      {"y2", place(kTop + kPlotHeight)}});
  page.element("text", {{"class", "name"}, {"x", place(kLeft)}, {"y", "14"}},
               series.title + (series.y_label.empty() ? "" : ": " + series.y_label));
  page.element(
      "text",
      {{"class", "tick"}, {"x", place(kLeft + kPlotWidth / 2)}, {"y", place(kHeight - 6)}, {"text-anchor", "middle"}},
      series.x_label);
}

}  // namespace

void draw(Markup& page, const Series& series) {
  if (series.x.size() != series.y.size()) {
    throw Error(Code::input, "report.series",
                "series '" + series.title + "' has " + std::to_string(series.x.size()) + " x and " +
                    std::to_string(series.y.size()) + " y; it needs as many of both");
  }
  std::vector<Point> points;
  for (std::size_t i = 0; i < series.x.size(); ++i) points.push_back({series.x[i], series.y[i]});
  const Range x = range(points, &Point::x);
  Range y = range(points, &Point::y);
  const double room = 0.05 * (y.high - y.low);  // the line stays clear of the frame
  y = {y.low - room, y.high + room};
  page.open("svg", {{"viewBox", "0 0 " + place(kWidth) + " " + place(kHeight)},
                    {"role", "img"},
                    {"aria-label", series.title},
                    {"class", "chart"}});
  axes(page, series, x, y);

  std::vector<std::string> lines(1);
  for (const Point& point : thinned(points)) {
    if (!drawable(point)) {
      if (!lines.back().empty()) lines.emplace_back();
      continue;
    }
    lines.back() += (lines.back().empty() ? "" : " ") + place(kLeft + kPlotWidth * x.part(point.x)) + "," +
                    place(kTop + kPlotHeight * (1 - y.part(point.y)));
  }
  for (const std::string& line : lines) {
    if (line.empty()) continue;
    if (line.find(' ') != std::string::npos) {
      page.empty("polyline", {{"class", "series"}, {"points", line}});
    } else if (points.size() > kMostDots) {  // alone between two gaps
      const auto comma = line.find(',');
      page.empty("circle",
                 {{"class", "dot"}, {"cx", line.substr(0, comma)}, {"cy", line.substr(comma + 1)}, {"r", "1.2"}});
    }
  }
  for (const Point& point : points) {
    if (points.size() > kMostDots || !drawable(point)) continue;
    page.open("circle", {{"class", "dot"},
                         {"cx", place(kLeft + kPlotWidth * x.part(point.x))},
                         {"cy", place(kTop + kPlotHeight * (1 - y.part(point.y)))},
                         {"r", "2.5"}});
    page.element("title", {}, series.x_label + " " + shortest(point.x, 6) + ": " + shortest(point.y, 6));
    page.close();
  }
  page.close();
}

}  // namespace zellige
