// SPDX-License-Identifier: Apache-2.0
#include "report/markup.h"

#include "zellige/error.h"

namespace zellige {

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\n':
      case '\t': out += c; break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) {
          out += "\uFFFD";
        } else {
          out += c;
        }
      }
    }
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
