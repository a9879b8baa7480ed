// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "zellige/catalog.h"

namespace zellige {

std::string text(Configuration configuration) {
  std::string text = "q";
  text.append(std::to_string(configuration.q));
  text.append("h").append(std::to_string(configuration.h));
  return text.append("k").append(std::to_string(configuration.k));
}

std::string why_illegal(const ModelGeometry& model, Tokens length, Configuration configuration, int num_ranks) {
  const auto [q, h, k] = configuration;
  if (q < 1 || h < 1 || k < 1) {
    return "configuration [" + std::to_string(q) + ", " + std::to_string(h) + ", " + std::to_string(k) +
           "] has a factor below 1";
  }
  // Factors first: the product of three hostile ones would overflow.
  const bool too_wide = q > num_ranks || h > num_ranks || k > num_ranks ||
                        static_cast<std::int64_t>(q) * h > num_ranks ||
                        static_cast<std::int64_t>(q) * h * k > num_ranks;
  if (too_wide) return text(configuration) + " needs more ranks than the " + std::to_string(num_ranks) + " there are";
  if (configuration.degree() > length.value) {
    return text(configuration) + " cuts " + std::to_string(length.value) + " tokens into " +
           std::to_string(configuration.degree()) + " chunks; one would be empty";
  }
  if (model.heads % h != 0) {
    return "head split " + std::to_string(h) + " does not divide " + std::to_string(model.heads) + " heads";
  }
  if (model.kv_heads % h != 0) {
    return "head split " + std::to_string(h) + " does not divide " + std::to_string(model.kv_heads) +
           " key/value heads";
  }
  return "";
}

std::vector<Configuration> menu(const ModelGeometry& model, Tokens length, int num_ranks, Menu which) {
  std::vector<Configuration> legal;
  const int largest = std::min(num_ranks, kLargestMenuDegree);
  for (int degree = 1; degree <= largest; ++degree) {
    if (which == Menu::powers_of_two && !std::has_single_bit(static_cast<unsigned>(degree))) continue;
    for (int q = 1; q <= degree; ++q) {
      if (degree % q != 0) continue;
      for (int h = 1; h <= degree / q; ++h) {
        if (degree / q % h != 0) continue;
        const Configuration configuration{q, h, degree / q / h};
        if (why_illegal(model, length, configuration, num_ranks).empty()) legal.push_back(configuration);
      }
    }
  }
  return legal;
}

}  // namespace zellige
