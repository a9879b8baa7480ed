// SPDX-License-Identifier: Apache-2.0
#include "report/bar_chart.h"

#include <algorithm>
#include <cmath>

namespace zellige {
namespace {

// In the units of the SVG's own coordinates, which the page scales to the column's width.
constexpr double kWidth = 400, kHeight = 250;
constexpr double kLeft = 50, kRight = 8, kTop = 26, kBottom = 34;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr double kThinnestBar = 2.5, kWidestBar = 64;
constexpr double kLowestPart = 3;          // lower ones merge with their like
constexpr std::size_t kMostLabelled = 10;  // bars that carry their value
constexpr std::size_t kMostNamed = 4;      // sequences named in the title of a merged part

std::string place(double coordinate) { return shortest(coordinate, 2); }

/// A run of parts of one stack, drawn as one.
struct Run {
  std::size_t begin = 0;
  std::size_t end = 0;
  double value = 0;
};

bool alike(const PlacedSequence& a, const PlacedSequence& b) {
  return a.bucket == b.bucket && a.config == b.config && a.tokens == b.tokens;
}

std::vector<Run> runs(const Stack& stack, const Placement& placement, Measure measure, double height_of_one) {
  std::vector<Run> result;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const double amount = value(stack[i], measure);
    const auto& sequence = placement.sequences[static_cast<std::size_t>(stack[i].sequence)];
    if (!result.empty() && amount * height_of_one < kLowestPart) {
      const auto& before = placement.sequences[static_cast<std::size_t>(stack[result.back().begin].sequence)];
      if (alike(before, sequence)) {
        result.back().end = i + 1;
        result.back().value += amount;
        continue;
      }
    }
    result.push_back({i, i + 1, amount});
  }
  return result;
}

std::string exact(double amount, Measure measure) {
  const auto whole = static_cast<std::int64_t>(amount);
  switch (measure) {
    case Measure::tokens: return grouped(whole) + " tokens";
    case Measure::time: return readable(Microseconds{whole});
    case Measure::memory: return readable(Bytes{whole});
  }
  return "";
}

/// What the pointer shows over a part: "clip-7 (480p10s video, 63,960 tokens), q1h2k1 on ranks 0, 1: 3.270 s".
std::string hover(const Stack& stack, const Run& run, const Placement& placement, Measure measure) {
  const auto sequence_at = [&](std::size_t i) -> const PlacedSequence& {
    return placement.sequences[static_cast<std::size_t>(stack[i].sequence)];
  };
  const PlacedSequence& first = sequence_at(run.begin);
  const std::size_t count = run.end - run.begin;
  std::string text = count > 1 ? grouped(static_cast<std::int64_t>(count)) + " x " : first.id + " (";
  text += first.bucket + " " + std::string(name(first.kind)) + ", " + grouped(first.tokens.value) + " tokens";
  text += count > 1 ? " each" : ")";
  if (first.config.is_whole()) {
    text += ", whole";
  } else {
    text += ", shard of " + zellige::text(first.config);
    if (count == 1) {
      text += " on ranks ";
      for (std::size_t i = 0; i < first.ranks.size(); ++i) text += (i ? ", " : "") + std::to_string(first.ranks[i]);
    }
  }
  text += ": " + exact(run.value, measure);
  if (count > 1) {
    text += "\n";
    for (std::size_t i = run.begin; i < std::min(run.end, run.begin + kMostNamed); ++i) {
      text += (i > run.begin ? ", " : "") + sequence_at(i).id;
    }
    if (count > kMostNamed) text += ", ...";
  }
  return text;
}

/// The ranks that get a bar: all, or the fullest of every few.
std::vector<std::size_t> drawn_ranks(const std::vector<double>& totals) {
  const auto most_bars = static_cast<std::size_t>(kPlotWidth / kThinnestBar);
  const std::size_t group = (totals.size() + most_bars - 1) / std::max<std::size_t>(most_bars, 1);
  std::vector<std::size_t> ranks;
  for (std::size_t begin = 0; begin < totals.size(); begin += group) {
    const auto first = totals.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = totals.begin() + static_cast<std::ptrdiff_t>(std::min(begin + group, totals.size()));
    ranks.push_back(static_cast<std::size_t>(std::max_element(first, last) - totals.begin()));
  }
  return ranks;
}

class Drawing {
 public:
  Drawing(Markup& page, const BarChart& chart) : page_(page), chart_(chart) {}

  double y(double amount) const { return kTop + kPlotHeight * (1 - amount / chart_.most); }

  void axis() {
    for (const double tick : ticks(0, chart_.most / chart_.unit.size, 5)) {
      const double at = y(tick * chart_.unit.size);
      page_.empty("line", {{"class", "grid"},
                           {"x1", place(kLeft)},
                           {"x2", place(kWidth - kRight)},
                           {"y1", place(at)},
                           {"y2", place(at)}});
      page_.element("text",
                    {{"class", "tick"}, {"x", place(kLeft - 5)}, {"y", place(at + 3.5)}, {"text-anchor", "end"}},
                    shortest(tick, 6));
    }
    std::string title = chart_.title;
    if (!chart_.unit.name.empty()) title.append(", ").append(chart_.unit.name);
    page_.element("text", {{"class", "name"}, {"x", place(kLeft)}, {"y", "13"}}, title);
  }

