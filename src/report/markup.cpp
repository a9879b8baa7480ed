// SPDX-License-Identifier: Apache-2.0
#include "report/markup.h"

#include "zellige/error.h"
#include "zellige/text.h"

namespace zellige {

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t begin = 0;  // of the run that has no character of its own treatment
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : '\n';
    const std::string_view instead = c == '&'    ? "&amp;"
                                     : c == '<'  ? "&lt;"
                                     : c == '>'  ? "&gt;"
                                     : c == '"'  ? "&quot;"
                                     : c == '\'' ? "&#39;"
                                     : c == '\n' ? "\n"
                                     : c == '\t' ? "\t"
                                                 : "";
    if (instead.empty()) continue;
    out += printable(text.substr(begin, i - begin));
    if (i < text.size()) out += instead;
    begin = i + 1;
  }
  return out;
}

void Markup::start(std::string_view element, const Attributes& attributes) {
  text_.append("<").append(element);
  for (const auto& [name, value] : attributes) {
    text_.append(" ").append(name).append("=\"").append(escaped(value)).append("\"");
  }
}

void Markup::open(std::string_view element, const Attributes& attributes) {
  start(element, attributes);
  text_ += ">";
  open_.emplace_back(element);
}

void Markup::close() {
  if (open_.empty()) throw Error(Code::internal, "report.markup", "an element is closed that was not opened");
  text_.append("</").append(open_.back()).append(">\n");
  open_.pop_back();
}

void Markup::empty(std::string_view element, const Attributes& attributes) {
  start(element, attributes);
  text_ += "/>\n";
}

void Markup::text(std::string_view text) { text_ += escaped(text); }

void Markup::element(std::string_view element, const Attributes& attributes, std::string_view content) {
  open(element, attributes);
  text(content);
  close();
}

void Markup::style(std::string_view rules) {
  open("style");
  text_ += rules;
  close();
}

std::string Markup::take() && {
  if (!open_.empty()) throw Error(Code::internal, "report.markup", "element '" + open_.back() + "' is still open");
  return std::move(text_);
}

}  // namespace zellige
