# SPDX-License-Identifier: Apache-2.0
"""Reads a page as a browser and as an XML parser would, and prints what it shows as JSON.

Fails when it is not well-formed, when elements do not nest, or when it refers to anything outside itself.
"""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Nesting(HTMLParser):
    """Follows the page as HTML: every element that opens is closed by its own end."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            assert not name.startswith("on"), f"{tag} has a handler {name}"
            assert name not in ("src", "href", "xlink:href", "action", "srcset"), f"{tag} refers to {value}"

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()


def text_of(element):
    return "".join(element.itertext()).strip()


def cells(table):
    return [[text_of(cell) for cell in row] for row in table.iter("tr")]


def chart(svg):
    """Bars as sums in the axis' own unit, from the drawn heights and the drawn ticks."""
    ticks = [(float(text_of(t)), float(t.get("y")) - 3.5) for t in svg.iter("text") if t.get("class") == "tick" and t.get("text-anchor") == "end"]
    (low, low_y), (high, high_y) = ticks[0], ticks[-1]
    unit_a_pixel = (high - low) / (low_y - high_y)
    bars, parts = {}, 0
    for rect in svg.iter("rect"):
        x = float(rect.get("x"))
        bars[x] = bars.get(x, 0) + float(rect.get("height")) * unit_a_pixel
        parts += 1
    return {
        "name": next(text_of(t) for t in svg.iter("text") if t.get("class") == "name"),
        "bars": [bars[x] for x in sorted(bars)],
        "parts": parts,
        "hovers": [text_of(t) for t in svg.iter("title")],
        "hatched": sum(r.get("class", "").startswith("h") for r in svg.iter("rect")),
        "limit": [text_of(t) for t in svg.iter("text") if t.get("class") == "limit-name"],
        "limit_drawn": any(line.get("class") == "limit" for line in svg.iter("line")),
    }


def main(path):
    page = open(path, encoding="utf-8").read()
    nesting = Nesting()
    nesting.feed(page)
    nesting.close()
    assert not nesting.open, f"never closed: {nesting.open}"
    assert not nesting.seen & {"script", "link", "img", "iframe", "object", "embed"}, nesting.seen
    assert not re.search(r"https?:|//[a-z]|@import", page), "refers to something outside"
    assert all(target.startswith("#hatch") for target in re.findall(r"url\(([^)]*)\)", page))

    doctype = "<!DOCTYPE html>\n"
    assert page.startswith(doctype)
    root = ElementTree.fromstring(page[len(doctype) :])
    defined = {pattern.get("id") for pattern in root.iter("pattern")}
    assert {target[1:] for target in re.findall(r"url\(([^)]*)\)", page)} <= defined
    tables = {}
    for table in root.iter("table"):
        tables.setdefault(table.get("class"), []).append(cells(table))
    print(
        json.dumps(
            {
                "title": text_of(root.find("head/title")),
                "heading": text_of(root.find(".//h1")),
                "text": text_of(root.find("body")),
                "tables": tables,
                "sections": [
                    {"method": text_of(s.find("header/h3")), "charts": [chart(svg) for svg in s.iter("svg")]}
                    for s in root.iter("section")
                ],
                "series": [
                    {
                        "name": next(text_of(t) for t in svg.iter("text") if t.get("class") == "name"),
                        "lines": [line.get("points") for line in svg.iter("polyline")],
                        "dots": [text_of(c.find("title")) if c.find("title") is not None else "" for c in svg.iter("circle")],
                    }
                    for grid in root.iter("div")
                    if grid.get("class") == "series-grid"
                    for svg in grid.iter("svg")
                ],
            }
        )
    )


main(sys.argv[1])