  void bar(double left, double width, const Stack& stack, const Placement& placement) {
    double from = 0;
    for (const Run& run : runs(stack, placement, chart_.measure, kPlotHeight / chart_.most)) {
      const Part& part = stack[run.begin];
      const bool shard = !placement.sequences[static_cast<std::size_t>(part.sequence)].config.is_whole();
      const double top = y(from + run.value);
      page_.open("rect", {{"class", (shard ? "h" : "b") + std::to_string(part.swatch)},
                          {"x", place(left)},
                          {"y", place(top)},
                          {"width", place(width)},
                          {"height", decimal(y(from) - top, 3)}});
      page_.element("title", {}, hover(stack, run, placement, chart_.measure));
      page_.close();
      from += run.value;
    }
  }

  void value_label(double middle, double total, bool largest) {
    page_.element("text",
                  {{"class", largest ? "value most" : "value"},
                   {"x", place(middle)},
                   {"y", place(y(total) - 4)},
                   {"text-anchor", "middle"}},
                  in_unit(total, {chart_.unit.size, ""}));
  }

  void rank_label(double middle, std::size_t rank) {
    page_.element(
        "text",
        {{"class", "tick"}, {"x", place(middle)}, {"y", place(kHeight - kBottom + 13)}, {"text-anchor", "middle"}},
        std::to_string(rank));
  }

  void reference_line() {
    if (!chart_.line || chart_.line->value > chart_.most) return;
    const double at = y(chart_.line->value);
    page_.empty("line", {{"class", "limit"},
                         {"x1", place(kLeft)},
                         {"x2", place(kWidth - kRight)},
                         {"y1", place(at)},
                         {"y2", place(at)}});
  }

  void caption(const std::string& bottom) {
    page_.element(
        "text",
        {{"class", "tick"}, {"x", place(kLeft + kPlotWidth / 2)}, {"y", place(kHeight - 6)}, {"text-anchor", "middle"}},
        bottom);
    if (!chart_.line) return;
    std::string label = chart_.line->label;
    if (chart_.line->value > chart_.most) label += ", above the axis";
    page_.element("text", {{"class", "limit-name"}, {"x", place(kWidth - kRight)}, {"y", "13"}, {"text-anchor", "end"}},
                  label);
  }

 private:
  Markup& page_;
  const BarChart& chart_;
};

}  // namespace

double axis_top(double largest, const std::optional<ReferenceLine>& line) {
  constexpr double kRoom = 1.06;       // for the values above the bars
  constexpr double kMostOverBars = 3;  // a line further up would leave no room for them
  if (largest <= 0) return line && line->value > 0 ? line->value * kRoom : 1;
  const bool with_line = line && line->value <= kMostOverBars * largest;
  return kRoom * std::max(largest, with_line ? line->value : 0);
}

void draw(Markup& page, const BarChart& chart, const Placement& placement, const std::vector<Stack>& stacks,
          const std::vector<double>& totals) {
  Drawing drawing(page, chart);
  page.open("svg", {{"viewBox", "0 0 " + place(kWidth) + " " + place(kHeight)},
                    {"role", "img"},
                    {"aria-label", chart.title + " of every rank"},
                    {"class", "chart"}});
  drawing.axis();
  const std::vector<std::size_t> ranks = drawn_ranks(totals);
  const double pitch = kPlotWidth / static_cast<double>(std::max<std::size_t>(ranks.size(), 1));
  const double width = std::min(kWidestBar, pitch * (pitch > 8 ? 0.78 : pitch > 4 ? 0.9 : 1));
  const std::size_t label_every = static_cast<std::size_t>(std::ceil(22 / pitch));
  const double largest = totals.empty() ? 0 : *std::max_element(totals.begin(), totals.end());
  const auto middle = [&](std::size_t i) { return kLeft + pitch * (static_cast<double>(i) + 0.5); };
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    drawing.bar(middle(i) - width / 2, width, stacks[ranks[i]], placement);
    if (i % label_every == 0) drawing.rank_label(middle(i), ranks[i]);
  }
  page.empty("line", {{"class", "base"},
                      {"x1", place(kLeft)},
                      {"x2", place(kWidth - kRight)},
                      {"y1", place(kTop + kPlotHeight)},
                      {"y2", place(kTop + kPlotHeight)}});
  drawing.reference_line();
  for (std::size_t i = 0; ranks.size() <= kMostLabelled && i < ranks.size(); ++i) {
    drawing.value_label(middle(i), totals[ranks[i]], totals[ranks[i]] >= largest);
  }
  drawing.caption(ranks.size() == totals.size()
                      ? "rank"
                      : "rank (the fullest of every " +
                            std::to_string((totals.size() + ranks.size() - 1) / ranks.size()) + ")");
  page.close();
}

void draw_hatchings(Markup& page, const std::vector<Swatch>& swatches) {
  page.open("svg", {{"width", "0"}, {"height", "0"}, {"class", "patterns"}, {"aria-hidden", "true"}});
  page.open("defs");
  for (std::size_t i = 0; i < swatches.size(); ++i) {
    page.open("pattern", {{"id", "hatch" + std::to_string(i)},
                          {"width", "6"},
                          {"height", "6"},
                          {"patternUnits", "userSpaceOnUse"},
                          {"patternTransform", "rotate(45)"}});
    page.empty("rect", {{"width", "6"}, {"height", "6"}, {"fill", swatches[i].colour}});
    page.empty("line", {{"x1", "1"}, {"x2", "1"}, {"y1", "0"}, {"y2", "6"}, {"class", "hatch"}});
    page.close();
  }
  page.close();
  page.close();
}

}  // namespace zellige
