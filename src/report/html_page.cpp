// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>

#include "report/bar_chart.h"
#include "report/line_chart.h"
#include "report/method_table.h"
#include "report/page_style.h"
#include "zellige/report.h"
#include "zellige/version.h"

namespace zellige {
namespace {

/// Colours of the swatches: b0, b1, ... plain for whole sequences, h0, h1, ... hatched for shards.
std::string swatch_style(const std::vector<Swatch>& swatches) {
  std::string rules;
  for (std::size_t i = 0; i < swatches.size(); ++i) {
    const std::string number = std::to_string(i);
    rules += ".b" + number + " { fill: " + swatches[i].colour + "; } .h" + number + " { fill: url(#hatch" + number +
             "); }\n";
  }
  return rules;
}

void draw_swatch(Markup& page, const std::string& css_class) {
  page.open("svg", {{"viewBox", "0 0 18 14"}, {"aria-hidden", "true"}});
  page.empty("rect", {{"class", css_class}, {"width", "18"}, {"height", "14"}, {"rx", "2"}});
  page.close();
}

void draw_legend(Markup& page, const std::vector<Swatch>& swatches) {
  if (swatches.empty()) return;
  page.open("ul", {{"class", "legend"}});
  for (std::size_t i = 0; i < swatches.size(); ++i) {
    page.open("li");
    draw_swatch(page, "b" + std::to_string(i));
    page.element("span", {},
                 swatches[i].bucket + " " + std::string(name(swatches[i].kind)) + ", " +
                     grouped(swatches[i].tokens.value) + " tokens");
    page.close();
  }
  page.open("li");
  draw_swatch(page, "h" + std::to_string(swatches.size() - 1));
  page.element("span", {}, "hatched: a shard of a split sequence");
  page.close();
  page.close();
}

/// "8 ranks, 1,712 sequences (7 videos), 2,800,000 tokens; model wan2.1-t2v-1.3b": of the first plan there is.
std::string facts(const std::vector<ScoredPlan>& plans, const Profile& profile) {
  std::string text;
  const auto placed = std::find_if(plans.begin(), plans.end(), [](const ScoredPlan& p) { return p.score.has_value(); });
  std::set<std::string_view> sources;
  if (placed != plans.end()) {
    const Placement& placement = placed->plan->placement;
    std::int64_t tokens = 0, videos = 0;
    for (const PlacedSequence& sequence : placement.sequences) {
      tokens += sequence.tokens.value;
      videos += sequence.kind == MediaKind::video;
      if (const auto bucket = profile.catalog.find(sequence.bucket)) {
        if (const Price* price = profile.find(*bucket, sequence.config)) sources.insert(name(price->source));
      }
    }
    const auto count = static_cast<std::int64_t>(placement.sequences.size());
    text = counted(placement.ranks, "rank") + ", " + counted(count, "sequence") + " (" + counted(videos, "video") +
           ", " + counted(count - videos, "image") + "), " + grouped(tokens) + " tokens; ";
  }
  text += "model " + profile.catalog.model.name + "; prices for " + profile.key.device;
  for (const std::string_view source : sources) text.append(source == *sources.begin() ? ", " : " and ").append(source);
  return text + (profile.key.checkpointing ? "; activation checkpointing" : "; no activation checkpointing");
}

/// The three charts of a page, on axes that all methods share.
std::vector<BarChart> charts(const std::vector<ScoredPlan>& plans, const Profile& profile) {
  BarChart tokens{.title = "Tokens", .measure = Measure::tokens};
  BarChart time{.title = "Load", .measure = Measure::time};
  BarChart memory{.title = "Memory", .measure = Measure::memory};
  memory.line = {static_cast<double>(profile.memory_cap().value), "cap " + readable(profile.memory_cap())};
  std::vector<BarChart> result = {tokens, time, memory};
  for (BarChart& chart : result) {
    double largest = 0;
    for (const ScoredPlan& scored : plans) {
      if (!scored.score) continue;
      for (const double total : totals(*scored.score, chart.measure)) largest = std::max(largest, total);
      if (chart.measure == Measure::time && !chart.line) {
        chart.line = {static_cast<double>(scored.score->floor.value), "floor " + readable(scored.score->floor)};
      }
    }
    chart.most = axis_top(largest, chart.line);
    chart.unit = chart.measure == Measure::tokens ? token_unit(chart.most)
                 : chart.measure == Measure::time ? time_unit(chart.most)
                                                  : byte_unit(chart.most);
  }
  return result;
}

void draw_method(Markup& page, const ScoredPlan& scored, const std::vector<BarChart>& charts,
                 const std::vector<Swatch>& swatches) {
  const Plan& plan = *scored.plan;
  page.open("section", {{"class", "method"}});
  page.open("header");
  page.element("h3", {}, plan.method);
  page.element("span", {{"class", "muted"}},
               readable(scored.score->makespan) + ", " + percent(scored.score->over_floor) + " over the floor; " +
                   counted(scored.score->split_count, "split") + "; " + readable(scored.score->moved.total()) +
                   " moved; largest over mean load " + decimal(scored.score->imbalance, 3));
  page.close();
  page.open("div", {{"class", "charts"}});
  const std::vector<Stack> of_ranks = stacks(plan.placement, swatches, plan.load_model);
  for (const BarChart& chart : charts)
    draw(page, chart, plan.placement, of_ranks, totals(*scored.score, chart.measure));
  page.close();
  page.open("details");
  page.element("summary", {},
               "every rank in figures" + std::string(scored.score->split_count ? ", and what is split" : ""));
  draw_rank_table(page, scored);
  if (scored.score->split_count > 0) draw_split_table(page, plan);
  page.close();
  page.close();
}

}  // namespace

std::string html_page(const Page& content, const Profile& profile) {
  std::vector<ScoredPlan> plans;
  for (const Plan& plan : content.plans) {
    plans.push_back({&plan, std::nullopt});
    if (plan.has_placement()) plans.back().score = score(plan.placement, profile, plan.load_model);
  }
  const std::vector<Swatch> all_swatches = swatches(content.plans);

  Markup page;
  page.open("html", {{"lang", "en"}});
  page.open("head");
  page.empty("meta", {{"charset", "utf-8"}});
  page.empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  page.element("title", {}, content.title);
  page.style(std::string(kPageStyle) + swatch_style(all_swatches));
  page.close();
  page.open("body");
  draw_hatchings(page, all_swatches);
  page.open("main");
  page.element("h1", {}, content.title);
  page.element("p", {{"class", "facts"}}, facts(plans, profile));
  if (!content.note.empty()) page.element("p", {{"class", "muted"}}, content.note);

  if (!plans.empty()) {
    page.element("h2", {}, plans.size() > 1 ? "Methods" : "Plan");
    draw_method_table(page, plans, profile);
    if (!all_swatches.empty()) page.element("h2", {}, "Who runs what");
    draw_legend(page, all_swatches);
    const std::vector<BarChart> shared = charts(plans, profile);
    for (const ScoredPlan& scored : plans) {
      if (scored.score) draw_method(page, scored, shared, all_swatches);
    }
  }
  if (!content.series.empty()) {
    page.element("h2", {}, "Run");
    page.open("div", {{"class", "series-grid"}});
    for (const Series& series : content.series) draw(page, series);
    page.close();
  }
  page.element(
      "footer", {},
      "zellige " + std::string(version()) +
          ". Modelled: loads and memory are the profile's prices added up; memory and its cap are what comes on top of "
          "weights, optimizer states and context (" +
          readable(profile.memory_base) + "), peak memory includes them.");
  page.close();
  page.close();
  page.close();
  return "<!DOCTYPE html>\n" + std::move(page).take();
}

}  // namespace zellige
