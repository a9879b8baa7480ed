// SPDX-License-Identifier: Apache-2.0
#include "report/method_table.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "report/figures.h"

namespace zellige {
namespace {

constexpr std::size_t kMostSplitsListed = 200;

/// A column of numbers: how to take it from a plan, how to write it, and whether less of it is better.
struct Column {
  std::string_view name;
  std::function<double(const ScoredPlan&)> value;
  std::function<std::string(const ScoredPlan&)> text;
  bool has_best;
};

std::vector<Column> columns(const Profile& profile) {
  const auto time = [](Microseconds value) { return static_cast<double>(value.value); };
  const auto size = [](Bytes value) { return static_cast<double>(value.value); };
  return {
      {"makespan", [=](const ScoredPlan& p) { return time(p.score->makespan); },
       [](const ScoredPlan& p) { return readable(p.score->makespan); }, true},
      {"over floor", [](const ScoredPlan& p) { return p.score->over_floor; },
       [](const ScoredPlan& p) { return percent(p.score->over_floor); }, false},
      {"max / mean load", [](const ScoredPlan& p) { return p.score->imbalance; },
       [](const ScoredPlan& p) { return decimal(p.score->imbalance, 3); }, true},
      {"splits", [](const ScoredPlan& p) { return p.score->split_count; },
       [](const ScoredPlan& p) { return grouped(p.score->split_count); }, false},
      {"all-gather", [=](const ScoredPlan& p) { return size(p.score->moved.all_gather); },
       [](const ScoredPlan& p) { return readable(p.score->moved.all_gather); }, false},
      {"Ulysses", [=](const ScoredPlan& p) { return size(p.score->moved.ulysses); },
       [](const ScoredPlan& p) { return readable(p.score->moved.ulysses); }, false},
      {"ring", [=](const ScoredPlan& p) { return size(p.score->moved.ring); },
       [](const ScoredPlan& p) { return readable(p.score->moved.ring); }, false},
      {"bytes moved", [=](const ScoredPlan& p) { return size(p.score->moved.total()); },
       [](const ScoredPlan& p) { return readable(p.score->moved.total()); }, false},
      {"peak memory", [=](const ScoredPlan& p) { return size(p.score->peak); },
       [&profile](const ScoredPlan& p) {
         const double part =
             static_cast<double>(p.score->peak.value) / static_cast<double>(profile.memory_usable.value);
         return readable(p.score->peak) + " (" + decimal(100 * part, 0) + "%)";
       },
       true},
      {"planned in", [=](const ScoredPlan& p) { return time(p.plan->solve_time); },
       [](const ScoredPlan& p) { return readable(p.plan->solve_time); }, false},
  };
}

void status_cell(Markup& page, const Plan& plan) {
  std::string status(name(plan.status));
  if (plan.certified) status += ", certified";
  if (!plan.solver.empty() && plan.solver != plan.method) status += " (" + plan.solver + ")";
  page.element("td", {{"class", plan.has_placement() ? "" : "failed"}}, status);
}

std::string rank_list(const std::vector<Rank>& ranks) {
  std::string text;
  for (const Rank rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

}  // namespace

void draw_table_head(Markup& page, const std::vector<std::string_view>& names) {
  page.open("thead");
  page.open("tr");
  for (std::size_t i = 0; i < names.size(); ++i) page.element("th", {{"class", i == 0 ? "left" : ""}}, names[i]);
  page.close();
  page.close();
}

void draw_method_table(Markup& page, const std::vector<ScoredPlan>& plans, const Profile& profile) {
  const std::vector<Column> all = columns(profile);
  std::vector<std::string_view> names = {"method", "status"};
  std::vector<double> best(all.size(), std::numeric_limits<double>::infinity());
  double slowest = 0;
  int placed = 0;
  for (const ScoredPlan& scored : plans) {
    if (!scored.score) continue;
    ++placed;
    slowest = std::max(slowest, static_cast<double>(scored.score->makespan.value));
    for (std::size_t i = 0; i < all.size(); ++i) best[i] = std::min(best[i], all[i].value(scored));
  }
  for (const Column& column : all) names.push_back(column.name);

  page.open("div", {{"class", "scroll"}});
  page.open("table", {{"class", "methods"}});
  draw_table_head(page, names);
  page.open("tbody");
  for (const ScoredPlan& scored : plans) {
    page.open("tr");
    page.element("th", {{"scope", "row"}, {"class", "left"}}, scored.plan->method);
    status_cell(page, *scored.plan);
    if (!scored.score) {
      page.element("td", {{"class", "reason"}, {"colspan", std::to_string(all.size())}}, scored.plan->reason);
      page.close();
      continue;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::string classes = all[i].has_best && placed > 1 && all[i].value(scored) <= best[i] ? "best" : "";
      Attributes attributes;
      if (i == 0 && slowest > 0) {  // a bar behind the makespan
        classes += classes.empty() ? "bar" : " bar";
        const double part = static_cast<double>(scored.score->makespan.value) / slowest;
        attributes.emplace_back("style", "--part:" + decimal(100 * part, 1) + "%");
      }
      if (!classes.empty()) attributes.emplace_back("class", classes);
      page.element("td", attributes, all[i].text(scored));
    }
    page.close();
  }
  page.close();
  page.close();
  page.close();
}

void draw_rank_table(Markup& page, const ScoredPlan& scored) {
  const Placement& placement = scored.plan->placement;
  std::vector<int> whole(static_cast<std::size_t>(placement.ranks)), shards(whole);
  for (const PlacedSequence& sequence : placement.sequences) {
    for (const Rank rank : sequence.ranks) {
      ++(sequence.config.is_whole() ? whole : shards).at(static_cast<std::size_t>(rank));
    }
  }
  page.open("div", {{"class", "scroll"}});
  page.open("table", {{"class", "ranks"}});
  draw_table_head(page, {"rank", "whole", "shards", "tokens", "load, us", "exchanges in it, us", "memory, bytes"});
  page.open("tbody");
  for (std::size_t rank = 0; rank < whole.size(); ++rank) {
    page.open("tr");
    page.element("th", {{"scope", "row"}, {"class", "left"}}, std::to_string(rank));
    for (const std::int64_t number :
         {std::int64_t{whole[rank]}, std::int64_t{shards[rank]}, scored.score->tokens[rank].value,
          scored.score->load[rank].value, scored.score->exchange[rank].value, scored.score->memory[rank].value}) {
      page.element("td", {}, grouped(number));
    }
    page.close();
  }
  page.close();
  page.close();
  page.close();
}

void draw_split_table(Markup& page, const Plan& plan) {
  page.open("div", {{"class", "scroll"}});
  page.open("table", {{"class", "splits"}});
  draw_table_head(page, {"sequence", "bucket", "tokens", "split", "ranks", "time a rank", "memory a rank"});
  page.open("tbody");
  std::size_t listed = 0, split = 0;
  for (const PlacedSequence& sequence : plan.placement.sequences) {
    if (sequence.config.is_whole()) continue;
    if (++split > kMostSplitsListed) continue;
    ++listed;
    page.open("tr");
    page.element("th", {{"scope", "row"}, {"class", "left"}}, sequence.id);
    page.element("td", {}, sequence.bucket);
    page.element("td", {}, grouped(sequence.tokens.value));
    page.element("td", {}, text(sequence.config));
    page.element("td", {}, rank_list(sequence.ranks));
    page.element("td", {}, readable(sequence.time));
    page.element("td", {}, readable(sequence.memory));
    page.close();
  }
  page.close();
  page.close();
  page.close();
  if (split > listed) {
    page.element("p", {{"class", "muted"}},
                 "and " + grouped(static_cast<std::int64_t>(split - listed)) + " more split sequences");
  }
}

}  // namespace zellige
