// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace zellige {

/// The page's looks; no '<' and no '&', so that it stands in XML as it is. Light and dark follow the reader's setting.
inline constexpr std::string_view kPageStyle = R"css(
:root { color-scheme: light dark; --page: #ffffff; --panel: #f7f8fa; --ink: #1b1f24; --muted: #667080; --rule: #dde1e7;
  --bar: #dbe7f3; --accent: #1f6fb2; --limit: #b3261e; --best: #12703c; --hatch: rgba(255, 255, 255, 0.72); }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171b; --panel: #1b1f25; --ink: #e7e9ec; --muted: #98a2b0; --rule: #333b46; --bar: #23384d;
    --accent: #7cbcf0; --limit: #ff8a80; --best: #6fd39a; --hatch: rgba(15, 18, 22, 0.62); }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1320px; margin: 0 auto; padding: 28px 24px 48px; }
h1 { font-size: 25px; line-height: 1.2; margin: 0 0 6px; letter-spacing: -0.01em; }
h2 { font-size: 18px; margin: 36px 0 10px; }
h3 { font-size: 15px; margin: 0; }
p { margin: 4px 0; }
.muted, .facts { color: var(--muted); }
.legend { display: flex; flex-wrap: wrap; gap: 6px 18px; margin: 0 0 12px; padding: 0; list-style: none; font-size: 13px; }
.legend li { display: flex; align-items: center; gap: 6px; }
.legend svg { width: 18px; height: 14px; display: block; }
.scroll { overflow-x: auto; }
.scroll + .scroll { margin-top: 14px; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 9px; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
thead th { color: var(--muted); font-weight: 500; border-bottom: 1px solid var(--muted); }
th.left { text-align: left; padding-left: 2px; }
.methods { width: 100%; }
.methods th:nth-child(2), .methods td:nth-child(2), .methods .reason { text-align: left; }
.methods tbody th { font-weight: 600; }
.methods .failed { color: var(--limit); }
.methods .reason { color: var(--muted); white-space: normal; }
.methods .best { color: var(--best); font-weight: 600; }
.methods .bar { background: linear-gradient(var(--bar), var(--bar)) left / var(--part) 72% no-repeat; }
.method { margin: 14px 0; padding: 12px 14px 10px; background: var(--panel); border: 1px solid var(--rule); border-radius: 8px; }
.method header { display: flex; flex-wrap: wrap; gap: 2px 14px; align-items: baseline; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(330px, 1fr)); gap: 10px 22px; margin: 8px 0 2px; }
.series-grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 16px; }
.series-grid .chart { background: var(--panel); border: 1px solid var(--rule); border-radius: 8px; padding: 8px; }
.chart { width: 100%; height: auto; display: block; }
.chart text { fill: var(--ink); font-size: 11px; font-variant-numeric: tabular-nums; }
.chart .tick { fill: var(--muted); font-size: 10px; }
.chart .name { font-weight: 600; font-size: 12px; }
.chart .value { font-size: 10px; fill: var(--muted); stroke: var(--panel); stroke-width: 3; paint-order: stroke; }
.chart .most { fill: var(--ink); font-weight: 700; }
.chart .grid { stroke: var(--rule); stroke-width: 0.7; }
.chart .base { stroke: var(--muted); stroke-width: 1; }
.chart .limit { stroke: var(--limit); stroke-width: 1.3; stroke-dasharray: 5 3; }
.chart .limit-name { fill: var(--limit); font-size: 10.5px; }
.chart rect { stroke: var(--panel); stroke-width: 0.5; }
.chart rect:hover { stroke: var(--ink); stroke-width: 1.2; }
.chart .series { fill: none; stroke: var(--accent); stroke-width: 1.6; stroke-linejoin: round; }
.chart .dot { fill: var(--accent); }
.patterns { position: absolute; }
.hatch { stroke: var(--hatch); stroke-width: 1.7; }
details { margin: 6px 0 2px; font-size: 13.5px; }
summary { cursor: pointer; color: var(--muted); }
footer { margin-top: 40px; color: var(--muted); font-size: 13px; }
@media print { .method { break-inside: avoid; } }
)css";

}  // namespace zellige
