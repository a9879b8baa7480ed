// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zellige {

using Attributes = std::vector<std::pair<std::string_view, std::string>>;

/// Builds well-formed XML, element by element: what opens is closed, and every text and attribute is escaped, so that
/// no id of a batch can leave its place. Pages made with it are HTML and XML at once.
class Markup {
 public:
  void open(std::string_view element, const Attributes& attributes = {});
  /// Closes the element opened last.
  void close();
  /// An element without content.
  void empty(std::string_view element, const Attributes& attributes);
  void text(std::string_view text);
  /// An element that holds text alone.
  void element(std::string_view element, const Attributes& attributes, std::string_view content);
  /// Style rules of our own: not escaped, so they hold neither '<' nor '&'.
  void style(std::string_view rules);

  /// The whole text. Errors: Code::internal when an element is still open.
  std::string take() &&;

 private:
  void start(std::string_view element, const Attributes& attributes);

  std::string text_;
  std::vector<std::string> open_;
};

/// `text` for XML: the five special characters as entities, what is not printable (newline and
/// tab aside) written as an escape.
std::string escaped(std::string_view text);

}  // namespace zellige
